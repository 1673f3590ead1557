"""Trust 11: a dry run says what a run that sheds would drop, also of a burst that its backlog absorbs."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from jettison.control.catch_up import most_rows
from jettison.control.dry_run import DryRun
from jettison.control.loop import Controller, Settings
from jettison.network import Network
from jettison.network.graph import Graph
from jettison.statistics.profile import Profile
from jettison.statistics.samples import BatchSample, OutputSample

pytestmark = pytest.mark.core

TRIGGER_MS = 1000.0
PROFILE = Profile({"w": 10.0, "o": 8.0}, {}, fixed_ms=20.0, read_us={"s": 1.0}, drop_us=0.05)
USUAL_ROWS_PER_S = 28_000.0  # six tenths of what fits
BURST_S = (20.0, 30.0)


def network() -> Graph:
    net = Network("one")
    net.source("s", "x int").where("x > 0", name="w").output("o")
    return net.graph


def rate(second: float, times: float) -> float:
    return USUAL_ROWS_PER_S * (times if BURST_S[0] <= second < BURST_S[1] else 1.0)


@dataclass
class Told:
    arrived: int = 0
    dropped: int = 0
    """Of the stream as it was shed, or would have been."""
    longest_s: float = 0.0


def ran(*, dry: bool, learn: bool, times: float, bounded: bool, until_s: float = 90.0) -> Told:
    """Batch by batch, on a machine that takes what the profile says."""
    graph, told = network(), Told()
    settings = Settings(TRIGGER_MS, learn=learn, obeyed=not dry)
    controller = Controller(graph, settings, PROFILE)
    planner = DryRun(controller)
    now_s, began_s, waiting, done_s = 0.0, 0.0, 0.0, 0.0
    bound = float("inf")
    for batch in range(10_000):
        while done_s < now_s:
            waiting += 0.01 * rate(done_s, times)
            done_s += 0.01
        if now_s >= until_s and waiting < USUAL_ROWS_PER_S * 2:
            return told
        count = round(min(waiting, bound))
        waiting -= count
        rows, interval_ms = {"s": count}, 1000 * (now_s - began_s)
        plan = planner.decide(rows, interval_ms) if dry else controller.decide(rows, 1000 * now_s)
        keep = 1.0 if dry else plan.keep("s")
        took_ms = 20.0 + count * (1.0 + 18.0 * keep) / 1000
        arcs = {} if dry or keep == 1.0 else {"s": (count, round(keep * count))}
        out = {"o": OutputSample(round(keep * count))}
        controller.record(BatchSample(batch, 1000 * now_s, interval_ms, took_ms, rows, arcs=arcs, outputs=out))
        told.arrived += count
        if dry:
            told.dropped += sum(gone for _, gone in planner.dropped.values())
        else:
            told.dropped += count - round(keep * count)
        if bounded:
            bound = most_rows(graph, PROFILE, rows, settings.budget_us, unshed=False, largest=0)["s"]
        told.longest_s = max(told.longest_s, took_ms / 1000)
        began_s, now_s = now_s, max(now_s + TRIGGER_MS / 1000, now_s + took_ms / 1000)
    raise AssertionError("never caught up")


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("times", [3.0, 5.0, 8.0])
@pytest.mark.parametrize("learn", [True, False])
def test_trust_11_of_a_burst_a_dry_run_says_what_a_real_one_sheds(learn: bool, times: float, bounded: bool) -> None:
    dry = ran(dry=True, learn=learn, times=times, bounded=bounded)
    real = ran(dry=False, learn=learn, times=times, bounded=False)
    assert dry.arrived == pytest.approx(real.arrived, rel=0.1)  # it runs on until it has caught up
    assert real.dropped > 0.1 * real.arrived
    assert real.longest_s < 1.0 < 5.0 < dry.longest_s
    assert dry.dropped == pytest.approx(real.dropped, rel=0.15)


def test_trust_11_without_an_overload_nothing_would_be_dropped() -> None:
    assert ran(dry=True, learn=True, times=1.0, bounded=True).dropped == 0


def test_trust_11_a_burst_after_a_quiet_spell_would_be_shed() -> None:
    """Spark runs no batch while nothing comes: the time of the quiet spell brought no rows."""

    def kept(quiet_ms: float) -> float:
        controller = Controller(network(), Settings(TRIGGER_MS, obeyed=False), PROFILE)
        planner = DryRun(controller)
        for batch in range(3):
            planner.decide({"s": 1000}, TRIGGER_MS)
            planner.record(BatchSample(batch, 0.0, TRIGGER_MS, 40.0, {"s": 1000}))
        planner.decide({"s": 20 * round(USUAL_ROWS_PER_S)}, quiet_ms)
        return planner.delivered["o"]

    assert kept(TRIGGER_MS) < 0.9
    assert kept(30 * TRIGGER_MS) == pytest.approx(kept(TRIGGER_MS), abs=0.02)
