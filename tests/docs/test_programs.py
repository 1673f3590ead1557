"""Every block of Python on every page is run: the blocks of a page, one after another, are one program.

Pages whose program starts no network run without Spark. The others run on Spark, and wait only until there is something
to see: `run.await_termination(timeout=10)` and `run.await_batches(5, timeout=60)` of the page become waits for what the
page is about to show.
"""

from __future__ import annotations

import ast
import inspect
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.docs.pages import block, blocks, program

import jettison as jt
from jettison.plan.certify import certify
from jettison.plan.plan import Plan
from jettison.plan.predictions import claimed
from jettison.plan.problem import Problem
from jettison.plan.shedders.exact import ExactShedder
from jettison.plan.shedders.road_map import RoadMapShedder, build_road_map
from jettison.statistics.profile import Profile
from jettison.synthetic.rates import Constant

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from jettison.experiments.kafka.broker import Broker
    from jettison.network.declare import Network
    from jettison.spark.run.run import Run

PAGES = sorted({each.page for each in blocks("python")})
STARTED = [page for page in PAGES if re.search(r"\bjt\.start\(|\brun_rows\(", program(page))]
ON_KAFKA = [page for page in STARTED if "localhost:9092" in program(page)]
ON_SPARK = [page for page in STARTED if page not in ON_KAFKA]
DECLARED = [page for page in PAGES if page not in STARTED]

WAITS = re.compile(r"run\.await_(termination\(|batches\(\d+, )timeout=\d+\)")


def carry_out(code: str, folder: Path, conditions: Iterator[Callable[[Run], bool]]) -> dict[str, Any]:
    """Run it here, whose Spark was started in another folder; wait as long as each condition in turn asks for."""

    def wait(run: Run) -> None:
        done = next(conditions)
        deadline = time.monotonic() + 400
        while not done(run):
            assert time.monotonic() < deadline, str(run.report())
            assert not run.await_termination(timeout=0.2)

    names: dict[str, Any] = {"wait": wait}
    exec(WAITS.sub("wait(run)", code.replace('"out/', f'"{folder}/out/')), names)
    return names


def has_rows(run: Run) -> bool:
    return run.report().batches >= 2 and run.report().rows_in > 0


def has_shed(run: Run) -> bool:
    return run.report().rows_shed > 0 and has_rows(run)


def has_planned(run: Run) -> bool:
    return bool(run.report().would_deliver)  # costs are measured on the first batch of some size


def has_rejected(run: Run) -> bool:
    return bool(run.report().unfit)


CONDITIONS: dict[str, tuple[Callable[[Run], bool], ...]] = {
    "README.md": (has_shed,),
    "docs/tutorial.md": (has_rows, has_shed, has_shed, has_rows),
    "docs/guides/bad-rows.md": (has_rejected,),
    "docs/guides/production.md": (has_planned,),
}
"""What each run of a page waits for; of other pages for two batches, and rows."""

SHOWN: dict[str, tuple[str, ...]] = {
    "README.md": (r"^network taxi: [1-9]\d* batches", r"^fares +[1-9][\d,]* "),
    "docs/tutorial.md": (r"^ +paid: where fare > 0$", r"^fares +[1-9][\d,]* +100\.0%", r"\| *overload", r"\| *n_low\|"),
    "docs/guides/bad-rows.md": (r"^\{'priced': [1-9]\d*\}$",),
    "docs/guides/fair.md": (r"^fares: SIC 1\.000", r"^\{'clicks': Buckets\(kept=36, buckets=64, of=1\.0\)"),
    "docs/guides/monitoring.md": (r'^\{"', r"^metrics: http://127\.0\.0\.1:\d+/metrics$"),
    "docs/guides/production.md": (r"^dry run: nothing was shed",),
    "docs/guides/restarts.md": (r"^True$",),
}
"""What a page says that its program shows."""


@pytest.mark.core
def test_all_blocks_are_run_by_one_of_these_tests() -> None:
    assert {"README.md", "docs/tutorial.md"} <= set(ON_SPARK)
    assert ON_KAFKA == ["docs/guides/kafka.md"]
    assert {*CONDITIONS, *SHOWN} <= set(ON_SPARK)
    assert sorted({*DECLARED, *ON_SPARK, *ON_KAFKA}) == PAGES


@pytest.mark.core
def test_trust_5_no_two_programs_share_a_checkpoint_or_a_folder() -> None:
    places = [place for page in PAGES for place in set(re.findall(r'"(out/[^"]+)"', program(page)))]
    assert len(places) >= 4
    assert len(places) == len(set(places)), sorted(places)


@pytest.mark.core
@pytest.mark.parametrize("page", STARTED)
def test_what_a_page_calls_is_public_and_has_these_arguments(page: str) -> None:
    """In seconds, before Spark says so."""
    calls = [node for node in ast.walk(ast.parse(program(page))) if isinstance(node, ast.Call)]
    named = [(each, ast.unparse(each.func)) for each in calls if ast.unparse(each.func).startswith("jt.")]
    assert named
    for call, name in named:
        function: Any = jt
        for part in name.split(".")[1:]:
            function = getattr(function, part)
        inspect.signature(function).bind(*call.args, **{each.arg: None for each in call.keywords if each.arg})


@pytest.mark.core
@pytest.mark.parametrize("page", DECLARED)
def test_networks_of_a_page_are_declared_as_written(page: str) -> None:
    exec(program(page), {})


@pytest.mark.slow
@pytest.mark.parametrize("page", ON_SPARK)
def test_the_program_of_a_page_runs_as_written(
    page: str, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = re.sub(r"at_s=\d+", "at_s=1", program(page))  # a burst comes sooner
    waits = len(WAITS.findall(code))
    assert "await_termination" not in WAITS.sub("", code), "the page waits longer than a test may"
    conditions = iter(CONDITIONS.get(page, (has_rows,) * waits))
    carry_out(code, tmp_path, conditions)
    assert not list(conditions), "the page waits less often than it should"
    shown = capsys.readouterr().out
    for pattern in SHOWN.get(page, ()):
        assert re.search(pattern, shown, re.MULTILINE), f"{pattern}\n{shown}"
    if page == "docs/tutorial.md":
        both = re.findall(r"^(\d+) (\d+)$", shown, re.MULTILINE)[-1]
        assert int(both[0]) > 0
        assert both[0] == both[1], "a window came twice after the restart"


@pytest.mark.slow
def test_the_network_on_kafka_runs_as_written(
    spark: SparkSession, broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from jettison.experiments.kafka.producer import producing

    def done(_: Run) -> bool:
        has_fares = any((tmp_path / "out").glob("*/fares/batch=*/*.parquet"))
        return has_fares and sum(broker.ends("alerts").values()) > 0

    code = program("docs/guides/kafka.md")
    for topic in ("trips", "alerts", "shed", "dead_letters"):
        broker.create(topic)
    with producing(broker.servers, "trips", Constant(1000.0), 60.0, tmp_path / "sent"):
        carry_out(code.replace("localhost:9092", broker.servers), tmp_path, iter([done]))
    assert "topic trips: " in capsys.readouterr().out


# --- what pages declare can be planned, and gives what they say -----------------------------------------------------


@pytest.mark.core
def test_the_network_of_joins_can_be_planned(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    exec(program("docs/guides/joins.md"), names)
    assert "paid: join select1 with select2 on order within 10 minutes" in capsys.readouterr().out
    graph = names["net"].graph
    profile = Profile({operator.name: 1.0 for operator in graph.operators}, {})
    rows = {"orders": 1000.0, "payments": 800.0}
    road_map = build_road_map(graph, profile, rows)
    problem = Problem(graph, profile, rows, 0.0)
    for share in (0.9, 0.6, 0.3):
        asked = problem.with_budget(share * problem.load_us)
        for shedder in (RoadMapShedder(road_map), ExactShedder()):
            plan = shedder.plan(asked)
            assert isinstance(plan, Plan)
            certify(asked, plan)


@pytest.mark.core
def test_qos_and_values_are_as_their_pages_say(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    exec(program("docs/guides/qos.md"), names)
    outputs = {output.name: output.qos for output in names["net"].graph.outputs}
    assert outputs["average"].utility(0.5) == 0.8
    assert outputs["board"].latency_utility(35.0) == 0.5
    assert outputs["revenue"].min_accuracy == 0.2
    capsys.readouterr()
    exec(program("docs/guides/values.md"), {})
    assert capsys.readouterr().out == "0.2 1.0\n"


@pytest.mark.core
def test_the_shedder_of_its_page_plans_what_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    exec(program("docs/guides/shedders.md"), names)
    assert capsys.readouterr().out == "{'trips': Random(keep=0.4)}\n"
    shedder, problem = names["SameShare"](), names["problem"]
    certify(problem, claimed(problem, shedder.plan(problem).drops, "overload"))
    assert not shedder.plan(problem.with_budget(problem.load_us)).drops


def carry_out_windows(network: Network, sinks: dict[str, Any], spark: SparkSession, folder: Path) -> Run:
    """Run it on three batches of trips, 50 seconds each."""
    from tests.spark.running import until

    from jettison.spark.read.generator import generate
    from jettison.spark.run.start import start
    from jettison.synthetic.fields import TAXI

    stream = generate(spark, TAXI, rate=Constant(20.0), rows_per_batch=1000, limit_rows=3000, start_us=10**15)
    run = start(network, {"trips": stream}, sinks, checkpoint=str(folder), costs=Profile({}, {}))
    try:
        until(run, lambda: run.report().rows_in == 3000)
    finally:
        run.stop()
    return run


def test_the_network_of_windows_runs(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from jettison.spark.write.sinks import memory

    names: dict[str, Any] = {}
    exec(block("rush"), names)
    assert "per_zone: aggregate 60 seconds every 5 seconds by zone, delay 10 seconds" in (
        capsys.readouterr().out.replace("1 minute", "60 seconds")
    )
    zones = memory()
    carry_out_windows(names["net"], {"zones": zones, "rush": memory(), "last_100": memory()}, spark, tmp_path)
    assert zones.rows
    assert {"zone", "window_start", "window_end", "n", "avg_fare", "half"} == set(zones.rows[0].asDict())


def test_functions_of_your_own_run(spark: SparkSession, tmp_path: Path) -> None:
    from jettison.spark.write.sinks import memory

    names: dict[str, Any] = {}
    exec(block("geometric_mean"), names)
    zones = memory()
    report = carry_out_windows(names["net"], {"zones": zones}, spark, tmp_path).report()
    found = [row["typical"] for row in zones.rows]
    assert any(found)
    assert report.windows_failed == sum(each is None for each in found)


def test_estimates_come_with_their_intervals(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from jettison.spark.write.sinks import memory

    names: dict[str, Any] = {}
    exec(program("docs/guides/estimates.md"), names)
    assert "income_high" in capsys.readouterr().out
    zones = memory()
    carry_out_windows(names["net"], {"zones": zones, "alerts": memory()}, spark, tmp_path)
    assert zones.rows
    assert all(row["n_low"] == row["n"] == row["n_high"] for row in zones.rows), "nothing was shed"
