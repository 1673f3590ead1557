"""Events of batches: nobody can change them, they hold all that was measured, and any JSON reader takes them."""

from __future__ import annotations

import copy
import json
import logging
import pickle
import threading
from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest

import jettison as jt
from jettison.plan.drops.random import Random
from jettison.plan.drops.window import Fate, Window
from jettison.plan.plan import Plan
from jettison.statistics.arrival import TopicSample
from jettison.statistics.missing_results import MissingResults
from jettison.statistics.samples import BatchSample, FailedWindows, OutputSample
from jettison.telemetry.events import BatchEvent, batch_event
from jettison.telemetry.history import History
from jettison.telemetry.listeners import Listeners

pytestmark = pytest.mark.core

PLANNERS_OWN = {"values", "before", "groups", "worth", "delivered", "plan_row", "timed"}
"""Parts of a sample that an event does not write: samples for the planner, and what it has under another name."""


def network() -> jt.Network:
    net = jt.Network("shop")
    orders = net.source("orders", "order long, at timestamp, sum double", event_time="at")
    orders.where("sum > 0", name="paid").output("sums")
    orders.window("5 seconds").agg(n="count(*)", name="busy").output("counts")
    return net


def everything() -> BatchSample:
    """A batch in which all happened that can happen."""
    return BatchSample(
        7,
        1e12,
        1000.0,
        1800.0,
        {"orders": 100},
        arcs={"orders": (100, 80), "busy>counts": (10, 8)},
        outputs={
            "sums": OutputSample(70, (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, float("nan"))),
            "counts": OutputSample(8),
        },
        rejected={"orders": 1},
        timeless={"sums": 2},
        late={"busy": 3},
        gone={"orders": 4},
        skipped={"orders": 5},
        stale={"orders": 6},
        topics={"orders": TopicSample(10.0, 11, None)},
        parts_ms={"deciding": 12.0},
        failed={"busy": FailedWindows(13, "division by zero")},
        would={"orders": (100, 14)},
        would_deliver={"sums": 0.15},
        timeless_in={"busy": 16},
        unneeded={"busy": 17},
        cut={"busy": 0.5},
        arrived={"busy": 9},
        windows={"busy": (18.0, 9.0)},
        watermark_us={"busy": 19},
        unfit={"paid": 20},
        withheld={"busy": 21},
        missing={"busy": MissingResults(22.0, 44.0)},
    )


def event() -> BatchEvent:
    plan = Plan(
        {"orders": Random(0.8), "orders>busy": Window({"busy": Fate(5_000_000)}, 0.5)}, "overload", worth={"sums": 1}
    )
    return batch_event(network().graph, everything(), plan, budget_ms=900.0)


def test_the_house_an_event_cannot_be_changed() -> None:
    """It held the live dicts of the run: a listener that wrote into one changed the report of all others."""
    found = event()
    before = found.to_json()
    mappings: list[Any] = [
        *(getattr(found, each.name) for each in fields(found) if isinstance(getattr(found, each.name), dict)),
        *(getattr(found.sample, each.name) for each in fields(BatchSample)),
        *(getattr(found.plan, each.name) for each in fields(Plan)),
        found.plan.drops["orders>busy"].fates,  # type: ignore[attr-defined]
    ]
    mappings = [each for each in mappings if isinstance(each, dict)]
    assert len(mappings) > 25
    for mapping in mappings:
        for change in (
            lambda given: given.__setitem__("orders", 0),
            lambda given: given.update(orders=0),
            lambda given: given.pop("orders", None),
            lambda given: given.setdefault("new", 0),
            lambda given: given.clear(),
        ):
            with pytest.raises(TypeError, match="read-only: make a copy with dict"):
                change(mapping)
    with pytest.raises(FrozenInstanceError):
        found.load = 2.0  # type: ignore[misc]
    assert found.to_json() == before


def test_the_house_what_the_run_changes_later_changes_no_event() -> None:
    rows = {"orders": 100}
    found = batch_event(network().graph, BatchSample(0, 0.0, 1e3, 5e2, rows), Plan(), budget_ms=900.0)
    rows["orders"] = 5
    assert found.sample.rows_in == {"orders": 100}


def test_the_house_events_can_be_copied_and_sent() -> None:
    found = event()
    assert copy.deepcopy(found).to_json() == pickle.loads(pickle.dumps(found)).to_json() == found.to_json()


def test_the_house_an_event_writes_all_that_was_measured() -> None:
    found = event().to_dict()
    parts = {each.name for each in fields(BatchSample)} - PLANNERS_OWN
    assert parts <= set(found)
    for name in parts:
        assert found[name], name
    assert found["failed"] == {"busy": {"windows": 13, "reason": "division by zero"}}
    assert found["would"] == {"orders": {"came": 100, "dropped": 14}}
    assert found["windows"] == {"busy": {"closed": 18.0, "kept": 9.0}}
    assert found["results_dropped"] == {"busy>counts": 2}
    assert found["dropped"] == {"orders": 20}
    assert (found["over_budget"], found["mispredicted"]) == (True, False)


def test_the_house_the_json_of_an_event_is_that_of_the_standard() -> None:
    def refuse(word: str) -> None:
        raise AssertionError(word)

    text = event().to_json()
    assert "\n" not in text
    assert json.loads(text, parse_constant=refuse)["outputs"]["sums"]["latency_ms"]["max"] is None
    assert len(text) < 5_000


def test_the_house_listeners_that_throw_are_counted_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    heard: list[int] = []

    def broken(event: BatchEvent) -> None:
        raise KeyError("mine")

    listeners = Listeners()
    listeners.add(broken)
    listeners.add(lambda event: heard.append(event.sample.batch))
    with caplog.at_level(logging.WARNING, "jettison"):
        for _ in range(3):
            listeners.tell(event())
    assert heard == [7, 7, 7]
    assert listeners.failures == 3
    assert len([each for each in caplog.records if "broken failed" in each.getMessage()]) == 1


def test_the_house_history_may_be_read_by_another_thread() -> None:
    history = History(most_batches=50)
    wrong: list[object] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            batches = [sample.batch for sample, _ in history]
            if batches != list(range(batches[0], batches[0] + len(batches))) or len(batches) > 50:
                wrong.append(batches)
            last, three = history[-1][0].batch, [sample.batch for sample, _ in history[-3:]]
            if last < batches[-1] or three[-1] < last:
                wrong.append((batches[-1], last, three))

    history.append((BatchSample(0, 0.0, 1e3, 5e2, {}), Plan()))
    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for batch in range(1, 3000):
        history.append((BatchSample(batch, 0.0, 1e3, 5e2, {"s": batch}), Plan()))
    done.set()
    for thread in threads:
        thread.join(30)
    assert not wrong
    assert len(history) == 50
