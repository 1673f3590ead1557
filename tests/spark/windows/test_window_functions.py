"""Every aggregate function, merged from slices, gives what Spark's own gives; late rows are left out and counted."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.spark.windowing import Hand, Row, S, by_spark, frame_of, source, trips_of

import jettison as jt
from jettison.errors import CheckpointError, StartError
from jettison.network.windows.aggregates import KNOWN
from jettison.plan.drops.random import Random
from jettison.plan.plan import Plan

pytestmark = pytest.mark.spark

EXACT = {
    "a": "count(*)",
    "b": "count(fare)",
    "c": "count_if(fare > 20)",
    "d": "sum(CAST(fare AS decimal(10, 2)))",
    "e": "avg(fare)",
    "f": "mean(trip)",
    "g": "avg(CAST(fare AS decimal(10, 2)))",
    "h": "min(kind)",
    "i": "max(fare)",
    "j": "max_by(trip, struct(fare, trip))",
    "k": "min_by(trip, struct(fare, trip))",
    "l": "bool_and(fare > 1)",
    "m": "bool_or(fare > 48)",
    "n": "stddev(1e9 + fare)",
    "o": "stddev_samp(fare)",
    "p": "stddev_pop(fare)",
    "q": "variance(fare)",
    "r": "var_samp(fare)",
    "s": "var_pop(fare)",
    "t": "approx_count_distinct(fare)",
    "u": "percentile_approx(fare, 0.5)",
    "v": "approx_percentile(trip, array(0.25, 0.9), 500)",
    "w": "collect_list(fare)",
    "x": "collect_set(kind)",
    "y": "count(DISTINCT fare)",
    "z": "avg(9e17 + trip)",
    "big": "avg(9000000000000000000 + 0 * trip)",
}
BY_TIME = {
    "one": ("first(trip)", "min_by(trip, at)"),
    "two": ("last(fare, true)", "max_by(fare, IF(fare IS NULL, NULL, at))"),
}


def test_functions_merge_to_what_spark_computes_at_once(spark: SparkSession, tmp_path: Path) -> None:
    functions = " ".join([*EXACT.values(), *(call for call, _ in BY_TIME.values())])
    assert all(f"{name}(" in functions for name in KNOWN)
    batches = [list({row[1]: row for row in batch}.values()) for batch in trips_of(4, 60, step_s=15, late_s=12)]
    batches = [[row for row in batch if row[1] % S] for batch in batches]  # no two at one time: first is one of them
    net = jt.Network("taxi")
    calls = {**EXACT, **{name: call for name, (call, _) in BY_TIME.items()}}
    source(net).window("20 seconds", slide="10 seconds", by="zone", delay="12 seconds").agg(calls).output("table")
    run = Hand(spark, tmp_path, net)
    for number, batch in enumerate(batches):
        run.run(number, batch)
    mark = max(row[1] for batch in batches[:-1] for row in batch) - 12 * S
    everything = frame_of(spark, [row for batch in batches for row in batch])
    plainly = {**EXACT, **{name: call for name, (_, call) in BY_TIME.items()}}
    wanted = by_spark(everything, "20 seconds", "10 seconds", ["zone"], mark, **plainly)
    assert len(wanted) > 8
    found = run.rows("table")
    assert [row[:3] for row in found] == [row[:3] for row in wanted]
    for place, name in enumerate(plainly, start=3):
        tolerance = {"abs": 2.0} if name == "t" else {"rel": 1e-5, "abs": 1e-4} if name == "n" else {"rel": 1e-9}
        for mine, theirs in zip(found, wanted, strict=True):
            close = (
                pytest.approx(theirs[place], **tolerance) if isinstance(theirs[place], float | int) else theirs[place]
            )
            assert mine[place] == close, name
    run.close()


NAN, INF = math.nan, math.inf
CORNERS = {
    0: [NAN, 1.0, 2.0],
    1: [INF, 1.0, None],
    2: [INF, -INF, 1.0],
    3: [1e200, 1e200, 1e200],
    4: [3.0],
    5: [None, None, None],
    6: [0.0, -0.0, 0.0],
    7: [NAN, INF, NAN],
}
"""Fares by zone."""
AS_SPARK = (
    *("sum(fare)", "avg(fare)", "min(fare)", "max(fare)", "count(DISTINCT fare)", "approx_count_distinct(fare)"),
    *(f"{name}(fare)" for name in ("stddev", "stddev_pop", "variance", "var_pop")),
    *(f"approx_count_distinct({text})" for text in ("kind", "binary(kind)", "struct(kind, fare)", "map(kind, fare)")),
)


def test_values_at_the_edge_give_what_spark_gives(spark: SparkSession, tmp_path: Path) -> None:
    calls = {f"c{number}": call for number, call in enumerate(AS_SPARK)}
    calls |= {"first_": "first(trip)", "last_": "last(trip)"}
    net = jt.Network("taxi")
    source(net).window("20 seconds", slide="10 seconds", by="zone", delay="12 seconds").agg(calls).output("table")
    fares = [(zone, place, fare) for zone, all_of in CORNERS.items() for place, fare in enumerate(all_of)]
    rows: list[Row] = [  # the first two are of one time, and in two batches
        (trip, (2, 2, 12)[place] * S, zone, ("", "cab", "")[place], fare)
        for trip, (zone, place, fare) in enumerate(fares)
    ]
    run = Hand(spark, tmp_path, net)
    for number, batch in enumerate([rows[::2], rows[1::2], [(99, 50 * S, 9, "", 1.0)], [(99, 50 * S, 9, "", 1.0)]]):
        run.run(number, batch)
    plainly = calls | {  # of rows of one time the one with the least identity is first
        "first_": "min_by(trip, struct(at, xxhash64(trip)))",
        "last_": "max_by(trip, struct(at, xxhash64(trip)))",
    }
    wanted = by_spark(frame_of(spark, rows), "20 seconds", "10 seconds", ["zone"], 50 * S, **plainly)
    found = run.rows("table")
    assert [row[:3] for row in found] == [row[:3] for row in wanted]
    for mine, theirs in zip(found, wanted, strict=True):
        for name, one, other in zip(plainly, mine[3:], theirs[3:], strict=True):
            assert one == pytest.approx(other, nan_ok=True), (plainly[name], mine[:3])
    ended = {(row[0], row[1]): dict(zip(calls.values(), row[3:], strict=True)) for row in found}
    assert (ended[4, 0.0]["stddev(fare)"], ended[4, 0.0]["stddev_pop(fare)"]) == (None, 0.0)
    assert ended[3, 0.0]["stddev(fare)"] == 0.0
    assert ended[0, 0.0]["approx_count_distinct(kind)"] == 2
    run.close()


def late_by_hand(batches: list[list[Row]], size_s: int, slide_s: int, delay_s: int) -> tuple[dict[Row, int], list[int]]:
    """Rows per zone and closed window, and late rows per batch, by looking at each row and window."""
    counts: dict[tuple[Any, int], int] = {}
    late, newest, mark = [], None, None
    for batch in batches:
        mark = None if newest is None else newest - delay_s * S
        late.append(0)
        for _, at, zone, *_ in batch:
            last = at // (slide_s * S) * slide_s
            starts = [
                last - n * slide_s for n in range(size_s // slide_s + 1) if (last - n * slide_s + size_s) * S > at
            ]
            still = [start for start in starts if mark is None or (start + size_s) * S > mark]
            late[-1] += not still
            for start in still:
                counts[zone, start] = counts.get((zone, start), 0) + 1
        newest = max([*(row[1] for row in batch), *([] if newest is None else [newest])])
    ended = {
        (zone, float(start), float(start + size_s)): n
        for (zone, start), n in counts.items()
        if mark is not None and (start + size_s) * S <= mark
    }
    return ended, late


def test_late_rows_are_left_out_and_counted(spark: SparkSession, tmp_path: Path) -> None:
    batches = trips_of(6, 40, step_s=12, late_s=50)
    wanted, late = late_by_hand(batches, size_s=20, slide_s=10, delay_s=5)
    assert sum(late) > 20
    net = jt.Network("taxi")
    window = source(net).window("20 seconds", slide="10 seconds", by="zone", delay="5 seconds")
    window.agg(n="count(*)", name="busy").output("table")
    run = Hand(spark, tmp_path, net)
    for number, batch in enumerate(batches):
        assert run.run(number, batch).late == {"busy": late[number]}
    assert run.rows("table") == sorted([(*key, n) for key, n in wanted.items()], key=repr)

    # nothing comes in, or nothing passes: windows close all the same, by what was known before
    before = len(run.rows("table"))
    run.run(6, [(900 + n, 200 * S, 0, "cab", 1.0) for n in range(3)])
    nothing = Plan({"trips": Random(0.0)})
    measured = run.run(7, [(910, 300 * S, 0, "cab", 1.0)], nothing)
    assert measured.outputs["table"].rows > 0
    assert len(run.rows("table")) > before
    assert run.run(8, [(911, 301 * S, 0, "cab", 1.0)]).outputs["table"].rows == 0, "what was dropped moved nothing"
    run.close()


def test_what_only_spark_can_see_is_refused_before_anything_runs(spark: SparkSession, tmp_path: Path) -> None:
    def busy(stream: Any = None, **aggs: str) -> jt.Network:
        net = jt.Network("taxi")
        rows = source(net) if stream is None else stream(source(net))
        rows.window("20 seconds", by="zone").agg(aggs or {"n": "count(*)"}, name="busy").output("table")
        return net

    with pytest.raises(StartError, match=r"aggregate 'busy': .*kind.* Columns here: trip, at, zone, kind, fare"):
        Hand(spark, tmp_path / "a", busy(n="sum(array(kind))"))
    day = r"aggregate 'busy': 'percentile_approx\(date\(at\), 0.5\)': a percentile of a date is not known: take a num"
    with pytest.raises(StartError, match=day):
        Hand(spark, tmp_path / "d", busy(n="percentile_approx(date(at), 0.5)"))
    with pytest.raises(StartError, match=r"a percentile of a timestamp_ntz is not known"):
        Hand(spark, tmp_path / "d", busy(n="percentile_approx(CAST(at AS timestamp_ntz), 0.5)"))
    with pytest.raises(StartError, match=r"aggregate 'busy': the rows of 'apply1' have lost their event time"):
        Hand(spark, tmp_path / "b", busy(lambda trips: trips.apply(lambda rows: rows.selectExpr("zone", "_jt_id"))))
    run = Hand(spark, tmp_path / "c", busy())
    run.run(0, [(1, S, 1, "cab", 2.0)])
    run.close()
    with pytest.raises(CheckpointError, match=r"aggregate 'busy': the checkpoint .* of count.*, and now .*max\(fare\)"):
        Hand(spark, tmp_path / "c", busy(n="count(*)", m="max(fare)"))
    more = busy()
    more.stream("trips").window("10 seconds", by="zone").agg(m="max(fare)", name="more").output("others")
    changed = Hand(spark, tmp_path / "c", more)
    changed.run(1, [(2, 90 * S, 1, "cab", 3.0)])
    changed.run(2, [(3, 95 * S, 1, "cab", 4.0)])
    assert changed.rows("table") == [(1, 0.0, 20.0, 1)], "what was kept is of use"
    assert changed.rows("others") == []
    changed.close()
    less = Hand(spark, tmp_path / "c", busy())
    less.run(3, [(4, 130 * S, 1, "cab", 5.0)])
    less.run(4, [(5, 131 * S, 1, "cab", 5.0)])
    assert less.rows("table") == [(1, 80.0, 100.0, 2)]
    less.close()
    other = jt.Network("taxi")
    rows = source(other)
    for name in ("first", "busy"):
        rows.window("20 seconds", by="zone").agg(n="count(*)", name=name).output(f"{name}_out")
    behind = Hand(spark, tmp_path / "c", other)  # its slices stay where they are, though it is not the first any more
    behind.run(5, [(6, 150 * S, 1, "cab", 5.0)])
    behind.run(6, [(7, 175 * S, 1, "cab", 5.0)])
    behind.run(7, [(8, 176 * S, 1, "cab", 5.0)])
    assert behind.rows("busy_out") == [(1, 120.0, 140.0, 2), (1, 140.0, 160.0, 1)]
    assert behind.rows("first_out") == [(1, 140.0, 160.0, 1)], "it has seen that one from its first row on"
    behind.close()
