"""When drops by value give way to chance, and when not (trust 3)."""

from __future__ import annotations

import pytest

from jettison.control.trust import Trust, by_chance_instead
from jettison.network import Network, QoS
from jettison.network.graph import Graph
from jettison.plan.plan import Plan, Random, Semantic
from jettison.plan.problem import Problem
from jettison.statistics.profile import Profile
from jettison.statistics.samples import BatchSample, OutputSample

pytestmark = pytest.mark.core

BY_VALUE = Semantic("x", (0.0, 1.0), (1.0, 0.0), keep=0.75)


def graph(floor: float) -> Graph:
    net = Network("one")
    net.source("s", "x int").where("x > 0", name="w").output("o", qos=QoS(min_accuracy=floor))
    return net.graph


@pytest.mark.parametrize(("floor", "keep"), [(0.0, 0.5), (0.75, 0.75)])
def test_what_goes_by_chance_instead_holds_the_floor(floor: float, keep: float) -> None:
    """The plan by value saves more than the same share by chance: more goes then, unless a floor forbids."""
    problem = Problem(graph(floor), Profile({"w": 10.0}, {}), {"s": 100}, 400.0)
    plan = by_chance_instead(problem, Plan({"s": BY_VALUE}, "overload", saves_us=500.0), ["s"])
    drop = plan.drops["s"]
    assert isinstance(drop, Random)
    assert drop.keep == pytest.approx(keep, abs=0.05)
    assert drop.keep >= floor


def sample(batch: int, rows: int) -> BatchSample:
    return BatchSample(batch, 0.0, 1000.0, 900.0, {"s": 1000}, {"s": (1000, 750)}, {"o": OutputSample(rows)})


def test_an_output_that_has_nothing_to_get_does_not_end_drops_by_value() -> None:
    """It had 50 rows once and none since: after one batch by chance that is known."""
    trust, by_value = Trust(graph(0.0)), 0
    plan = Plan({"s": BY_VALUE}, delivered={"o": 0.75})
    trust.record(plan, sample(0, 50))
    for batch in range(1, 201):
        chance = trust.batches_by_chance > 0
        by_value += not chance
        trust.record(Plan({"s": Random(0.75)}, delivered={"o": 0.75}) if chance else plan, sample(batch, 0))
    assert by_value >= 198
