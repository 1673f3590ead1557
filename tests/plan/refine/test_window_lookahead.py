"""Window drops of one batch, where windows of time stand over windows of rows."""

from __future__ import annotations

import pytest

from jettison.network import Network
from jettison.network.event_time.watermarks import BatchMarks, Mark
from jettison.plan.drops.window import Fate
from jettison.plan.plan import Plan
from jettison.plan.refine.window_lookahead import for_batch
from jettison.plan.windows.decisions import decisions_of
from jettison.plan.windows.fates import Schedule, Segment
from jettison.plan.windows.group_values import window_drops

pytestmark = pytest.mark.core


def test_windows_over_windows_of_rows_can_be_dropped() -> None:
    """Nobody knows when a window of rows closes: then results on the arc are judged one by one."""
    net = Network("nested")
    trips = net.source("trips", "trip long, at timestamp, zone int", event_time="at", id=["trip"])
    rows = trips.window("10 rows", slide="5 rows", by="zone").agg(n="count(*)", name="c")
    rows.output("out")
    rows.window("16 seconds", by="zone").agg(n="count(*)", name="nest").output("nested")
    decisions = decisions_of(net.graph)
    fate = Fate(16_000_000, Schedule((Segment(0, drop_share=0.5, gap=1, seed="nest"),)), 0.5)
    plan = Plan(window_drops(net.graph, decisions, {"nest": fate}))
    assert "c>nest" in plan.drops
    marks = BatchMarks(net.graph, {"nest": Mark(64_000_000, 32_000_000)})
    made = for_batch(decisions.arcs, plan, marks, 32_000_000)
    assert set(made.drops) <= set(plan.drops)
    assert made.fates == plan.fates
