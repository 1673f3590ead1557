"""What a user's function gave, as Arrow columns of the declared types: what does not fit is named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import pyarrow as pa

_LONGEST_REASON = 300
_LONGEST_VALUE = 60

Faults = dict[int, str]
"""Why rows are rejected, by their place in a batch."""


class ResultError(Exception):
    """A function gave something else than it was declared to give."""


def reason_text(error: BaseException) -> str:
    """An error as text that every column of text can hold.

    >>> reason_text(ValueError("half of a \\ud800 pair"))
    'ValueError: half of a \\\\ud800 pair'
    """
    try:
        text = f"{type(error).__name__}: {error}" if not isinstance(error, ResultError) else str(error)
    except Exception:  # it is the user's own, and its text may throw too
        text = type(error).__name__
    return text[:_LONGEST_REASON].encode("utf-8", "backslashreplace").decode()


def row_values(result: Any, names: Sequence[str]) -> Sequence[Any]:
    """The values of one row's result, in the declared order.

    >>> row_values({"score": 0.5, "more": 1}, ["score"]), row_values((0.5,), ["score"])
    ([0.5], (0.5,))
    >>> row_values(0.5, ["score"])
    Traceback (most recent call last):
    jettison.spark.maps.results.ResultError: the function gave 0.5, a float: return a dict with score, or a tuple.
    """
    if isinstance(result, Mapping):
        try:
            return [result[name] for name in names]
        except KeyError as error:
            given = ", ".join(map(str, result)) or "nothing"
            raise ResultError(f"the function gave no column {error}: it gave {given}.") from None
    if isinstance(result, tuple | list):
        if len(result) != len(names):
            raise ResultError(f"the function gave {len(result)} values, and declared are {', '.join(names)}.")
        return result
    wanted = f"return a dict with {', '.join(names)}, or a tuple"
    raise ResultError(f"the function gave {_shown(result)}: {wanted}.")


def column_of(values: Sequence[Any], field: pa.Field, faults: Faults) -> pa.Array:
    """Values as an Arrow column. Those that do not fit are null, and why is added to `faults`.

    >>> faults = {}
    >>> column_of([0.5, "high", 2], pa.field("score", pa.float64()), faults).to_pylist(), faults
    ([0.5, None, 2.0], {1: "column score is 'high', a str, and declared double."})
    """
    if not _may_be_cut(values, field.type):
        try:
            return pa.array(values, field.type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            pass
    kept = list(values)
    for place, value in enumerate(values):
        try:
            if not _may_be_cut((value,), field.type):
                pa.array([value], field.type)
                continue
        except Exception:  # the value may be an object of the user's, whose methods may throw anything
            pass
        kept[place] = None
        faults.setdefault(place, f"column {field.name} is {_shown(value)}, and declared {field.type}.")
    return pa.array(kept, field.type)


def _may_be_cut(values: Iterable[Any], kind: pa.DataType) -> bool:
    """Whether Arrow would change a value in silence: it cuts 3.7 down to a whole 3, and a text into its letters.

    >>> _may_be_cut([3, 3.0, None], pa.int64()), _may_be_cut([[1, 3.7]], pa.list_(pa.int32()))
    (False, True)
    """
    if pa.types.is_integer(kind):
        others = (each for each in values if each is not None and type(each) is not int)
        return any(isinstance(each, Real | Decimal) and not _is_whole(each) for each in others)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        given = [each for each in values if each is not None]
        return any(isinstance(each, str | bytes) for each in given) or any(
            _may_be_cut(each, kind.value_type) for each in given if isinstance(each, list | tuple)
        )
    if pa.types.is_struct(kind):
        given = [each for each in values if isinstance(each, Mapping)]
        return any(_may_be_cut([each.get(part.name) for each in given], part.type) for part in kind)
    return False


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) or float(value).is_integer()


def rows_columns(result: Any, count: int, fields: Sequence[pa.Field]) -> list[pa.Array]:
    """The columns that a function of many rows gave: a pandas DataFrame, an Arrow table, or columns by name."""
    columns = []
    for field in fields:
        try:
            column = result[field.name]
        except (KeyError, TypeError, IndexError):
            column = None
        if column is None:
            wanted = ", ".join(each.name for each in fields)
            raise ResultError(f"the function gave {_kind(result)} without column {field.name}: return {wanted}.")
        if not hasattr(column, "__len__"):
            raise ResultError(f"column {field.name} is {_shown(column)}: return a value for each of {count} rows.")
        if len(column) != count:
            raise ResultError(f"the function gave {len(column)} rows for {count}: return one for each.")
        columns.append(_converted(column, field))
    return columns


def _converted(column: Any, field: pa.Field) -> pa.Array:
    if isinstance(column, pa.ChunkedArray | pa.Array):
        try:
            found = column.cast(field.type)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise ResultError(f"column {field.name} is {column.type}, and declared {field.type}.") from error
        return pa.concat_arrays(found.chunks) if isinstance(found, pa.ChunkedArray) else found
    if str(getattr(column, "dtype", "object")) == "object" and _may_be_cut(column, field.type):
        raise ResultError(f"column {field.name} has values that do not fit, and is declared {field.type}.")
    try:
        found = pa.array(column, field.type, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        shown = _shown(next(iter(column))) if len(column) == 1 else f"a column of {getattr(column, 'dtype', 'objects')}"
        raise ResultError(f"column {field.name} is {shown}, and declared {field.type}.") from error
    return pa.concat_arrays(found.chunks) if isinstance(found, pa.ChunkedArray) else found


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:  # it is the user's own
        return f"{_kind(value)} without a repr"
    text = text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 3]}..."
    return "None" if value is None else f"{text}, {_kind(value)}"


def _kind(value: Any) -> str:
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"
