"""`_sic`: of rows the share of their batch, of windows that of their time, against tuples with event times."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.network import Network
from jettison.statistics.profile import Profile
from jettison.statistics.records import Records
from jettison.statistics.samples import BatchSample
from jettison.statistics.sic.results import MOST_ENTRIES, Entry, WindowEntries, entry_of, last_windows, planned_shares

pytestmark = pytest.mark.core


@given(seed=st.integers(0, 10**6))
def test_a_window_has_the_share_of_the_tuples_of_its_time(seed: int) -> None:
    """Tuples come in order, evenly within a batch; windows begin and end between batches or in them."""
    chance = random.Random(seed)
    entries, tuples, now = WindowEntries(), [], 0
    for _ in range(chance.randint(1, 8)):
        length, rows, keep = chance.randint(50, 200), chance.choice([0, 200, 1000]), chance.random()
        kept = [chance.random() < keep for _ in range(rows)]
        tuples += [(now + length * row / rows, stays) for row, stays in enumerate(kept)]
        entries = entries.plus(Entry(now, {"s": float(rows)}, {"s": float(sum(kept))}))
        now += length
    start = chance.randint(0, now - 1)
    end = chance.randint(start + 40, start + 400)
    inside = [stays for at, stays in tuples if start <= at < end]
    if len(inside) > 100:
        assert entries.share(start, end, until_us=now) == pytest.approx(sum(inside) / len(inside), abs=0.12)
    assert entries.share(0, now, until_us=now) == pytest.approx(
        sum(stays for _, stays in tuples) / len(tuples) if tuples else 1.0
    )


def test_batches_that_are_out_of_order_empty_or_the_first_break_nothing() -> None:
    entries = WindowEntries().plus(Entry(None, {"s": 10.0}, {"s": 5.0}))
    assert entries.share(0, 10, until_us=None) == 0.5
    assert entries.share(0, 10, until_us=20) == 0.5
    entries = entries.plus(Entry(20, {"s": 10.0}, {"s": 10.0})).plus(Entry(20, {"s": 0.0}, {"s": 0.0}))
    assert entries.share(20, 30, until_us=20) == 1.0
    assert entries.share(100, 110, until_us=20) == 1.0
    assert len(entries.plus(Entry(40, {"s": 1.0}, {"s": 1.0}), needed_us=20).entries) == 2


def test_windows_that_never_close_do_not_fill_the_memory() -> None:
    entries = WindowEntries((Entry(0, {"s": 1.0}, {"s": 1.0}),) * MOST_ENTRIES)
    for second in range(3):
        entries = entries.plus(Entry(second, {"s": 1.0}, {"s": 0.0}))
    assert len(entries.entries) == MOST_ENTRIES
    assert sum(each.came["s"] for each in entries.entries) == MOST_ENTRIES + 3


def test_windows_that_go_whole_take_nothing_from_those_that_stay() -> None:
    net = Network("windows")
    trips = net.source("s", "at timestamp", event_time="at")
    trips.window("1 minute").agg(n="count(*)", name="busy").where("n > 0", name="any").output("o")
    trips.output("rows")
    graph = net.graph
    assert last_windows(graph, "rows") is None
    found = last_windows(graph, "o")
    assert found is not None
    assert found.name == "busy"
    counts = {"s": (100, 60), "busy>any": (10, 5)}
    sample = BatchSample(0, 0.0, 1e3, 9e2, {"s": 100}, skipped={"s": 100}, arcs=counts, unneeded={"busy": 7})
    entry = entry_of(graph, "o", sample, by_window=["s", "busy>any"], from_us=3)
    assert (entry.came, entry.used) == ({"s": 200.0}, {"s": 100.0})


def test_rows_have_what_the_plan_lets_through() -> None:
    net = Network("rows")
    left, right = net.source("l", "x int"), net.source("r", "x int")
    left.where("x > 0", name="w").output("one")
    left.where("true", name="v").union(right, name="u").output("both")
    graph, profile = net.graph, Profile({}, {"w": 0.25})
    shares = planned_shares(graph, profile, Records({"l": 80, "r": 3}, gone={"l": 20}), {"l": 0.5, "w>one": 0.5})
    assert shares["one"] == pytest.approx((40 - 5) / 100)
    assert shares["both"] == pytest.approx((0.4 + 1.0) / 2)
    assert planned_shares(graph, profile, Records({"l": 80, "r": 3}), {"l>v": 0.0})["both"] == 0.5
