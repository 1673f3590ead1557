"""Aggregates of the user's own as columns of Spark: what a slice keeps of its rows, how that merges, and the result.

Spark collects the rows of a group and slice, and Python makes one value of them, encoded as plain data
(`value_encoding`), or pickled where the user asks for it. A function that throws does
not end the run: what it threw takes the value's place, goes through every merge, and comes out as the reason why the
window failed. Rows are put into the order of event time before, and values into that of their first rows, so that a
batch that is repeated gives the same again.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, DataType, StringType, StructField, StructType

from jettison.network.columns.schema import quoted
from jettison.network.windows.user_aggregates import Own, UserAggregate, WholeWindow
from jettison.network.windows.value_encoding import decode, encode
from jettison.spark.compile.drops import IDENTITY, TIME
from jettison.spark.windows.user_values import taking

_LONGEST_REASON = 300
_UNKNOWN = (0, 0)
"""When the first row was of a partial that cannot be read."""


@dataclass(frozen=True)
class OwnColumns:
    """One aggregate of the user's own: over rows, over partials, and the result with the reason of its failure."""

    partial: Column
    merge: Column
    value: Column
    failed: Column


_MOMENT = f"unix_micros(CAST({TIME} AS timestamp))"


def own_columns(own: Own, kind: DataType, column: str, moment: str = _MOMENT) -> OwnColumns:
    """The columns of an aggregate whose partials are kept in `column`, and whose result is of type `kind`.

    Rows are in the order of `moment`, a long."""
    order = [F.expr(f"{moment} AS at"), F.expr(f"{IDENTITY} AS id")]
    fields = [F.expr(f"{quoted(name)} AS c{number}") for number, name in enumerate(own.columns)]
    rows = F.collect_list(F.struct(*order, *fields))
    kept = F.col(column)
    struct = StructType([StructField("v", kind), StructField("failed", StringType())])
    result = F.udf(_result_of(own, kind), struct, useArrow=False)
    made = result(kept)
    if isinstance(own, WholeWindow):
        partial, merge = rows, F.flatten(F.collect_list(kept))
    else:
        partial = F.udf(_folding(own), BinaryType(), useArrow=False)(rows)
        merge = F.udf(_merging(own), BinaryType(), useArrow=False)(F.collect_list(kept))
    return OwnColumns(partial, merge, made.getField("v"), made.getField("failed"))


# --- in Python workers ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Thrown:
    """What a function threw, in the place of its value."""

    reason: str


def _tried(work: Callable[[], Any], but: tuple[type[Exception], ...] = ()) -> Any:
    try:
        return work()
    except but:
        raise
    except Exception as error:
        return _Thrown(_error_text(error)[:_LONGEST_REASON])


def _error_text(error: Exception) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # it is the user's own, and its text may throw too
        return type(error).__name__


class _Reader(pickle.Unpickler):
    """Reads pickled partials, also those of the time when thrown values were pickled as what they are."""

    def find_class(self, module: str, name: str) -> Any:
        return (
            _Thrown if name == _Thrown.__name__ and module.startswith("jettison.") else super().find_class(module, name)
        )


@dataclass(frozen=True)
class _Codec:
    """How partials become bytes and values again. A partial is when its first row was, and its value."""

    encoding: str

    def write(self, first: tuple[int, int], value: Any) -> bytes:
        made = _tried(lambda: self._bytes(first, value))
        return self._bytes(first, made) if isinstance(made, _Thrown) else made

    def read(self, partial: Any) -> tuple[tuple[int, int], Any]:
        """A partial as it was written; what cannot be read back takes the value's place.

        Not so where the class of a pickled value is not there: with the module in its place it can be read again, so
        that ends the run.
        """
        found = _tried(lambda: self._value(bytes(partial)), but=(ImportError, AttributeError))
        return (_UNKNOWN, found) if isinstance(found, _Thrown) else found

    def _bytes(self, first: tuple[int, int], value: Any) -> bytes:
        thrown = isinstance(value, _Thrown)
        if self.encoding == "pickle":  # what was thrown as plain data: a class of ours may move to another module
            return pickle.dumps((first, value.reason, True) if thrown else (first, value))
        return encode((*first, thrown)) + b"\n" + encode(value.reason if thrown else value)

    def _value(self, data: bytes) -> tuple[tuple[int, int], Any]:
        if self.encoding == "pickle":
            first, value, *was_thrown = _Reader(io.BytesIO(data)).load()
            return first, _Thrown(value) if was_thrown else value
        head, _, rest = data.partition(b"\n")
        at, identity, thrown = decode(head)
        value = decode(rest)
        return (at, identity), _Thrown(value) if thrown else value


def _in_order(rows: Any) -> list[Any]:
    return sorted(rows, key=_moment)


def _moment(row: Any) -> tuple[int, int]:
    return row[0] or 0, row[1] or 0


def _folding(own: UserAggregate) -> Callable[[Any], bytes]:
    codec = _Codec(own.encoding)

    def folded(rows: Any) -> bytes:
        ordered = _in_order(rows)
        value = _tried(lambda: reduce(lambda before, row: own.incr(before, *row[2:]), ordered, own.init()))
        return codec.write(_moment(ordered[0]), value)

    return folded


def _merging(own: UserAggregate) -> Callable[[Any], bytes | None]:
    codec = _Codec(own.encoding)

    def joined(before: Any, later: Any) -> Any:
        thrown = next((each for each in (before, later) if isinstance(each, _Thrown)), None)
        return _tried(lambda: own.merge(before, later)) if thrown is None else thrown

    def merged(partials: Any) -> bytes | None:
        if len(partials) <= 1:  # none in slices from before this aggregate was declared
            return bytes(partials[0]) if partials else None
        found = sorted(map(codec.read, partials), key=lambda each: each[0])
        return codec.write(found[0][0], reduce(joined, (value for _, value in found)))

    return merged


def _result_of(own: Own, kind: DataType) -> Callable[[Any], tuple[Any, str | None]]:
    taken = taking(kind)

    def value_of(kept: Any) -> Any:
        if isinstance(own, WholeWindow):
            import pandas as pd

            rows = [tuple(row[2:]) for row in _in_order(kept)]
            return own.function(pd.DataFrame.from_records(rows, columns=list(own.columns)))
        _, value = _Codec(own.encoding).read(kept)
        return value if isinstance(value, _Thrown) else own.final(value)

    def checked(kept: Any) -> Any:
        value = value_of(kept)
        return value if isinstance(value, _Thrown) else taken(value)

    def result(kept: Any) -> tuple[Any, str | None]:
        if kept is None:
            return None, None
        made = _tried(lambda: checked(kept))
        return (None, made.reason) if isinstance(made, _Thrown) else (made, None)

    return result
