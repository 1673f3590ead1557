"""Without `learn` the same rows get the same plans, whatever the clock says (Trust 8)."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Collection

import pytest

import jettison as jt
from jettison.control.loop import Controller, Settings
from jettison.network.event_time.watermarks import BatchMarks, Mark
from jettison.plan.plan import Plan
from jettison.statistics.profile import Profile
from jettison.statistics.samples import BatchSample, OutputSample, ValueSample

pytestmark = pytest.mark.core

S = 1_000_000


def windowed() -> tuple[jt.Graph, Profile]:
    net = jt.Network("windows")
    trips = net.source("t", "at timestamp, x int", event_time="at")
    trips.window("2 seconds").agg(n="count(*)", name="busy").output("table", qos=jt.QoS(gap=4))
    return net.graph, Profile({"t": 1.0, "busy": 1.0}, {"busy": 0.001}, fixed_ms=200.0, read_us={"t": 0.2})


def valued() -> tuple[jt.Graph, Profile]:
    net = jt.Network("valued")
    trips = net.source("t", "at timestamp, x double", event_time="at")
    value = jt.Value("x", [(0, 50, 0.0, 0.5), (50, 100, 0.5, 1.0)])
    trips.where("x > 0", name="w").output("table", qos=jt.QoS(value=value))
    return net.graph, Profile({"t": 1.0, "w": 2.0}, {}, fixed_ms=200.0, read_us={"t": 0.2})


def plain() -> tuple[jt.Graph, Profile]:
    net = jt.Network("plain")
    net.source("t", "at timestamp, x double", event_time="at").where("x > 0", name="w").output("table")
    return net.graph, Profile({"t": 1.0, "w": 2.0}, {}, fixed_ms=200.0, read_us={"t": 0.2})


def plans(made: Callable[[], tuple[jt.Graph, Profile]], seed: int, restarts: Collection[int] = ()) -> list[Plan]:
    """Thirty batches of the same rows, on a machine and with a clock whose whims are drawn from a seed; before some
    batches it is started again, with what the log has of the batch before."""
    graph, profile = made()
    whims, ticks = random.Random(seed), [0.0]

    def clock() -> float:
        ticks[0] += whims.uniform(0.0, 0.1)
        return ticks[0]

    controller = Controller(graph, Settings(1000.0, learn=False), profile, clock=clock)
    found, now_s = [], 0.0
    for batch in range(30):
        rows = {"t": 220_000 + 10_000 * (batch % 7)} if graph.name == "plain" else {"t": 500_000 + 40_000 * (batch % 7)}
        if batch in restarts:
            last, memory = found[-1], controller.memory()
            controller = Controller(graph, Settings(1000.0, learn=False), profile, clock=clock)
            controller.restore_fates(last)
            controller.restore(Plan.from_json(last.to_json()), json.loads(json.dumps(memory)))
        event_us = (batch + 1) * S
        marks = BatchMarks(graph, {"busy": Mark(event_us - S if batch else None, event_us - 2 * S if batch else None)})
        interval_s = whims.uniform(0.5, 3.0)
        now_s += interval_s
        found.append(controller.decide(rows, 1000 * now_s, marks=marks if graph.aggregates else None))
        values = {"t.x": ValueSample(1000, tuple(float((batch * 7 + each) % 100) for each in range(100)))}
        controller.record(
            BatchSample(
                batch,
                1000 * now_s,
                1000 * interval_s,
                1000 * whims.uniform(0.3, 2.5),
                rows,
                arcs={},
                outputs={"table": OutputSample(10)},
                values=values if graph.tracks.all else {},
            )
        )
    return found


@pytest.mark.parametrize("made", [windowed, valued])
def test_trust_8_the_same_rows_get_the_same_plans_by_any_clock(made: Callable[[], tuple[jt.Graph, Profile]]) -> None:
    one, *others = [plans(made, seed) for seed in range(4)]
    assert all(plan.sheds for plan in one[2:])
    for other in others:
        differing = [batch for batch, (a, b) in enumerate(zip(one, other, strict=True)) if a.to_json() != b.to_json()]
        assert not differing, f"{len(differing)} of {len(one)} plans differ, the first in batch {differing[0]}"


@pytest.mark.parametrize("made", [plain, windowed])
def test_trust_8_plans_after_a_restart_are_those_of_an_undisturbed_run(
    made: Callable[[], tuple[jt.Graph, Profile]],
) -> None:
    """Arrival rates and the plan in force were forgotten: plans differed for several batches."""
    one, other = plans(made, 1), plans(made, 1, restarts=(3, 10, 17))
    differing = [batch for batch, (a, b) in enumerate(zip(one, other, strict=True)) if a.to_json() != b.to_json()]
    assert not differing


def test_trust_8_a_calm_stream_of_windows_is_not_shed() -> None:
    graph, profile = windowed()
    controller = Controller(graph, Settings(1000.0, learn=False), profile)
    for batch in range(5):
        plan = controller.decide({"t": 100_000}, 5000.0 * batch, marks=BatchMarks(graph, {"busy": Mark(None, None)}))
        assert not plan.sheds
