"""What README and guides show is run: their networks, and their commands."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from typer.testing import CliRunner

from jettison.app.cli import app
from jettison.plan.certify import certify
from jettison.plan.plan import Plan
from jettison.plan.problem import Problem
from jettison.plan.shedders.exact import ExactShedder
from jettison.plan.shedders.road_map import RoadMapShedder, build_road_map
from jettison.statistics.profile import Profile
from jettison.synthetic.rates import Constant

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from jettison.experiments.support.broker import Broker
    from jettison.network.declare import Network
    from jettison.spark.run.run import Run

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guides").glob("*.md"))]
README = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.S)


def block(word: str) -> str:
    """The one block of Python with this word in it."""
    (found,) = (each for each in blocks("python") if word in each)
    return found


WAITS = re.compile(r"run\.await_termination\(timeout=\d+\)")


def carry_out(code: str, folder: Path, done: Callable[[Run], bool]) -> None:
    """Run it here, whose Spark was started in another folder, and wait until something came out."""

    def wait(run: Run) -> None:
        deadline = time.monotonic() + 400
        while not done(run):
            assert time.monotonic() < deadline, str(run.report())
            assert not run.await_termination(timeout=0.2)

    assert WAITS.search(code)
    exec(WAITS.sub("wait(run)", code.replace('"out/', f'"{folder}/out/')), {"wait": wait})


def has_fares(folder: Path) -> bool:
    return any((folder / "out").glob("*/fares/batch=*/*.parquet"))


@pytest.mark.core
def test_trust_5_no_two_programs_share_a_checkpoint_or_a_folder() -> None:
    places = [place for code in blocks("python") for place in set(re.findall(r'"(out/[^"]+)"', code))]
    assert len(places) >= 4
    assert len(places) == len(set(places)), sorted(places)


@pytest.mark.slow
def test_the_network_runs_as_written(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = block("Burst(20_000").replace("at_s=10", "at_s=1")
    carry_out(code, tmp_path, lambda run: run.report().rows_shed > 0 and has_fares(tmp_path))
    shown = capsys.readouterr().out
    assert re.search(r"^network taxi: [1-9]\d* batches", shown, re.MULTILINE), shown
    assert re.search(r"^fares +[1-9][\d,]* ", shown, re.MULTILINE), shown


@pytest.mark.core
def test_the_network_of_worth_can_be_planned(capsys: pytest.CaptureFixture[str]) -> None:
    code = block("payments")
    names: dict[str, Any] = {}
    exec(code, names)
    shown = capsys.readouterr().out
    assert re.search("join_[0-9a-f]{8}: join select1 with select2 on order within 10 minutes", shown), shown
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

    code = block("rush")
    names: dict[str, Any] = {}
    exec(code, names)
    assert "per_zone: aggregate 60 seconds every 5 seconds by zone, delay 10 seconds" in (
        capsys.readouterr().out.replace("1 minute", "60 seconds")
    )
    zones = memory()
    carry_out_windows(names["net"], {"zones": zones, "rush": memory(), "last_100": memory()}, spark, tmp_path)
    assert zones.rows
    assert {"zone", "window_start", "window_end", "n", "avg_fare", "half"} == set(zones.rows[0].asDict())


def test_functions_of_your_own_run(spark: SparkSession, tmp_path: Path) -> None:
    from jettison.spark.write.sinks import memory

    code = block("geometric_mean")
    names: dict[str, Any] = {}
    exec(code, names)
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
    exec(block("n_low"), names)
    assert "income_high" in capsys.readouterr().out
    zones = memory()
    carry_out_windows(names["net"], {"zones": zones, "alerts": memory()}, spark, tmp_path)
    assert zones.rows
    assert all(row["n_low"] == row["n"] == row["n_high"] for row in zones.rows), "nothing was shed"


@pytest.mark.slow
def test_the_network_on_kafka_runs_as_written(
    spark: SparkSession, broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from jettison.experiments.support.producer import producing

    code = block("localhost:9092")
    for topic in ("trips", "alerts", "shed", "dead_letters"):
        broker.create(topic)
    with producing(broker.servers, "trips", Constant(1000.0), 60.0, tmp_path / "sent"):
        code = code.replace("localhost:9092", broker.servers)
        carry_out(code, tmp_path, lambda _: has_fares(tmp_path) and sum(broker.ends("alerts").values()) > 0)
    assert "topic trips: " in capsys.readouterr().out


@pytest.mark.core
def test_the_commands_that_need_no_spark_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parent.parent)
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    commands = [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("jettison ")]
    assert len(commands) >= 5
    for command in commands:
        if command[0] in ("check", "plan", "explain", "simulate") or command[:2] == ["experiment", "list"]:
            result = CliRunner().invoke(app, command)
            assert result.exit_code == 0, f"{command}: {result.output}"


@pytest.mark.core
def test_functions_of_your_own_in_yaml_are_those_of_the_example() -> None:
    (shown,) = (each for each in blocks("yaml") if "whole_window" in each)
    example = Path(__file__).parent.parent / "examples" / "fares.yaml"
    whole = yaml.safe_load(example.read_text(encoding="utf-8"))
    assert yaml.safe_load(shown)["agg"] == whole["operators"]["fares"]["agg"]


@pytest.mark.core
def test_the_readme_is_short_and_links_lead_somewhere() -> None:
    assert len(PAGES[0].read_text(encoding="utf-8").splitlines()) <= 130
    for page in PAGES:
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert link.startswith("http") or (page.parent / link).exists(), f"{page.name}: {link}"


@pytest.mark.core
def test_make_has_the_targets_that_are_named() -> None:
    makefile = (Path(__file__).parent.parent / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^make ([\w-]+)", README, flags=re.M):
        assert re.search(rf"^{target}:", makefile, flags=re.M), target
