"""Window drops, resolved for one batch before the plan is logged."""

from __future__ import annotations

import json

import numpy as np
import pytest

from jettison.network import Network
from jettison.network.event_time.watermarks import BatchMarks, Mark
from jettison.plan.drops.window import Fate, Window
from jettison.plan.plan import Plan
from jettison.plan.refine.resolver import WindowDropResolver
from jettison.plan.refine.window_lookahead import is_resolved, resolve_window_drops, unresolved
from jettison.plan.windows.decisions import decisions_of
from jettison.plan.windows.fates import Schedule, Segment
from jettison.plan.windows.group_values import window_drops
from jettison.plan.windows.need_bits import Needed, needed_bits
from jettison.plan.windows.window_arcs import WindowArcs

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
    made = resolve_window_drops(decisions.arcs, plan, marks, 32_000_000)
    assert set(made.drops) <= set(plan.drops)
    assert made.fates == plan.fates


def network() -> Network:
    net = Network("taxi")
    trips = net.source("trips", "trip long, at timestamp, zone int", event_time="at", id=["trip"])
    trips.window("10 seconds", by="zone").agg(n="count(*)", name="busy").output("table")
    return net


def forced(net: Network, share: float = 0.5) -> Plan:
    fate = Fate(10_000_000, Schedule((Segment(0, drop_share=share, gap=3, seed="busy"),)), share)
    return Plan(window_drops(net.graph, decisions_of(net.graph), {"busy": fate}), "forced", row=1)


def test_a_resolved_plan_is_logged_to_the_last_literal() -> None:
    net = network()
    marks = BatchMarks(net.graph, {"busy": Mark(64_000_000, 32_000_000)})
    made = resolve_window_drops(WindowArcs(net.graph), forced(net), marks, 32_000_000)
    assert is_resolved(made)
    assert not is_resolved(forced(net))
    again = Plan.from_json(made.to_json())
    assert again == made
    assert unresolved(again) == forced(net), "the loop goes on with the plan in force"
    drop = again.drops["trips"]
    assert isinstance(drop, Window)
    assert drop.resolved is not None
    assert drop.resolved.needed is not None


def test_a_resolved_plan_stays_as_it_is_whatever_is_known_by_then() -> None:
    """A batch that is repeated in a new process, which knows of no earlier batch, obeys the log."""
    net = network()
    marks = [BatchMarks(net.graph, {"busy": Mark(at, at - 30_000_000)}) for at in (64_000_000, 74_000_000)]
    first = WindowDropResolver(net.graph)
    first.resolve(Plan(), marks[0], 100)
    logged = first.resolve(forced(net), marks[1], 100)
    later = WindowDropResolver(net.graph)
    assert later.resolve(forced(net), marks[1], 100) != logged, "without a lookahead more is worked out"
    assert later.resolve(Plan.from_json(logged.to_json()), marks[1], 100) == logged


def test_the_log_says_what_early_window_drops_changed(caplog: pytest.LogCaptureFixture) -> None:
    net = network()
    marks = BatchMarks(net.graph, {"busy": Mark(64_000_000, 32_000_000)})
    with caplog.at_level("DEBUG", "jettison"):
        WindowDropResolver(net.graph).resolve(forced(net), marks, 100)
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith(
        "network taxi: early window drops: trips keeps the same share by window, by event time in this batch, known "
        "from 60 s to "
    )
    assert said.endswith("busy>table keeps the same share by window, by the fates of its windows in this batch")


@pytest.mark.parametrize(("share", "most"), [(0.5, 1_000), (0.0, 300), (0.9, 8_000)])
def test_a_plan_stays_small_in_the_log(share: float, most: int) -> None:
    rng = np.random.default_rng(1)
    kept = np.arange(32_768) % 4 == 0 if share == 0.5 else rng.random(32_768) >= share
    needs = [(int(at) * 1_000_000, int(at + 1) * 1_000_000) for at in np.flatnonzero(kept)]
    needed = needed_bits(needs, 0, 32_768 * 1_000_000, 1_000_000, 5_000_000)
    assert Needed.from_dict(json.loads(json.dumps(needed.to_dict()))) == needed
    assert len(json.dumps(needed.to_dict())) < most
