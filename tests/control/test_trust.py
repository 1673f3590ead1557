"""When drops by value give way to chance, and when not (trust 3)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jettison.control.trust import Trust
from jettison.network import Network, QoS
from jettison.network.graph import Graph
from jettison.plan.drops.random import Random
from jettison.plan.drops.semantic import Semantic
from jettison.plan.plan import Plan
from jettison.plan.problem import Problem
from jettison.plan.refine.doubt import by_chance_instead
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
    return BatchSample(
        batch, 0.0, 1000.0, 900.0, {"s": 1000}, arcs={"s": (1000, 750)}, outputs={"o": OutputSample(rows)}
    )


def test_an_output_that_has_nothing_to_get_does_not_end_drops_by_value() -> None:
    """Another one gets rows by value as before, and nothing was expected here."""
    net = Network("two")
    kept = net.source("s", "x int").where("x > 0", name="w")
    kept.output("o")
    kept.where("x > 9", name="v").output("none")
    trust, plan = Trust(net.graph), Plan({"s": BY_VALUE}, delivered={"o": 0.75, "none": 0.75})
    for batch in range(200):
        seen = replace(sample(batch, 50), outputs={"o": OutputSample(50), "none": OutputSample(0)})
        trust.record(plan, seen, {"o": 55.0, "none": 1.0})
        assert trust.batches_by_chance == 0


def test_trust_3_while_nothing_comes_batches_go_by_chance() -> None:
    """Nobody can say which values pass the filter when none does: the first that do are not to be missed."""
    trust, by_value = Trust(graph(0.0)), 0
    plan = Plan({"s": BY_VALUE}, delivered={"o": 0.75})
    trust.record(plan, sample(0, 50), {"o": 50.0})
    for batch in range(1, 21):
        chance = trust.batches_by_chance > 0
        by_value += not chance
        trust.record(Plan({"s": Random(0.75)}, delivered={"o": 0.75}) if chance else plan, sample(batch, 0))
    assert by_value <= 2
    trust.record(Plan({"s": Random(0.75)}, delivered={"o": 0.75}), sample(21, 40))
    assert trust.batches_by_chance == 0


@pytest.mark.parametrize(("counted", "expected", "gives_way"), [(0, 50.0, True), (3, 50.0, True), (30, 50.0, False)])
def test_trust_3_rows_that_do_not_reach_the_output_count(counted: int, expected: float, gives_way: bool) -> None:
    """All that was planned passed the drop, and a filter below it removed it."""
    trust = Trust(graph(0.0))
    trust.record(Plan({"s": BY_VALUE}, delivered={"o": 0.75}), sample(0, counted), {"o": expected})
    assert (trust.batches_by_chance > 0) == gives_way
