"""Aggregates of the user's own on Spark: what plain Python gives, after a restart, with late rows, and failures."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import SparkSession
from tests.spark.running import FREE, TRIGGER, ended
from tests.spark.windowing import TRIPS, Hand, Row, S, frame_of, source, trips_of

import jettison as jt
from jettison.errors import CheckpointError, StartError
from jettison.network import band

pytestmark = pytest.mark.spark

SIZE_S, SLIDE_S, DELAY_S = 20, 10, 5


# --- what a user writes -----------------------------------------------------------------------------------------------


def nothing() -> list[Any]:
    return [0, 0.0, []]


def added(value: list[Any], trip: int, fare: float | None) -> list[Any]:
    if fare is None:
        return value
    return [value[0] + 1, value[1] + fare * fare, [*value[2], trip]]


def joined(value: list[Any], later: list[Any]) -> list[Any]:
    return [value[0] + later[0], value[1] + later[1], [*value[2], *later[2]]]


def quadratic_mean(value: list[Any]) -> float:
    return (value[1] / value[0]) ** 0.5 if value[0] else 0


def spread(rows: pd.DataFrame) -> float:
    """The last fare less the first, by event time, and a hundred times the rows: order and number both show."""
    known = rows["fare"].dropna()
    return 100 * len(rows) + (known.iloc[-1] - known.iloc[0] if len(known) else 0.0)


MEAN = jt.aggregate(
    init=nothing, incr=added, merge=joined, final=quadratic_mean, columns=["trip", "fare"], type="double"
)
TRIPS_IN_ORDER = jt.aggregate(
    init=nothing, incr=added, merge=joined, final=lambda value: value[2], columns=["trip", "fare"], type="array<bigint>"
)
SPREAD = jt.whole_window(spread, columns=["fare"], type="double")
MIDDLE = jt.whole_window(lambda rows: statistics.median(rows["trip"]), columns="trip", type="double")


def network(**aggregates: Any) -> jt.Network:
    net = jt.Network("taxi")
    window = source(net).window(f"{SIZE_S} seconds", slide=f"{SLIDE_S} seconds", by="zone", delay=f"{DELAY_S} seconds")
    window.agg(aggregates, name="busy").output("table")
    return net


# --- what must come out -----------------------------------------------------------------------------------------------


def windows_by_hand(batches: Sequence[Sequence[Row]]) -> dict[tuple[Any, float, float], list[Row]]:
    """The rows of every closed window by zone, in the order of event time; late ones are left out."""
    found: dict[tuple[Any, int], list[Row]] = {}
    newest = mark = None
    for batch in batches:
        mark = None if newest is None else newest - DELAY_S * S
        for row in batch:
            last = row[1] // (SLIDE_S * S) * SLIDE_S
            for start in range(last, last - SIZE_S, -SLIDE_S):
                if mark is None or (start + SIZE_S) * S > mark:
                    found.setdefault((row[2], start), []).append(row)
        newest = max([row[1] for row in batch] + ([] if newest is None else [newest]))
    assert mark is not None
    return {
        (zone, float(start), float(start + SIZE_S)): sorted(rows, key=lambda row: row[1])
        for (zone, start), rows in found.items()
        if (start + SIZE_S) * S <= mark
    }


def mean_by_hand(rows: list[Row]) -> float:
    fares = [row[4] for row in rows if row[4] is not None]
    return round((sum(fare * fare for fare in fares) / len(fares)) ** 0.5, 6) if fares else 0.0


def spread_by_hand(rows: list[Row]) -> float:
    fares = [row[4] for row in rows if row[4] is not None]
    return 100.0 * len(rows) + (fares[-1] - fares[0] if fares else 0.0)


def at_different_times(batches: list[list[Row]]) -> list[list[Row]]:
    """No two rows of one moment: their order in a window is known then."""
    seen: set[int] = set()
    return [[row for row in batch if row[1] not in seen and not seen.add(row[1])] for batch in batches]  # type: ignore[func-returns-value]


def test_they_give_what_python_gives_with_late_rows_and_a_restart(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(band, "MOST_PARTS", 2)
    batches = at_different_times(trips_of(7, 40, step_s=12, late_s=40))
    wanted = windows_by_hand(batches)
    assert len(wanted) > 12
    net = network(n="count(*)", mean=MEAN, spread=SPREAD, middle=MIDDLE, best="max(fare)")
    run = Hand(spark, tmp_path, net)
    late = 0
    for number, batch in enumerate(batches):
        measured = run.run(number, batch)
        assert measured.failed == {}
        late += measured.late["busy"]
        if number in (2, 4):  # broken off before Spark heard of it: a new process does it again
            before = run.rows("table")
            run = run.again()
            run.run(number, batch)
            assert run.rows("table") == before
    assert late > 10
    expected = [
        (
            *key,
            len(rows),
            mean_by_hand(rows),
            spread_by_hand(rows),
            float(statistics.median(row[0] for row in rows)),
            max((row[4] for row in rows if row[4] is not None), default=None),
        )
        for key, rows in wanted.items()
    ]
    assert run.rows("table") == sorted(expected, key=repr)
    assert any("-m" in path.name for path in (tmp_path / "busy").iterdir()), "some parts were merged"
    run.close()


def test_a_window_that_throws_is_counted_and_the_others_go_on(spark: SparkSession, tmp_path: Path) -> None:
    def checked(value: int, fare: float) -> int:
        if fare == 13.0:
            raise ValueError("13 brings bad luck")
        return value + int(fare)

    def long(rows: pd.DataFrame) -> float:
        return len(rows) if len(rows) > 2 else "few"  # type: ignore[return-value]

    sums = jt.aggregate(
        init=lambda: 0, incr=checked, merge=lambda a, b: a + b, final=lambda v: v, columns="fare", type="bigint"
    )
    net = network(n="count(*)", sum=sums, long=jt.whole_window(long, columns="fare", type="double"))
    run = Hand(spark, tmp_path, net)
    rows: list[Row] = [(1, 1 * S, 1, "cab", 2.0), (2, 2 * S, 1, "cab", 3.0), (3, 15 * S, 1, "cab", 13.0)]
    rows += [
        (4, 16 * S, 1, "cab", 1.0),
        (5, 31 * S, 1, "cab", 4.0),
        (6, 32 * S, 1, "cab", 5.0),
        (7, 33 * S, 1, "", 6.0),
    ]
    later: list[Row] = [(8, 100 * S, 1, "cab", 1.0), (9, 101 * S, 1, "cab", 1.0)]
    failed = [run.run(number, batch).failed.get("busy") for number, batch in enumerate([rows, later[:1], later[1:]])]
    assert run.rows("table") == sorted(
        [
            (1, -10.0, 10.0, 2, 5, None),  # two rows: a text where a number is promised
            (1, 0.0, 20.0, 4, None, 4.0),  # with the fare of 13
            (1, 10.0, 30.0, 2, None, None),  # both
            (1, 20.0, 40.0, 3, 15, 3.0),
            (1, 30.0, 50.0, 3, 15, 3.0),
        ],
        key=repr,
    )
    assert [None if each is None else each.windows for each in failed] == [None, 2, 1]
    assert failed[2] is not None
    assert failed[2].reason == "ValueError: 13 brings bad luck"
    run.close()


def test_a_run_reports_failed_windows(spark: SparkSession, tmp_path: Path) -> None:
    def broken(rows: pd.DataFrame) -> float:
        raise RuntimeError(f"no more than {len(rows)} rows")

    for number, second in enumerate((1, 100, 101)):
        rows = [(number, second * S, 1, "cab", 1.0)]
        frame_of(spark, rows).coalesce(1).write.parquet(str(tmp_path / "trips" / str(number)))
    table = jt.memory()
    stream = spark.readStream.schema(TRIPS).option("maxFilesPerTrigger", 1).parquet(f"{tmp_path}/trips/*")
    net = network(n="count(*)", own=jt.whole_window(broken, columns="fare", type="double"))
    where = str(tmp_path / "checkpoint")
    run = ended(jt.start(net, {"trips": stream}, {"table": table}, trigger=TRIGGER, checkpoint=where, profile=FREE), 3)
    assert [(row["n"], row["own"]) for row in table.rows] == [(1, None), (1, None)]
    assert run.report().windows_failed == 2
    line = "aggregate busy: 2 windows failed, their value is null (RuntimeError: no more than 1 rows)"
    assert line in str(run.report())


def test_what_only_spark_can_see_is_refused_before_anything_runs(spark: SparkSession, tmp_path: Path) -> None:
    wrong = jt.whole_window(len, columns="fare", type="many")
    with pytest.raises(StartError, match=r"aggregate 'busy': 'n' is of type 'many', which Spark does not know"):
        Hand(spark, tmp_path, network(n=wrong))
    net = jt.Network("taxi")
    rows = source(net).apply(lambda rows: rows.drop("fare"))
    rows.window("20 seconds").agg(n=jt.whole_window(len, columns="fare", type="bigint"), name="busy").output("table")
    with pytest.raises(StartError, match=r"aggregate 'busy': .*`fare`.* Columns here: trip, at, zone, kind"):
        Hand(spark, tmp_path, net)
    run = Hand(spark, tmp_path / "c", network(n=jt.whole_window(len, columns="fare", type="bigint")))
    run.run(0, [(1, S, 1, "cab", 2.0)])
    run.close()
    with pytest.raises(CheckpointError, match=r"keeps windows of .*busy.n of \(fare\).* and now .*busy.n of \(trip\)"):
        Hand(spark, tmp_path / "c", network(n=jt.whole_window(len, columns="trip", type="bigint")))
