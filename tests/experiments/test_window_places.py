"""Forced plans of the experiments on window drops: they drop what they say, where they say, without chance."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.experiments.support.trip_files import FIRST_US
from jettison.experiments.windows import fig_4_8, fig_4_10, table_4_4
from jettison.experiments.windows.window_figure import result
from jettison.experiments.windows.window_places import Place, Saved, drop_rate
from jettison.network import Network
from jettison.network.event_time.watermarks import BatchMarks, Mark
from jettison.plan.drops.window import Window
from jettison.plan.refine.window_lookahead import resolve_window_drops, without_idle
from jettison.plan.windows.drop_checks import check_window_drops
from jettison.plan.windows.window_arcs import WindowArcs
from jettison.spark.compile.drops import ALL, passes

pytestmark = pytest.mark.core

S = 1_000_000
FIGURES = [
    *((fig_4_8.network_of(4), place, 400) for place in fig_4_8.PLACES),
    *((fig_4_10.network_of(4), place, 80) for place in fig_4_10.PLACES),
]


@pytest.mark.parametrize(("network", "place", "batch_s"), FIGURES, ids=lambda each: getattr(each, "name", None))
@pytest.mark.parametrize("share", [0.5, 0.75, 1.0])
def test_every_batch_loses_the_same_share_at_each_place(
    network: Network, place: Place, batch_s: int, share: float
) -> None:
    plan, arcs = place.plan(network, share), WindowArcs(network.graph)
    check_window_drops(arcs, plan)
    early = {arc: drop for arc, drop in plan.drops.items() if isinstance(drop, Window) and drop.of is None}
    assert bool(early) != bool(place.by_chance)
    assert not set(place.left_out) & set(early)
    for arc, drop in early.items():
        for batch in range(3):
            low_us = FIRST_US + batch * batch_s * S
            needs = arcs.needs(arc, drop.fates, low_us, low_us + batch_s * S)
            within = sum(min(end, low_us + batch_s * S) - max(start, low_us) for start, end in needs)
            assert within == pytest.approx((1 - share) * batch_s * S), arc


@pytest.mark.parametrize("shape", table_4_4.SHAPES)
@pytest.mark.parametrize("batch", [2, 5])
def test_a_drop_that_drops_nothing_is_left_out_or_asked(shape: str, batch: int) -> None:
    network = table_4_4.network_of(shape)
    arcs = WindowArcs(network.graph)
    (low_us, high_us), sight_us = (FIRST_US + (batch + n) * 10 * S for n in range(2)), 40 * S
    marks = {each.name: Mark(low_us - 1, low_us - 10 * S) for each in network.graph.aggregates}
    plans = [table_4_4.plan_of(network, variant, batch) for variant in ("kept", "judged")]
    kept, judged = (
        without_idle(resolve_window_drops(arcs, plan, BatchMarks(network.graph, marks), sight_us)) for plan in plans
    )
    assert all(passes(arc, kept) == ALL for arc in kept.arcs)
    assert "trips" not in kept.arcs
    drop = judged.drops["trips"]
    assert isinstance(drop, Window)
    assert drop.resolved is not None
    needed = drop.resolved.needed
    assert needed is not None
    assert needed.all_within(low_us, high_us)
    assert not needed.all_within(high_us, low_us + sight_us)


@given(
    excess=st.floats(0.01, 5.0),
    work_ms=st.floats(1.0, 1000.0),
    part=st.floats(0.01, 1.0),
)
def test_what_is_dropped_makes_room_or_all_of_it_goes(excess: float, work_ms: float, part: float) -> None:
    saved_ms = part * work_ms
    rate = drop_rate(excess, work_ms, saved_ms)
    left_ms = (1 + excess) * (work_ms - rate * saved_ms)
    assert left_ms == pytest.approx(work_ms) or (rate == 1.0 and left_ms > work_ms)
    assert drop_rate(excess, work_ms, min(work_ms, 1.5 * saved_ms)) <= rate


@pytest.mark.parametrize(
    ("change", "holds"),
    [
        ({}, (True, True)),
        ({("input", 0.5): {"trips": 0.6}}, (False, True)),  # more came in than kept windows need
        ({("middle", 0.5): {"trips": 0.9, "tens>between": 0.5}}, (False, True)),  # some went before the middle
        ({("random", 1.0): {"trips": 0.0}}, (False, True)),
        ({("middle", 1.0): {"trips": 1.0, "tens>between": 0.1}}, (True, False)),
        ({("middle", 0.5): {"trips": 1.0}}, (True, False)),  # nothing stands in the middle
    ],
)
def test_what_was_counted_says_where_drops_stood(
    change: dict[tuple[str, float], dict[str, float]], holds: tuple[bool, bool]
) -> None:
    places = ("input", "middle", "random")
    after_ms = {(place, share): 100.0 for place in places for share in (0.5, 1.0)}
    passed = {("input", share): {"trips": 1 - share, "hundreds>behind": 1.0} for share in (0.5, 1.0)}
    passed |= {("middle", share): {"trips": 1.0, "tens>between": 1 - share} for share in (0.5, 1.0)}
    passed |= {("random", share): {"trips": 1.0, "hundreds>behind": 1 - share} for share in (0.5, 1.0)}
    checks = result("fig", Saved(500.0, 50.0, after_ms, True, {**passed, **change}), places, "title").checks
    assert tuple(checks[name] for name in checks if name.startswith("counted: ")) == holds
