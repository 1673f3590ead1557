"""Calls of a user's function on the rows of an Arrow batch, each with the time that it took."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from jettison.spark.maps.results import Faults, ResultError, column_of, reason_text, row_values, rows_columns
from jettison.spark.maps.time_limit import TimeLimit, TookTooLong

Longs = NDArray[np.int64]
MOST_ENDED = 10
"""When calls for so many keys were ended in one task, no more are made: a batch must not take an hour for a function
that waits for a server that is down."""


@dataclass(frozen=True)
class Called:
    """What calls gave: the added columns, why rows are rejected, and what calls took.

    Call i was for `counts[i]` rows of one key, of which `firsts[i]` is one; it began at `began_ns[i]` of the process's
    clock and took `took_ns[i]`.
    """

    columns: list[pa.Array]
    faults: Faults
    firsts: Longs
    counts: Longs
    began_ns: Longs
    took_ns: Longs


class Caller:
    """Calls one function. Keys on which it has once taken too long are not tried again in the same task; after a
    number of such keys nothing is."""

    def __init__(self, function: Callable[..., Any], fields: Sequence[pa.Field], limit_s: float) -> None:
        self._function = function
        self._fields = list(fields)
        self._names = [field.name for field in fields]
        self._limit_s = limit_s
        self._refused: set[int] = set()
        self._wants_table = _wants_table(function)

    def row_by_row(self, rows: pa.RecordBatch, keys: Sequence[int]) -> Called:
        """One call for every row; `keys` are hashes of their keys."""
        count, faults = rows.num_rows, Faults()
        empty: Sequence[Any] = (None,) * len(self._fields)
        values: list[Sequence[Any]] = [empty] * count
        began_ns, took_ns = [0] * count, [-1] * count
        function, names, refused = self._function, self._names, self._refused
        with TimeLimit(self._limit_s) as limit:
            for place, row in enumerate(_python_rows(rows, faults)):
                if row is None:
                    continue
                if refused and (keys[place] in refused or len(refused) >= MOST_ENDED):
                    faults[place] = self._untried(keys[place])
                    continue
                began = limit.began_ns = perf_counter_ns()
                try:
                    result = function(row)
                    took_ns[place] = perf_counter_ns() - began
                    limit.began_ns = 0
                    values[place] = row_values(result, names)
                except TookTooLong:
                    limit.began_ns = 0
                    refused.add(keys[place])
                    faults[place] = self._untried(keys[place])
                except KeyboardInterrupt:
                    raise
                except BaseException as error:  # sys.exit() too: it would end the worker, and with it the run
                    limit.began_ns = 0
                    faults[place] = reason_text(error)
                if took_ns[place] < 0:
                    took_ns[place] = perf_counter_ns() - began
                began_ns[place] = began
        columns = [
            column_of([each[number] for each in values], field, faults) for number, field in enumerate(self._fields)
        ]
        took = np.asarray(took_ns, np.int64)
        called = np.flatnonzero(took >= 0)
        began_all = np.asarray(began_ns, np.int64)
        return Called(columns, faults, called, np.ones(len(called), np.int64), began_all[called], took[called])

    def by_groups(self, rows: pa.RecordBatch, keys: Longs, *, together: bool) -> Called:
        """One call for all rows of a key, or for all rows where `together`."""
        groups = [np.arange(rows.num_rows)] if together else _groups(keys)
        made: list[tuple[Longs, list[pa.Array] | None]] = []
        faults, calls = Faults(), list[tuple[int, int, int, int]]()
        with TimeLimit(self._limit_s) as limit:
            for places in groups:
                first = int(places[0])
                key = int(keys[first])
                if not together and (key in self._refused or len(self._refused) >= MOST_ENDED):
                    faults |= dict.fromkeys(places.tolist(), self._untried(key))
                    made.append((places, None))
                    continue
                began = perf_counter_ns()
                made += self._halved(rows, places, limit, faults, keys)
                calls.append((first, len(places), began, perf_counter_ns() - began))
        order = np.argsort(np.concatenate([places for places, _ in made]), kind="stable")
        columns = []
        for number, field in enumerate(self._fields):
            pieces = [pa.nulls(len(at), field.type) if each is None else each[number] for at, each in made]
            columns.append(pa.concat_arrays(pieces).take(pa.array(order)))
        firsts, counts, began_ns, took_ns = np.asarray(calls, np.int64).reshape(-1, 4).T
        return Called(columns, faults, firsts, counts, began_ns, took_ns)

    def _halved(
        self, rows: pa.RecordBatch, places: Longs, limit: TimeLimit, faults: Faults, keys: Longs
    ) -> list[tuple[Longs, list[pa.Array] | None]]:
        """What the function gives for some rows; where it fails, for halves of them, down to the rows it fails on."""
        given = rows.take(pa.array(places)) if len(places) < rows.num_rows else rows
        try:
            limit.began_ns = perf_counter_ns()
            result = self._function(pa.Table.from_batches([given]) if self._wants_table else given.to_pandas())
            limit.began_ns = 0
            return [(places, rows_columns(result, len(places), self._fields))]
        except TookTooLong:
            limit.began_ns = 0
            return self._one_by_one(rows, places, limit, faults, keys)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # sys.exit() too: it would end the worker, and with it the run
            limit.began_ns = 0
            if len(places) == 1:
                faults[int(places[0])] = reason_text(error)
                return [(places, None)]
            half = len(places) // 2
            before = self._halved(rows, places[:half], limit, faults, keys)
            return before + self._halved(rows, places[half:], limit, faults, keys)

    def _one_by_one(
        self, rows: pa.RecordBatch, places: Longs, limit: TimeLimit, faults: Faults, keys: Longs
    ) -> list[tuple[Longs, list[pa.Array] | None]]:
        """Rows that took too long together, each by itself: they may be many, or one of them may never end."""
        made: list[tuple[Longs, list[pa.Array] | None]] = []
        for at in range(len(places)):
            place, alone = int(places[at]), places[at : at + 1]
            key = int(keys[place])
            if len(places) == 1:
                self._refused.add(key)
            if key in self._refused or len(self._refused) >= MOST_ENDED:
                faults[place] = self._untried(key)
                made.append((alone, None))
            else:
                made += self._halved(rows, alone, limit, faults, keys)
        return made

    def _untried(self, key: int) -> str:
        """Why a row is rejected without another call."""
        if key in self._refused:
            return f"the function took more than {self._limit_s:g} s for a row of its key: see `limit`."
        return (
            f"the function took more than {self._limit_s:g} s for rows of {MOST_ENDED} other keys of this task, and is "
            f"not called any more in it: see `limit`."
        )


def _python_rows(rows: pa.RecordBatch, faults: Faults) -> list[dict[str, Any] | None]:
    """Rows as dicts; None for those that hold a text that is no UTF-8, which Spark may read from files."""
    try:
        found: list[dict[str, Any] | None] = rows.to_pylist()
        return found
    except UnicodeDecodeError:
        found = []
    for place in range(rows.num_rows):
        try:
            found += rows.slice(place, 1).to_pylist()
        except UnicodeDecodeError as error:
            faults[place] = reason_text(error)
            found.append(None)
    return found


def _groups(keys: Longs) -> list[Longs]:
    """The places of rows by key, in the order in which keys first come."""
    order = np.argsort(keys, kind="stable")
    cuts = np.flatnonzero(np.diff(keys[order])) + 1
    return sorted(np.split(order, cuts), key=lambda places: int(places[0]))


def _wants_table(function: Callable[..., Any]) -> bool:
    """Whether a function says that it takes an Arrow table."""
    try:
        given = next(iter(inspect.signature(function).parameters.values())).annotation
    except (ValueError, TypeError, StopIteration):
        return False
    return given is pa.Table or (isinstance(given, str) and given.rpartition(".")[2] == "Table")


__all__ = ["Called", "Caller", "ResultError"]
