"""The simulator takes the same road as Spark: windows are scheduled, resolved and dropped whole, within their gaps."""

from __future__ import annotations

import numpy as np
import pytest

import jettison as jt
from jettison.plan.drops.window import Window
from jettison.plan.windows.fates import kept
from jettison.sim.engine import simulate
from jettison.statistics.profile import Profile

pytestmark = pytest.mark.core

COSTS = Profile({"trips": 1.0, "busy": 3.0}, {"busy": 0.01}, fixed_ms=100.0)
GAP = 4


def network() -> jt.Graph:
    net = jt.Network("windows")
    trips = net.source("trips", "at timestamp, zone int", event_time="at")
    trips.window("2 seconds").agg(n="count(*)", name="busy").output("table", qos=jt.QoS(gap=GAP))
    return net.graph


@pytest.mark.parametrize("shedder", ["semantic", "exact", "input-uniform"])
def test_windows_go_whole_within_their_gap_and_batches_keep_up(shedder: str) -> None:
    """300,000 rows/s take 1.2 s of a second: about two in five windows must go."""
    result = simulate(network(), COSTS, {"trips": 300_000}, trigger_ms=1000, seconds=120, shedder=shedder, noise=False)
    assert result.uncertified == 0
    plans = [batch.plan for batch in result.batches[10:]]
    assert all(isinstance(drop, Window) and drop.resolved is not None for plan in plans for drop in plan.drops.values())
    fates = [plan.fates["busy"] for plan in plans]
    assert 0.25 < np.mean([fate.drop_share for fate in fates]) < 0.65
    # windows of two seconds, batches of one: but for those that were late, all of a batch stays or nothing
    shares = [batch.keeps.get("trips", 1.0) for batch in result.batches[10:]]
    assert np.mean([share in (0.0, 1.0) for share in shares]) > 0.7
    schedule = fates[-1].schedule
    first = schedule.segments[0].start
    gone = ~kept(schedule, np.arange(first, first + 200))
    runs = "".join("x" if each else " " for each in gone).split()
    assert max(map(len, runs)) <= GAP
    assert np.mean([batch.duration_ms for batch in result.batches[10:]]) <= 900
    assert result.batches[-1].started_ms == pytest.approx(120_000, abs=8000)


def test_without_an_overload_no_window_goes() -> None:
    result = simulate(network(), COSTS, {"trips": 100_000}, trigger_ms=1000, seconds=30, noise=False)
    assert not any(batch.plan.sheds for batch in result.batches)
    assert result.outputs["table"].delivered_share == 1.0
