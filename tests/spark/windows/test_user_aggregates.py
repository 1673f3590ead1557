"""Aggregates of the user's own on Spark: what plain Python gives, after a restart, with late rows, and failures."""

from __future__ import annotations

import datetime
import json
import os
import pickle
import re
import statistics
import sys
import types
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    DoubleType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)
from tests.spark.running import FREE, TRIGGER, ended
from tests.spark.windowing import TRIPS, Hand, Row, S, frame_of, source, trips_of

import jettison as jt
from jettison.errors import CheckpointError, StartError
from jettison.network.event_time import join_retention
from jettison.network.windows.value_encoding import PLAIN
from jettison.spark.checkpoint.sealed import seal, unseal
from jettison.spark.windows.user_functions import _Codec, _folding, _merging, _result_of, _Thrown
from jettison.spark.windows.user_values import taking

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
    monkeypatch.setattr(join_retention, "MOST_PARTS", 2)
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


class MuteError(Exception):
    """What throws when it is asked what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no word")


def silent(rows: pd.DataFrame) -> str:
    if rows["fare"].max() >= 1000:
        raise MuteError
    return "there"


class Lost:
    """A value that pickles, and cannot be read back."""

    def __reduce__(self) -> Any:
        return lost, ()


def lost() -> Any:
    raise ValueError("nobody knows it any more")


def large(value: Any, otherwise: Any, type: str) -> Any:
    """An aggregate that is one value where a fare is 1000 or more, and another elsewhere."""
    return jt.whole_window(lambda rows: value if rows["fare"].max() >= 1000 else otherwise, columns="fare", type=type)


def of_fares(incr: Any, final: Any, type: str, encoding: str = "plain") -> Any:
    return jt.aggregate(
        init=lambda: Decimal(0),
        incr=incr,
        merge=lambda a, b: a + b,
        final=final,
        columns="fare",
        type=type,
        encoding=encoding,
    )


def longest(rows: pd.DataFrame) -> Any:
    return rows["at"].diff().max() if rows["fare"].max() >= 1000 else "short"


ODD: dict[str, tuple[Any, Any, str]] = {
    "span": (
        jt.whole_window(longest, columns=["at", "fare"], type="string"),
        "short",
        "TypeError: Timedelta('0 days 00:00:10') (Timedelta) does not go into type 'string'",
    ),
    "total": (
        of_fares(lambda value, fare: value + Decimal(fare), lambda value: value, "decimal(5,2)"),
        Decimal("7.00"),
        "TypeError: Decimal('200000') (Decimal) does not go into type 'decimal(5,2)', which has too few digits for it",
    ),
    "nan": (
        large(Decimal("NaN"), Decimal("0.125"), "decimal(9,2)"),
        Decimal("0.13"),
        "TypeError: Decimal('NaN') (Decimal) does not go into type 'decimal(9,2)'",
    ),
    "names": (
        large({"a": [1]}, {"a": [np.str_("b"), None]}, "map<string,array<string>>"),
        {"a": ["b", None]},
        "TypeError: 1 (int) does not go into type 'string'",
    ),
    "gone": (
        of_fares(lambda value, fare: Lost() if fare >= 1000 else value, lambda value: "there", "string", "pickle"),
        "there",
        "ValueError: nobody knows it any more",
    ),
    "other": (
        of_fares(lambda value, fare: {1j} if fare >= 1000 else value, lambda value: "there", "string"),
        "there",
        f"TypeError: a value of type builtins.complex (at [0]), which cannot be kept: make it of {PLAIN}, or ask for "
        "pickle with encoding='pickle'",
    ),
    "mute": (jt.whole_window(silent, columns="fare", type="string"), "there", "MuteError"),
}


class Moved:
    """A value whose class is not where it was."""

    def __reduce__(self) -> Any:
        return moved, ()


def moved() -> Any:
    raise ImportError("no module 'prices'")


def test_a_value_whose_class_is_gone_is_not_overwritten() -> None:
    """With the module in its place it can be read again: so that ends the run, and what is kept stays as it is."""
    own = of_fares(lambda value, fare: value + fare, lambda value: value, "double", encoding="pickle")
    written = _Codec("pickle").write
    with pytest.raises(ImportError, match="prices"):
        _merging(own)([written((0, 0), 1), written((1, 0), Moved())])


def test_thrown_values_are_read_whatever_module_had_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints of earlier versions have them pickled by the module that they were in then."""
    earlier = types.ModuleType("jettison.spark.user_functions")
    monkeypatch.setitem(sys.modules, earlier.__name__, earlier)
    monkeypatch.setattr(earlier, "_Thrown", _Thrown, raising=False)
    with monkeypatch.context() as patched:
        patched.setattr(_Thrown, "__module__", earlier.__name__)
        old = pickle.dumps(((3, 0), _Thrown("too dear")))
    monkeypatch.delitem(sys.modules, earlier.__name__)
    new = _Codec("pickle").write((3, 0), _Thrown("too dear"))
    assert b"Thrown" in old
    assert b"Thrown" not in new
    assert _Codec("pickle").read(old) == _Codec("pickle").read(new) == ((3, 0), _Thrown("too dear"))


def test_a_value_that_spark_does_not_take_fails_its_window_alone(spark: SparkSession, tmp_path: Path) -> None:
    net = jt.Network("taxi")
    trips = source(net)
    for name, (own, _, _) in ODD.items():
        trips.window("20 seconds", by="zone").agg(n="count(*)", own=own, name=name).output(f"{name}_out")
    run = Hand(spark, tmp_path, net)
    for batch, second in enumerate((2, 12, 20, 20)):  # two slices, to be merged
        measured = run.run(batch, [(0, second * S, 1, "cab", 3.0 + batch), (1, second * S, 2, "cab", 1e5)])
    for name, (_, value, reason) in ODD.items():
        found = sorted((row["zone"], row["n"], row["own"]) for row in run.sinks[f"{name}_out"].rows)
        assert found == [(1, 2, value), (2, 2, None)], name
        failed = measured.failed[name]
        assert (failed.windows, failed.reason) == (1, reason)
    run.close()


STRUCT = StructType().add("a", StringType()).add("b", DecimalType(4, 1))
EARLY = datetime.datetime(1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=5)))


@pytest.mark.parametrize(
    ("kind", "value", "taken"),
    [
        (StringType(), np.str_("cab"), "cab"),
        (DecimalType(5, 2), Decimal("999.994"), Decimal("999.99")),
        (DecimalType(38, 0), Decimal("9" * 38), Decimal("9" * 38)),
        (DecimalType(2, 2), Decimal("1E-999"), Decimal("0.00")),
        (ArrayType(DecimalType(3, 1)), (Decimal("1.05"), None), [Decimal("1.1"), None]),
        (STRUCT, {"a": "x"}, ("x", None)),
        (STRUCT, ["x", Decimal(1)], ("x", Decimal("1.0"))),
    ],
)
def test_texts_and_decimals_that_spark_takes(kind: DataType, value: Any, taken: Any) -> None:
    assert taking(kind)(value) == taken
    assert taking(kind)(None) is None


@pytest.mark.parametrize(
    ("kind", "value", "fault"),
    [
        (StringType(), b"cab", r"b'cab' \(bytes\) does not go into type 'string'"),
        (StringType(), [1] * 1000, r"\[1, 1, .*\.\.\. \(list\) does not go into type 'string'"),
        (ArrayType(StringType()), ["a", 1], r"1 \(int\) does not go into type 'string'"),
        (MapType(StringType(), StringType()), {1: "a"}, r"1 \(int\) does not go into type 'string'"),
        (STRUCT, (1, None), r"1 \(int\) does not go into type 'string'"),
        (STRUCT, ("a", Decimal(1000)), r"Decimal\('1000'\) .* type 'decimal\(4,1\)', which has too few digits"),
        (STRUCT, ("a", None, None), "does not match with length of fields"),
        (DecimalType(5, 2), Decimal("999.995"), r"'decimal\(5,2\)', which has too few digits"),
        (DecimalType(5, 2), Decimal("-Infinity"), r"Decimal\('-Infinity'\) .* 'decimal\(5,2\)'"),
        (DecimalType(5, 2), 1.5, "can not accept"),
        (TimestampType(), EARLY, r"datetime\.datetime\(1, 1, .* does not go into type 'timestamp' \(OverflowError"),
    ],
)
def test_values_that_spark_does_not_take(kind: DataType, value: Any, fault: str) -> None:
    with pytest.raises((TypeError, ValueError), match=fault):
        taking(kind)(value)


def test_a_run_reports_failed_windows(spark: SparkSession, tmp_path: Path) -> None:
    def broken(rows: pd.DataFrame) -> float:
        raise RuntimeError(f"no more than {len(rows)} rows")

    for number, second in enumerate((1, 100, 101)):
        rows = [(number, second * S, 1, "cab", 1.0)]
        frame_of(spark, rows).coalesce(1).write.parquet(str(tmp_path / "trips" / str(number)))
    table = jt.memory()
    stream = spark.readStream.schema(TRIPS).option("maxFilesPerTrigger", 1).parquet(f"{tmp_path}/trips/*")
    net = network(n="count(*)", own=jt.whole_window(broken, columns="fare", type="double"))
    where = str(tmp_path / "run [1] {a,b} *?")  # a name as it stands, no pattern
    run = ended(jt.start(net, {"trips": stream}, {"table": table}, trigger=TRIGGER, checkpoint=where, costs=FREE), 3)
    assert [(row["n"], row["own"]) for row in table.rows] == [(1, None), (1, None)]
    assert run.report().windows_failed == 2
    line = "aggregate busy: 2 windows failed, their value is null (RuntimeError: no more than 1 rows)"
    assert line in str(run.report())


def test_what_only_spark_can_see_is_refused_before_anything_runs(spark: SparkSession, tmp_path: Path) -> None:
    for kind in ("interval year to month", "varchar(3)"):
        with pytest.raises(StartError, match=rf"'n' is of type '{re.escape(kind)}', which Spark does not take from Py"):
            Hand(spark, tmp_path, network(n=jt.whole_window(len, columns="fare", type=kind)))
    net = jt.Network("taxi")
    rows = source(net).apply(lambda rows: rows.drop("fare"))
    rows.window("20 seconds").agg(n=jt.whole_window(len, columns="fare", type="bigint"), name="busy").output("table")
    with pytest.raises(StartError, match=r"aggregate 'busy': .*`fare`.* Columns here: trip, at, zone, kind"):
        Hand(spark, tmp_path, net)
    run = Hand(spark, tmp_path / "c", network(n=jt.whole_window(len, columns="fare", type="bigint")))
    run.run(0, [(1, S, 1, "cab", 2.0)])
    run.close()
    with pytest.raises(CheckpointError, match=r"'busy': .*:len}\(fare\) bigint', and now .*:len}\(trip\) bigint'"):
        Hand(spark, tmp_path / "c", network(n=jt.whole_window(len, columns="trip", type="bigint")))


# --- what is kept runs nothing ----------------------------------------------------------------------------------------


class Bomb:
    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (self.path,)


def test_trust_17_a_pickle_in_the_checkpoint_is_not_run(spark: SparkSession, tmp_path: Path) -> None:
    """Someone else writes to the checkpoint: every kept value becomes a pickle that makes a folder when it is read."""
    net = network(n="count(*)", mean=MEAN)
    run = Hand(spark, tmp_path / "state", net)
    run.run(0, [(n, n * S, 1, "cab", 2.0) for n in range(8)])
    bomb = tmp_path / "bomb"
    replaced = 0
    for path in (tmp_path / "state").rglob("*.parquet"):
        table = pq.read_table(path)
        for at, column in enumerate(table.schema):
            if pa.types.is_binary(column.type):
                kept = table.column(at).to_pylist()
                assert all(each.startswith(b"J1") for each in kept), "no pickle is written"
                bombs = pa.array([pickle.dumps(((0, 0), Bomb(str(bomb))))] * len(kept), pa.binary())
                table = table.set_column(at, column, bombs)
                replaced += len(kept)
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
        pq.write_table(table, path)
    assert replaced
    for path in (tmp_path / "state" / "busy").glob("*.json"):  # and notes no checksums of what was there before
        record = json.loads(unseal(path.read_text()))
        record["parts"] = [{**part, "files": []} for part in record["parts"]]
        path.write_text(seal(json.dumps(record)))
    run = run.again()
    failed = [run.run(at, [(90 + at, 60 * S, 1, "cab", 2.0)]).failed.get("busy") for at in (1, 2)]
    run.close()
    assert not bomb.exists()
    found = next(each for each in failed if each is not None)
    assert "written by pickle, which is not read" in (found.reason or "")
    _Codec("pickle").read(pickle.dumps(((0, 0), Bomb(str(bomb)))))
    assert bomb.exists(), "which pickle itself would have run"


def test_trust_17_a_checkpoint_of_pickled_values_is_refused_by_name(spark: SparkSession, tmp_path: Path) -> None:
    pickled = replace(MEAN, encoding="pickle")
    run = Hand(spark, tmp_path, network(mean=pickled))
    run.run(0, [(1, S, 1, "cab", 2.0)])
    run.close()
    with pytest.raises(CheckpointError, match=r"aggregate 'busy': .*pickle wrote.*encoding='pickle'.*new checkpoint"):
        Hand(spark, tmp_path, network(mean=MEAN))
    Hand(spark, tmp_path, network(mean=pickled)).close()


def test_trust_17_what_cannot_be_kept_is_refused_at_the_start(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(StartError, match=r"aggregate 'busy': 'odd': init\(\) gives a value of type .*Lost.*'pickle'"):
        Hand(spark, tmp_path, network(odd=replace(MEAN, init=Lost)))


def test_trust_17_what_threw_goes_through_merges() -> None:
    own = of_fares(lambda value, fare: 1 / fare, lambda value: value, "double")
    fold, merge, result = _folding(own), _merging(own), _result_of(own, DoubleType())
    parts = [fold([(at, 0, fare)]) for at, fare in enumerate((1.0, 0.0, 2.0))]
    assert result(merge(parts)) == (None, "ZeroDivisionError: float division by zero")
    assert result(merge([parts[2], parts[0]])) == (1.5, None)
