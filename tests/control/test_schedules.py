"""Shares of windows become schedules that never change their mind about a window that a tuple was in."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks import steady

import jettison as jt
from jettison.control.schedules import scheduled
from jettison.network.marks import BatchMarks, Mark
from jettison.plan.fate import keep
from jettison.plan.plan import Fate, Plan
from jettison.plan.window_decisions import WindowDecisions, decisions_of

pytestmark = pytest.mark.core

S = 1_000_000


def network(**qos: object) -> jt.Network:
    net = jt.Network("taxi")
    trips = net.source("trips", "at timestamp, fare double", event_time="at")
    busy = trips.window("10 seconds", delay="2 seconds").agg(n="count(*)", name="busy")
    busy.output("table", qos=jt.QoS(**qos))  # type: ignore[arg-type]
    return net


def asking(decisions: WindowDecisions, share: float) -> Plan:
    asked = {"busy": share}
    return Plan(decisions.arcs.drops(decisions.fates(asked), decisions.keeps(asked)), "overload")


@steady(60)
@given(st.lists(st.tuples(st.integers(0, 25), st.sampled_from((0.0, 0.2, 0.5, 0.75, 1.0))), min_size=2, max_size=25))
def test_a_window_that_was_touched_keeps_its_fate(steps: list[tuple[int, float]]) -> None:
    graph = network(gap=3).graph
    decisions = decisions_of(graph)
    fates: dict[str, Fate] = {}
    newest, mark = None, None
    said: dict[int, bool] = {}
    for ahead, share in steps:
        marks = BatchMarks(graph, {"busy": Mark(newest, mark)})
        plan = scheduled(decisions, asking(decisions, share), fates, marks)
        assert Plan.from_json(plan.to_json()) == plan
        fates = plan.fates
        fate = fates.get("busy")
        first = 0 if mark is None else max(0, (mark - 10 * S) // (10 * S) + 1)
        mark = None if newest is None else max(mark or newest - 2 * S, newest - 2 * S)
        newest = (newest or 0) + ahead * S  # what this batch brings
        for index in range(first, newest // (10 * S) + 1):
            now = fate is None or keep(fate.schedule, index)
            assert said.setdefault(index, now) == now
        assert fate is None or len(fate.schedule.segments) <= 8, "what has closed is forgotten"
    closes = any(share == 1.0 for _, share in steps)
    missing = "".join("x" if said[index] else "." for index in sorted(said)).split("x")
    assert closes or max(map(len, missing)) <= 3


def test_an_output_that_is_closed_is_named() -> None:
    decisions = decisions_of(network(gap=3).graph)
    plan = scheduled(decisions, asking(decisions, 1.0), {}, BatchMarks(network().graph, {}))
    assert plan.reason == "overload: dropping as many windows as may go is not enough, table closed"
    assert plan.fates["busy"].schedule.segments[-1].closed
    assert not plan.closes("trips"), "windows that have begun are finished"


def test_what_must_not_lose_windows_any_more_finishes_what_it_has() -> None:
    before = decisions_of(network(gap=3).graph)
    marks = BatchMarks(network().graph, {"busy": Mark(95 * S, 80 * S)})
    old = scheduled(before, asking(before, 0.75), {}, BatchMarks(network().graph, {})).fates
    after = decisions_of(network(on_loss="ignore").graph)
    fate = scheduled(after, Plan(), old, marks).fates["busy"]
    assert [keep(fate.schedule, index) for index in range(8, 10)] == [
        keep(old["busy"].schedule, index) for index in range(8, 10)
    ]
    assert all(keep(fate.schedule, index) for index in range(10, 40))
