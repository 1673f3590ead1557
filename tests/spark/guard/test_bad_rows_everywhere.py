"""One bad row stops nothing, wherever an expression or a function of the user is evaluated: it is rejected there, with
the operator and the reason, and all other rows come out as if it had not come."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType
from tests.spark.guard.test_bad_neighbours import accounts
from tests.spark.windowing import Hand, Row, S

import jettison as jt
from jettison.spark.write.sinks import MemorySink

pytestmark = pytest.mark.spark

TRIPS = "trip long, at timestamp, zone int, kind string, fare double"


@F.udf(IntegerType(), useArrow=False)
def tens(zone: int | None) -> int:
    if zone == 0:
        raise ValueError("no zone")
    return 10 * (zone or 0)


def in_python(rows: DataFrame) -> DataFrame:
    return rows.withColumn("tens", tens("zone"))


def in_sql(rows: DataFrame) -> DataFrame:
    return rows.withColumn("part", F.expr("100 div zone"))


def everywhere() -> jt.Network:
    net = jt.Network("everywhere")
    trips = net.source("trips", TRIPS, event_time="at", id=["trip"])
    trips.where("100 div zone > 0", name="w").output("where")
    trips.select("trip", "100 div zone AS q", "q + 1 AS r", "int(kind) + q AS s", name="lateral").output("select")
    trips.select("*", "kind AS k", "int(k) AS n", name="starred").output("stars")
    trips.with_columns({"n": "int(kind)"}, name="columns").output("with_columns")
    texts, numbers = trips.select("trip", "kind AS key", name="texts"), trips.select("trip", "zone AS key", name="ints")
    texts.union(numbers, name="both").output("union")
    trips.join("table", on=["kind"], name="looked_up").output("join")
    trips.join("texts", on=["zone"], how="left", name="looked_left").output("join_left")
    trips.select("trip", "explode(sequence(1, 2 div zone)) AS part", name="parts").output("explode")
    exploded = F.posexplode(F.expr("array(zone, 100 div zone)")).alias("n", "part")
    trips.select("trip", exploded, name="places").output("posexplode")
    trips.apply(in_python, name="python").output("udf")
    trips.apply(in_sql, name="sql").output("apply")
    trips.with_columns({"tens": tens("zone")}, name="column").output("udf_column")
    trips.window("10 seconds", by=["zone"]).agg(n="count(*)", all="sum(int(kind))", name="timed").output("windows")
    trips.window("2 rows").agg(n="sum(100 div zone)", name="counted").output("rows")
    left, right = (
        trips.select("trip", "zone", "int(kind) AS l", name="left"),
        trips.select("trip AS other", "zone", "int(kind) AS r", name="right"),
    )
    left.join(right, on=["zone"], within="1 second", name="pairing").output("pairs")
    return net


GOOD: list[Row] = [(1, 1 * S, 1, "7", 1.0), (2, 2 * S, 2, "8", 2.0)]
BAD: list[Row] = [
    (3, 3 * S, 0, "9", 3.0),  # a zone that nothing can be divided by
    (4, 4 * S, 4, "x", 4.0),  # a text that is no number
    (5, 5 * S, None, None, None),
    (6, 6 * S, 2, "11", 6.0),
    (7, 7 * S, 1, "99999999999999999999", 7.0),  # nor is this an int, or a bigint
]


def as_number(kind: str | None) -> int | None:
    return None if kind is None else int(kind)


@pytest.mark.long
def test_trust_12_a_bad_row_is_rejected_wherever_it_fails(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = spark.createDataFrame([(7, "seven"), (9, "nine"), (11, "eleven")], "kind int, name string")
    texts = spark.createDataFrame([("2", "two"), ("y", "bad"), (" 4", "four")], "zone string, name string")
    net = everywhere()  # tables are by join here, as a run has them
    run = Hand(spark, tmp_path, net, {"looked_up": table, "looked_left": texts})
    first, second = run.run(0, GOOD), run.run(1, BAD)
    assert first.unfit == {}

    zero, text, huge = {3}, {4}, {7}
    bad = {
        "w": zero,
        "lateral": zero | text | huge,
        "starred": text | huge,
        "columns": text | huge,
        "texts>both": text | huge,
        "looked_up": text | huge,
        "parts": zero,
        "places": zero,
        "python": zero,
        "sql": zero,
        "column": zero,
        "timed": text | huge,
        "counted": zero,
        "left": text | huge,
        "right": text | huge,
    }
    assert second.unfit == {name: len(trips) for name, trips in bad.items()}
    dead_letters: MemorySink = run.runner.sinks.dead_letters  # type: ignore[assignment]
    found: dict[str, set[int]] = {}
    for row in dead_letters.rows:
        place = row._arc if row._arc == "texts>both" else row._arc.partition(">")[2]
        assert f"{place.rpartition('>')[2]!r} fails on it" in row._reason
        found.setdefault(place, set()).add(json.loads(bytes(row.value))["trip"])
    assert found == bad

    rows = {row[0]: row for row in [*GOOD, *BAD]}

    def fit(*places: str) -> list[Row]:
        return [row for trip, row in rows.items() if not any(trip in bad[place] for place in places)]

    def trips(output: str, column: int = 0) -> list[Any]:
        return sorted(row[column] for row in run.sinks[output].rows)

    assert trips("where") == [1, 2, 4, 6, 7]
    wanted = [(row[0], 100 // row[2], 100 // row[2] + 1, as_number(row[3])) for row in fit("lateral") if row[2]]
    assert [(t, q, r, s - q) for t, q, r, s in sorted(r for r in run.sinks["select"].rows if r.q)] == sorted(wanted)
    assert trips("select") == [1, 2, 5, 6]
    assert [(row.trip, row.n, row.k) for row in sorted(run.sinks["stars"].rows)] == [
        (row[0], as_number(row[3]), row[3]) for row in fit("starred")
    ]
    assert run.sinks["stars"].rows[0].__fields__ == ["trip", "at", "zone", "kind", "fare", "k", "n"]
    assert [(row.trip, row.n) for row in sorted(run.sinks["with_columns"].rows)] == [
        (row[0], as_number(row[3])) for row in fit("columns")
    ]
    assert sorted(map(tuple, run.sinks["union"].rows), key=repr) == sorted(
        [(row[0], as_number(row[3])) for row in fit("texts>both")] + [(row[0], row[2]) for row in rows.values()],
        key=repr,
    )
    assert sorted((row.trip, row.name, row.kind) for row in run.sinks["join"].rows) == [
        (1, "seven", "7"),
        (3, "nine", "9"),
        (6, "eleven", "11"),
    ]
    assert run.sinks["join"].rows[0].__fields__ == ["kind", "trip", "at", "zone", "fare", "name"]
    names = {2: "two", 4: "four"}
    assert sorted((row.trip, row.name) for row in run.sinks["join_left"].rows) == [
        (row[0], names.get(row[2])) for row in rows.values()
    ]
    assert sorted((row.trip, row.part) for row in run.sinks["explode"].rows if row.trip in (1, 2, 6)) == [
        *((1, 1), (1, 2), (2, 1), (6, 1))
    ]
    assert sorted(row.trip for row in run.sinks["posexplode"].rows) == [1, 1, 2, 2, 4, 4, 5, 5, 6, 6, 7, 7]
    assert {(row.n, row.part) for row in run.sinks["posexplode"].rows if row.trip == 4} == {(0, 4), (1, 25)}
    assert trips("udf") == trips("udf_column") == trips("apply") == [1, 2, 4, 5, 6, 7]
    assert {row.trip: row.tens for row in run.sinks["udf"].rows} == {1: 10, 2: 20, 4: 40, 5: 0, 6: 20, 7: 10}
    assert {row.trip: row.part for row in run.sinks["apply"].rows} == {1: 100, 2: 50, 4: 25, 5: None, 6: 50, 7: 100}
    assert [row.n for row in sorted(run.sinks["rows"].rows, key=lambda row: row.window_start)] == [150, 25, 150]
    assert {(row.trip, row.other) for row in run.sinks["pairs"].rows} == {(1, 1), (2, 2), (3, 3), (6, 6)}

    told = accounts(run, second, len(BAD))
    for output, account in told.items():
        parts = account.processed + account.shed + account.rejected + account.late + account.skipped
        assert account.read == 5 == pytest.approx(parts), output
    assert told["union"].rejected == pytest.approx(1.0)  # two rows, of one of the two ways to the output
    assert told["select"].rejected == 3
    assert told["udf"].rejected == told["apply"].rejected == told["explode"].rejected == 1

    third = run.run(2, [(8, 40 * S, 3, "3", 1.0)])  # what was set aside in one batch is not in the next
    assert third.unfit == {}
    assert not run.runner.known.set_aside
    windows = {(row.zone, row.n, row.all) for row in run.sinks["windows"].rows}
    run.run(3, [(9, 41 * S, 3, "3", 1.0)])
    windows |= {(row.zone, row.n, row.all) for row in run.sinks["windows"].rows}
    assert windows == {(1, 2, 7), (2, 2, 19), (0, 1, 9), (4, 1, None), (None, 1, None)}

    monkeypatch.setattr(
        "jettison.spark.guard.isolate.MOST_BAD", 1
    )  # a function that fails on many rows is wrong itself
    many = [(number, 42 * S, 0, "1", 1.0) for number in range(10, 14)]
    with pytest.raises(
        jt.OperatorError, match=r"apply 'python' fails on more than 1 rows of a batch .ValueError: no z"
    ):
        run.run(4, many)
    run.close()
