"""What a list of queries shows, from events to the ledger's records, and what is left out."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from jettison.network import Graph, Network
from jettison.plan.plan import Plan
from jettison.statistics.samples import LATENCY_QUANTILES, BatchSample, OutputSample
from jettison.statistics.sic import SicWindow
from jettison.telemetry.events import batch_event
from jettison.telemetry.queries import query_lines, query_record, recent_records, sic_batches

pytestmark = pytest.mark.core

LATE = tuple(100.0 * (n + 1) for n in range(len(LATENCY_QUANTILES)))


def two_queries() -> Graph:
    net = Network("two")
    source = net.source("s", "x int")
    source.where("x > 0", name="a").output("one")
    source.where("x > 5", name="b").output("two")
    return net.graph


def records(kept: list[int]) -> list[dict[str, object]]:
    """The records of batches of two seconds in which so many of 100 tuples reach query two, the newest first."""
    graph, found = two_queries(), []
    window = SicWindow(graph, 10_000.0)
    for number, each in enumerate(kept):
        outputs = {"one": OutputSample(40, LATE), "two": OutputSample(each // 2)}
        sample = BatchSample(number, 0.0, 2e3, 9e2, {"s": 100}, arcs={"s>b": (100, each)}, outputs=outputs)
        window = window.after(sample)
        event = batch_event(graph, sample, Plan(), budget_ms=900.0, sic=window.all())
        found.append(json.loads(json.dumps(query_record(event, window))))
    return found[::-1]


def test_the_lowest_sic_comes_first_and_rates_are_over_the_window() -> None:
    two, one = query_lines(records([100, 50, 0, 50]))
    assert (two.name, two.sic) == ("two", 0.5)
    assert (two.tuples_per_s, two.lost_per_s, two.rows_per_s) == (25.0, 25.0, 12.5)
    assert (two.p50_ms, two.p95_ms) == (None, None)
    assert (one.name, one.sic, one.lost_per_s, one.tuples_per_s) == ("one", 1.0, 0.0, 50.0)
    assert (one.p50_ms, one.p95_ms) == (400.0, 600.0)


def test_rates_are_over_so_many_seconds_as_asked_for() -> None:
    two, _ = query_lines(records([100, 100, 100, 0]), seconds=2.0)
    assert (two.tuples_per_s, two.lost_per_s, two.sic) == (0.0, 50.0, 0.75)


def test_records_of_earlier_versions_end_the_list() -> None:
    assert query_lines([{"batch": 7, "entries": []}]) == []
    assert query_lines([]) == []
    found = [*records([100, 50]), {"batch": 0, "entries": []}, *records([0])]
    recent = list(recent_records(found, 10_000.0))
    assert len(recent) == 2
    assert SicWindow.restored(two_queries(), 10_000.0, sic_batches(recent)).sic("two") == 0.75


def test_rates_of_a_query_that_came_lately_are_over_the_time_since() -> None:
    """Query two came with the last of four batches of two seconds, in which 50 of 100 tuples reached it."""
    found = records([50, 50, 50, 50])
    for record in found[1:]:
        del record["queries"]["two"]  # type: ignore[attr-defined]
    two, one = query_lines(found, 100.0)
    assert (two.name, two.tuples_per_s, two.lost_per_s, two.rows_per_s) == ("two", 25.0, 25.0, 12.5)
    assert (one.name, one.tuples_per_s, one.rows_per_s) == ("one", 50.0, 20.0)


def test_a_window_is_restored_from_no_more_records_than_it_needs() -> None:
    read = 0

    def endless() -> Iterator[dict[str, object]]:
        nonlocal read
        while True:
            read += 1
            yield records([50])[0]

    recent = list(recent_records(endless(), 10_000.0))
    assert (len(recent), read) == (5, 6)
    assert SicWindow.restored(two_queries(), 10_000.0, sic_batches(recent)).sic("two") == 0.5
