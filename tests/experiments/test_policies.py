"""All shedders side by side: what is measured of them, what is shown, and which one is taken."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

import jettison as jt
from jettison.app.cli import app
from jettison.control.loop import Controller, Settings
from jettison.experiments.policies.measured import NO_SHEDDING, best
from jettison.experiments.policies.shown import draw
from jettison.experiments.policies.simulated import compare_simulated
from jettison.network.graph import Graph
from jettison.plan.shedders.choice import choose
from jettison.plan.shedders.las import Las
from jettison.plan.shedders.qod import Qod
from jettison.plan.shedders.registry import SHEDDERS, fitting_shedders
from jettison.plan.shedders.renewed_road_map import RenewedRoadMap
from jettison.statistics.profile import Profile

pytestmark = pytest.mark.core


def two(*, timed: bool = False, **qos: jt.QoS) -> Graph:
    net = jt.Network("two")
    s = net.source("s", "x int", id=["x"])
    first = s.map("examples.mentions:score", key="x", schema="y double", name="timed") if timed else s
    first.where("x > 0", name="a_work").output("a", qos=qos.get("a"))
    s.where("x > 1", name="b_work").output("b", qos=qos.get("b"))
    return net.graph


COSTS = Profile({"a_work": 10.0, "b_work": 10.0}, {}, fixed_ms=50.0)


@pytest.mark.parametrize(
    ("graph", "name", "why"),
    [
        (two(a=jt.QoS(loss=[(100, 1.0), (50, 0.9), (0, 0.0)])), "semantic", "a has a loss graph"),
        (two(b=jt.QoS(value=jt.Value("x", [(0, 9, 1.0)]))), "semantic", "b has a value utility"),
        (two(a=jt.QoS(min_accuracy=0.1), b=jt.QoS(min_accuracy=0.2)), "qod", "a, b have a minimum accuracy"),
        (two(a=jt.QoS(priority=2)), "semantic", "priority alone"),
    ],
)
def test_auto_takes_what_the_declarations_ask_for_and_says_why(graph: Graph, name: str, why: str) -> None:
    found = choose(graph, SHEDDERS)
    assert (found.name, found.timed) == (name, ())
    assert why in str(found)
    controller = Controller(graph, Settings(1000.0, shedder="auto"), COSTS)
    assert controller.choice == found
    assert isinstance(controller.shedder, Qod if name == "qod" else RenewedRoadMap)


def test_auto_takes_only_what_is_there_and_las_where_tuples_are_timed() -> None:
    plain = two()
    assert choose(plain, ("semantic", "fair")).name == "fair"
    assert choose(plain, ("semantic",)).name == "semantic"
    timed = two(timed=True, a=jt.QoS(min_accuracy=0.3))
    found = choose(timed, SHEDDERS)
    assert (found.name, found.timed) == ("qod", ("timed",))
    assert "takes las for timed, whose tuples are timed; the rest by qod" in str(found)
    assert isinstance(Controller(timed, Settings(1000.0, shedder="auto"), COSTS).shedder, Las)
    assert ("las" in fitting_shedders(timed), "las" in fitting_shedders(plain)) == (True, False)


def test_every_shedder_that_fits_is_measured_in_a_simulation() -> None:
    graph = two(a=jt.QoS(priority=3, min_accuracy=0.2), b=jt.QoS(min_accuracy=0.1))
    names = fitting_shedders(graph)
    found = compare_simulated(graph, COSTS, {"s": 120_000.0}, names, trigger_ms=1000.0, seconds=15.0)
    by_name = {each.shedder: each for each in found}
    assert set(by_name) == {NO_SHEDDING, *names}
    assert {"semantic", "random", "exact", "qod", "input-uniform"} <= set(names)
    for name in names:
        assert by_name[name].worth > by_name[NO_SHEDDING].worth, "late results are worth nothing"
        assert by_name[name].minima_held == 1.0
        assert 0 < by_name[name].lowest_sic <= by_name[name].mean_sic < 1
    assert by_name["qod"].priorities_held == 1.0
    assert by_name["qod"].accuracy["a"] > by_name["qod"].accuracy["b"]
    assert by_name["input-uniform"].jain == pytest.approx(1.0)
    figure = Figure()
    draw(figure, found, "all of them")
    assert len(figure.axes) == 4
    assert best(found).worth == max(each.worth for each in found)


def test_compare_without_spark(tmp_path: Path) -> None:
    words = ["compare", "examples/taxi.yaml", "--simulate", "--for", "6", "--out", str(tmp_path)]
    shown = CliRunner().invoke(app, [*words, "--shedder", "semantic", "--shedder", "qod"])
    assert shown.exit_code == 0, shown.output
    assert "takes semantic, because prices, busy have a loss graph" in shown.output
    assert {path.name for path in tmp_path.iterdir()} == {"compare.csv", "compare.png"}
    told = CliRunner().invoke(app, [*words, "--shedder", "random", "--json"])
    rows = json.loads(told.output.splitlines()[0])
    assert [row["shedder"] for row in rows["shedders"]] == ["none", "random"]
    assert rows["auto"] == "semantic"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--shedder", "qot"], "shedder 'qot' is not known (did you mean 'qod'?)"),
        (["--for", "0"], "--for is 0"),
        (["--rate", "trips=5"], "--rate is for --simulate"),
    ],
)
def test_compare_says_what_is_wrong(words: list[str], why: str, tmp_path: Path) -> None:
    shown = CliRunner().invoke(app, ["compare", "examples/taxi.yaml", "--out", str(tmp_path), *words])
    assert shown.exit_code == 2
    assert why in " ".join(shown.output.split())


def test_explain_says_what_auto_takes(tmp_path: Path) -> None:
    text = Path("examples/taxi.yaml").read_text(encoding="utf-8")
    path = tmp_path / "auto.yaml"
    path.write_text(text.replace("shedding: {headroom: 0.9}", "shedding: {headroom: 0.9, shedder: auto}"))
    shown = CliRunner().invoke(app, ["explain", str(path)])
    assert "shedder auto: takes semantic, because prices, busy have a loss graph" in shown.output


@pytest.mark.parametrize(
    ("rate", "paused"), [(20_000, ""), (60_000, "; paused, so that the minima of others fit: low")]
)
def test_explain_says_what_qod_would_give_and_whom_it_would_pause(rate: int, paused: str, tmp_path: Path) -> None:
    path = tmp_path / "qod.yaml"
    path.write_text(
        f"""
network: n
sources: {{s: {{schema: x int}}}}
operators:
  a: {{of: s, where: x > 0}}
  b: {{of: s, where: x > 1}}
outputs:
  high: {{of: a, qos: {{priority: 2, min_accuracy: 0.6}}}}
  low: {{of: b, qos: {{min_accuracy: 0.4}}}}
run: {{shedding: {{shedder: auto}}}}
profile: {{cost_us: {{a: 20, b: 30}}, rows_per_s: {{s: {rate}}}}}
"""
    )
    shown = CliRunner().invoke(app, ["explain", str(path)])
    assert "shedder auto: takes qod, because high, low have a minimum accuracy" in shown.output
    (line,) = [line for line in shown.output.splitlines() if line.startswith("qod would process: high")]
    assert line.endswith(f"of source rows (overload{paused})")


@pytest.mark.parametrize("name", ["taxi_drives", "neighbours"])
def test_the_applications_of_the_seed_are_sound(name: str) -> None:
    spec = jt.read_spec(f"examples/{name}.yaml")
    assert spec.run is not None
    assert spec.run.shedding.shedder == "qod"
    assert all(output.qos.min_accuracy > 0 for output in spec.graph().outputs)
