"""Functions that do their worst: they exit, hang, hide, or give what Arrow would cut. Only their rows are rejected."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from tests.spark.maps.test_worker import batch, run, task

from jettison.spark.maps.calls import MOST_ENDED

pytestmark = pytest.mark.core


class Shy:
    """A value that cannot be shown."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


def leaving(row: Mapping[str, Any]) -> tuple[Any]:
    if row["k"] == 0:
        sys.exit(3)
    if row["k"] == 1:
        raise ValueError("half of a \ud800 pair")
    return (Shy(),) if row["k"] == 2 else (1.0,)


def test_what_ends_a_worker_or_cannot_be_written_rejects_its_row_alone() -> None:
    scores, faults, told = run(task(leaving), batch([0, 1, 2, 3]))
    assert scores == [None, None, None, 1.0]
    assert faults == [
        "map 'm': SystemExit: 3",
        "map 'm': ValueError: half of a \\ud800 pair",
        "map 'm': column score is a Shy without a repr, and declared double.",
        None,
    ]
    assert told.unfit == 3

    def leaving_rows(frame: pd.DataFrame) -> pd.DataFrame:
        if (frame["k"] == 1).any():
            sys.exit(3)
        return frame.assign(score=1.0)

    assert run(task(leaving_rows, many=True), batch([0, 1, 2]))[1] == [None, "map 'm': SystemExit: 3", None]


@pytest.mark.parametrize(
    ("kind", "values", "fits"),
    [
        (pa.int64(), [3.7, 3.0, Decimal("3.7"), 3, None], [False, True, False, True, True]),
        (pa.list_(pa.int32()), [[1, 2], [1, 2.5], None], [True, False, True]),
        (pa.list_(pa.string()), ["abc", ["a", "b"]], [False, True]),
        (pa.struct([("a", pa.int64())]), [{"a": 1}, {"a": 1.5}], [True, False]),
    ],
    ids=["whole", "list", "text", "struct"],
)
def test_nothing_is_cut_to_fit_its_type(kind: pa.DataType, values: list[Any], fits: list[bool]) -> None:
    _, faults, _ = run(task(lambda row: (values[row["k"]],), kind=kind), batch(list(range(len(values)))))
    assert [fault is None for fault in faults] == fits

    def together(frame: pd.DataFrame) -> pd.DataFrame:
        return pd.DataFrame({"score": pd.Series([values[k] for k in frame["k"]], dtype=object)})

    _, faults, _ = run(task(together, many=True, kind=kind, functions=None), batch(list(range(len(values)))))
    assert [fault is None for fault in faults] == fits


def test_a_text_that_is_no_utf_8_rejects_its_row_alone() -> None:
    texts = pa.Array.from_buffers(pa.string(), 3, pa.array([b"\xff", b"b", b"c"]).buffers())
    scores, faults, _ = run(task(lambda row: (1.0,)), batch(texts))
    assert scores == [None, 1.0, 1.0]
    assert "UnicodeDecodeError" in faults[0]
    _, faults, told = run(task(lambda frame: frame.assign(score=1.0), many=True), batch(texts))
    assert [fault is None for fault in faults] == [False, True, True]
    assert "b'\\xff'" in told.keys.values()


def hanging(frame: pd.DataFrame) -> pd.DataFrame:
    while (frame["k"] == "b").any():
        pass
    return frame.assign(score=1.0)


def test_rows_beside_one_that_never_returns_are_kept_though_nothing_is_timed() -> None:
    untimed = task(hanging, many=True, limit_s=0.2, functions=None)
    scores, faults, _ = run(untimed, batch(["a", "b", "b", "c"]))
    assert scores == [1.0, None, None, 1.0]
    assert all("took more than 0.2 s" in fault for fault in faults[1:3])


def test_many_rows_of_a_key_that_take_long_together_are_kept() -> None:
    def slow(frame: pd.DataFrame) -> pd.DataFrame:
        import time

        time.sleep(0.06 * len(frame))
        return frame.assign(score=1.0)

    scores, faults, _ = run(task(slow, many=True, limit_s=0.3), batch(["a"] * 8))
    assert (scores, faults) == ([1.0] * 8, [None] * 8)


@pytest.mark.parametrize("many", [False, True])
def test_a_task_has_a_limit_though_every_key_hangs(many: bool) -> None:
    def hangs(row: Any) -> Any:
        while True:
            pass

    keys = list(range(MOST_ENDED + 5))
    _, faults, _ = run(task(hangs, many=many, limit_s=0.05), batch(keys))
    ended = [fault for fault in faults if "of its key" in fault]
    assert len(ended) == MOST_ENDED
    assert all("is not called any more" in fault for fault in faults[MOST_ENDED:])


def test_a_function_that_catches_everything_does_not_live_for_ever() -> None:
    code = """
import time
from jettison.spark.maps.time_limit import TimeLimit
with TimeLimit(0.2) as limit:
    limit.began_ns = time.perf_counter_ns()
    while True:
        try:
            time.sleep(0.01)
        except:
            pass
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, text=True)
    assert done.returncode != 0
    assert "Timeout" in done.stderr


def test_a_row_is_not_named_where_another_one_that_is_fit_has_its_identity() -> None:
    work = task(lambda row: (1 / row["k"],))
    twins = batch([0, 1, 2]).set_column(1, "_jt_id", pa.array([7, 7, 8], pa.int64()))
    _, _, told = run(work, twins)
    assert (told.unfit, told.rejected, told.names_all) == (1, {}, False)
    assert run(work, batch([0, 1, 2]))[2].names_all
