"""A map's work in a Python worker, without Spark: results, faults, times, and memory that does not grow with keys."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from jettison.spark.maps.task_report import FAULT, REPORT, TaskReport, one_per_partition
from jettison.spark.maps.worker import MapTask
from jettison.statistics.sketches.key_hash import key_hash
from jettison.statistics.sketches.universal import HashFunctions

pytestmark = pytest.mark.core

FUNCTIONS = HashFunctions(rows=4, columns=272)
SCORE = pa.schema([("score", pa.float64())])


def task(function: Any, *, many: bool = False, kind: pa.DataType | None = None, **others: Any) -> MapTask:
    added = SCORE if kind is None else pa.schema([("score", kind)])
    given = {"limit_s": 60.0, "functions": FUNCTIONS, "time": "_jt_time", "identity": "_jt_id", **others}
    return MapTask("map 'm'", function, many, ("k",), ("k", "_jt_id", "_jt_time"), ("k",), added, **given)


def batch(keys: pa.Array | list[Any]) -> pa.RecordBatch:
    count = len(keys)
    times = pa.array([0] * count, pa.timestamp("us", tz="UTC"))
    columns = [pa.array(keys), pa.array(range(count), pa.int64()), times]
    return pa.RecordBatch.from_arrays(columns, names=["k", "_jt_id", "_jt_time"])


def run(work: MapTask, *batches: pa.RecordBatch) -> tuple[list[Any], list[Any], TaskReport]:
    """The scores, the faults, and what the task tells."""
    made = list(work.run(iter(batches)))
    rows = pa.Table.from_batches(made[:-1])
    return rows["score"].to_pylist(), rows[FAULT].to_pylist(), TaskReport.from_bytes(made[-1][REPORT][0].as_py())


def length(row: Mapping[str, Any]) -> tuple[float]:
    return (float(len(str(row["k"]))),)


@pytest.mark.parametrize(
    "keys",
    [
        ["a", None, "", "x" * 100_000, "ü"],
        [1.5, None, math.nan, -0.0, 0.0],
        pa.array([1, None, -(2**63)], pa.int64()),
        pa.array([None, None], pa.null()),
        pa.array([b"\x00", None], pa.binary()),
        pa.array([0, None], pa.timestamp("us", tz="UTC")),
    ],
    ids=["text", "double", "long", "void", "binary", "time"],
)
def test_keys_of_every_kind_are_timed_each_once(keys: Any) -> None:
    rows = batch(keys)
    scores, faults, told = run(task(length), rows)
    assert faults == [None] * len(scores)
    assert None not in scores
    assert told.sketch is not None
    assert told.sketch.tuples == told.rows == len(scores)
    assert (told.sketch.counts_of(key_hash([rows.column("k")])) >= 1).all()
    assert all(len(text) <= 60 for text in told.keys.values())


def wrong(row: Mapping[str, Any]) -> Any:
    made = {"raises": None, "none": None, "short": (), "text": ("high",), "other": {"more": 1}, "fits": (2,)}[row["k"]]
    if row["k"] == "raises":
        raise ZeroDivisionError("of all things")
    return made


def test_every_fault_of_a_result_is_named_and_only_its_row_is_rejected() -> None:
    scores, faults, told = run(task(wrong), batch(["raises", "none", "short", "text", "other", "fits", "unknown"]))
    assert scores == [None] * 5 + [2.0, None]
    assert faults == [
        "map 'm': ZeroDivisionError: of all things",
        "map 'm': the function gave None: return a dict with score, or a tuple.",
        "map 'm': the function gave 0 values, and declared are score.",
        "map 'm': column score is 'high', a str, and declared double.",
        "map 'm': the function gave no column 'score': it gave more.",
        None,
        "map 'm': KeyError: 'unknown'",
    ]
    assert told.unfit == 6
    assert told.names_all
    assert set(told.rejected) == {0, 1, 2, 3, 4, 6}
    assert told.sketch is not None
    assert told.sketch.tuples == 7


def halves(frame: pd.DataFrame) -> pd.DataFrame:
    if (frame["k"] == "bad").any():
        raise ValueError("a bad key")
    assert frame["k"].nunique(dropna=False) == 1 or not timed_groups
    return pd.DataFrame({"score": frame["k"].str.len() / 2})


timed_groups = True


def test_rows_of_a_key_are_one_call_and_a_bad_row_is_found_among_them(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = ["aa", "bad", "cccc", "aa", None]
    scores, faults, told = run(task(halves, many=True), batch(keys))
    assert scores == [1.0, None, 2.0, 1.0, None]
    assert faults == [None, "map 'm': ValueError: a bad key", None, None, None]
    assert told.sketch is not None
    assert told.sketch.tuples == 5
    monkeypatch.setattr("tests.spark.maps.test_worker.timed_groups", False)
    scores, faults, told = run(task(halves, many=True, functions=None), batch(keys))
    assert scores == [1.0, None, 2.0, 1.0, None]
    assert told.sketch is None
    assert [each is None for each in faults] == [True, False, True, True, True]


def some_rows(frame: pd.DataFrame) -> Any:
    return _answer(frame["k"].iloc[0], len(frame))


def some_table(table: pa.Table) -> Any:
    return _answer(table["k"][0].as_py(), table.num_rows)


def _answer(key: str, count: int) -> Any:
    if key == "raises":
        raise ZeroDivisionError("of all things")
    while key == "sleeps":
        time.sleep(0.01)
    score = {"text": ["high"] * count, "few": [1.0] * (count - 1), "fits": [2.0] * count}.get(key)
    made = {"none": None, "other": pd.DataFrame({"more": [1] * count})}.get(key, {"score": score})
    if key == "arrow":
        return pa.table({"score": pa.array([2] * count, pa.int32())})
    return pd.DataFrame({"score": [3.0] * count}) if key == "pandas" else made


@pytest.mark.parametrize("function", [some_rows, some_table], ids=["pandas", "arrow"])
def test_every_fault_of_a_function_of_many_rows_is_named(function: Any) -> None:
    keys = ["raises", "sleeps", "text", "few", "none", "other", "fits", "arrow", "pandas"]
    scores, faults, told = run(task(function, many=True, limit_s=0.2), batch([*keys, "fits", "few"]))
    assert scores == [None] * 6 + [2.0, 2.0, 3.0, 2.0, None]
    found = dict(zip(keys, faults, strict=False))
    assert found == {
        "raises": "map 'm': ZeroDivisionError: of all things",
        "sleeps": "map 'm': the function took more than 0.2 s for a row of its key: see `limit`.",
        "text": "map 'm': column score is 'high', a str, and declared double.",
        "few": "map 'm': the function gave 0 rows for 1: return one for each.",
        "none": "map 'm': the function gave a NoneType without column score: return score.",
        "other": "map 'm': the function gave a DataFrame without column score: return score.",
        "fits": None,
        "arrow": None,
        "pandas": None,
    }
    assert told.unfit == 7
    assert told.sketch is not None
    assert told.sketch.tuples == 11


def test_keys_of_several_columns_are_told_apart_where_one_is_null() -> None:
    columns = {"k": ["a", None, None, "a"], "n": [None, 1, None, None], "_jt_id": [0, 1, 2, 3]}
    rows = pa.RecordBatch.from_pydict(columns)
    both = replace(task(constant, time=None), visible=("k", "n"), passed=("k", "_jt_id"), key=("k", "n"))
    scores, _, told = run(both, rows)
    assert scores == [0.0] * 4
    assert told.sketch is not None
    assert sorted(told.keys.values()) == ["a, null", "null, 1", "null, null"]
    assert told.sketch.counts_of(key_hash([rows.column("k"), rows.column("n")])).tolist() == [2, 1, 1, 2]


def endless(row: Mapping[str, Any]) -> tuple[float]:
    try:
        while row["k"] == "endless":
            pass
    except Exception:  # what a careless function catches
        return (-1.0,)
    return (1.0,)


def test_a_call_that_never_returns_is_ended_and_its_key_is_not_tried_again() -> None:
    began = time.perf_counter()
    scores, faults, told = run(task(endless, limit_s=0.2), batch(["a", "endless", "b", "endless", "endless"]))
    assert time.perf_counter() - began < 5.0
    assert scores == [1.0, None, 1.0, None, None]
    assert faults[1] == "map 'm': the function took more than 0.2 s for a row of its key: see `limit`."
    assert told.unfit == 3


def constant(row: Mapping[str, Any]) -> tuple[float]:
    return (0.0,)


@pytest.mark.parametrize("count", [200_000, pytest.param(10_000_000, marks=pytest.mark.long)])
def test_memory_is_the_sketch_whatever_the_number_of_keys(count: int) -> None:
    step = 50_000

    def batches() -> Iterator[pa.RecordBatch]:
        for first in range(0, count, step):
            yield batch(pa.array(np.arange(first, first + step)))

    (last,) = deque(task(constant).run(batches()), maxlen=1)
    packed = last[REPORT][0].as_py()
    told = TaskReport.from_bytes(packed)
    assert told.sketch is not None
    assert told.sketch.tuples == count
    assert len(packed) < 40_000
    assert len(told.keys) <= 20


def test_of_a_partition_that_was_computed_twice_one_report_counts() -> None:
    packed = [TaskReport(partition, 5, 1).to_bytes() for partition in (0, 1, 1)]
    assert [each.partition for each in one_per_partition(packed)] == [0, 1]
