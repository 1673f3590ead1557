"""Aggregates of the user's own, in Python: four functions whose partial results merge, or one of a whole window.

Both may throw. Then the window that they threw on gets null in that column and is counted as failed, with the reason;
its other columns and all other windows stay as they are.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jettison.errors import NetworkError, StartError
from jettison.network.calls import checked_call
from jettison.network.columns.types import unknown_type
from jettison.network.import_paths import Imported, imported
from jettison.network.windows.value_encoding import encode

FUNCTIONS = ("init", "incr", "merge", "final")
ENCODINGS = ("plain", "pickle")
"""How values are kept in the checkpoint: as plain data, or by pickle, whose bytes run code when they are read."""
PLAIN_LABEL = " as plain values"
_GIVEN = {
    "init": "none",
    "incr": "the value so far, then every column",
    "merge": "the value so far, and that of what comes later",
    "final": "the value",
    "function": "the window's rows",
}


@dataclass(frozen=True)
class UserAggregate:
    """A value that is carried from row to row, in the order of event time within a slice, and merged across slices."""

    init: Callable[[], Any]
    incr: Callable[..., Any]
    merge: Callable[[Any, Any], Any]
    final: Callable[[Any], Any]
    columns: tuple[str, ...]
    type: str
    encoding: str = "plain"

    def __post_init__(self) -> None:
        for word in FUNCTIONS:
            _check_function("aggregate", word, getattr(self, word))
        _check("aggregate", self.columns, self.type)
        if self.encoding not in ENCODINGS:
            raise NetworkError(
                f"aggregate(): encoding={self.encoding!r} is not known: say one of {', '.join(ENCODINGS)}."
            )

    def __str__(self) -> str:
        return f"{function_name(self.incr)}({', '.join(self.columns)})"


@dataclass(frozen=True)
class WholeWindow:
    """A function of all rows of a window, as a pandas DataFrame in the order of event time."""

    function: Callable[[Any], Any]
    columns: tuple[str, ...]
    type: str

    def __post_init__(self) -> None:
        _check_function("whole_window", "function", self.function)
        _check("whole_window", self.columns, self.type)

    def __str__(self) -> str:
        return f"{function_name(self.function)}({', '.join(self.columns)})"


Own = UserAggregate | WholeWindow


@checked_call("jt.aggregate")
def aggregate(
    *,
    init: Callable[[], Any] | str,
    incr: Callable[..., Any] | str,
    merge: Callable[[Any, Any], Any] | str,
    final: Callable[[Any], Any] | str,
    columns: str | Sequence[str],
    type: str,
    encoding: str = "plain",
) -> UserAggregate:
    """An aggregate of your own for `.agg(...)`, as functions of a value that is kept in the checkpoint.

    `init()` gives the value of no rows, `incr(value, *columns)` that with one row more, `merge(value, later)` that of
    both, `final(value)` the result, of Spark's `type`. A function may be given by its import path, "module:name".

    The value is made of None, bool, int, float, str, bytes, dates and times, Decimal, list, tuple, dict, Counter, set,
    frozenset, deque, and numbers and arrays of NumPy. `encoding="pickle"` keeps anything that pickle can write. The
    risk: whoever can write to the checkpoint can then run code on your executors.

    The geometric mean of a fare, for one slice of two rows and one of one row:

    >>> import math
    >>> mean = aggregate(
    ...     init=lambda: (0.0, 0),
    ...     incr=lambda value, fare: (value[0] + math.log(fare), value[1] + 1),
    ...     merge=lambda value, later: (value[0] + later[0], value[1] + later[1]),
    ...     final=lambda value: math.exp(value[0] / value[1]),
    ...     columns="fare",
    ...     type="double",
    ... )
    >>> first = mean.incr(mean.incr(mean.init(), 2.0), 8.0)
    >>> round(mean.final(mean.merge(first, mean.incr(mean.init(), 4.0))), 6)
    4.0
    """
    first, more, both, last = (_named("aggregate", each) for each in (init, incr, merge, final))
    return UserAggregate(first, more, both, last, _columns("aggregate", columns), type, encoding)


@checked_call("jt.whole_window")
def whole_window(function: Callable[[Any], Any] | str, *, columns: str | Sequence[str], type: str) -> WholeWindow:
    """An aggregate of your own for `.agg(...)`: a function of a window's rows, as a pandas DataFrame of `columns`.

    All of those rows are kept until the window closes, and once more for every window that they are in when it does:
    `aggregate` keeps less.

    >>> str(whole_window(len, columns=["fare", "tip"], type="long"))
    'len(fare, tip)'
    """
    return WholeWindow(_named("whole_window", function), _columns("whole_window", columns), type)


def with_functions(element: str, own: Own) -> Own:
    """The aggregate with the functions that its paths name; `element` is named where there is none.

    >>> with_functions("aggregate 'a'", whole_window("builtins:len", columns="fare", type="long")).function
    <built-in function len>
    """
    given = {"init": 0, "incr": 1 + len(own.columns), "merge": 2, "final": 1, "function": 1}
    words = FUNCTIONS if isinstance(own, UserAggregate) else ("function",)
    found = replace(own, **{word: _found(element, word, getattr(own, word), given[word]) for word in words})
    if isinstance(found, UserAggregate) and found.encoding == "plain":
        _check_first_value(element, found)
    return found


def _check_first_value(element: str, own: UserAggregate) -> None:
    """Refuse what cannot be kept before anything runs, as far as the value of no rows tells it."""
    try:
        value = own.init()
    except Exception:  # it fails windows, with its reason, as any other function that throws
        return
    try:
        encode(value)
    except TypeError as error:
        raise StartError(f"{element}: init() gives {error}.") from error


def encoding_label(own: Own) -> str:
    """What is added to the name of what is kept, so that values of another encoding are never taken for it. That of
    pickle is what it was before there was another."""
    return PLAIN_LABEL if isinstance(own, UserAggregate) and own.encoding == "plain" else ""


def pickled_before(before: str, now: str) -> bool:
    """Whether two texts of what is kept differ by nothing but pickle before and plain values now.

    >>> pickled_before("a.b of (c) binary", "a.b of (c) as plain values binary"), pickled_before("a", "b")
    (True, False)
    """
    return before != now and before == now.replace(PLAIN_LABEL, "")


def function_name(function: object) -> str:
    """What a function is called, where it says.

    >>> function_name(len), function_name(lambda: 1)
    ('len', 'lambda')
    """
    if isinstance(function, Imported):
        return function.name
    name = str(getattr(function, "__name__", type(function).__name__))
    return name.strip("<>")


def _named(word: str, function: Any) -> Any:
    """A function, or what stands for it where a path is given."""
    try:
        return Imported(function) if isinstance(function, str) and ":" in function else function
    except NetworkError as error:
        raise NetworkError(f"{word}(): {error}") from error


def _found(element: str, word: str, function: Any, given: int) -> Any:
    """The function itself, if it takes as many values as it will be given."""
    place = f"{element}: {'whole_window' if word == 'function' else word}"
    found = imported(place, function.path) if isinstance(function, Imported) else function
    try:
        takes = inspect.signature(found)
    except (TypeError, ValueError):  # some that are built in do not tell
        return found
    try:
        takes.bind(*(None,) * given)
    except TypeError as error:
        shown = function.path if isinstance(function, Imported) else function_name(function)
        raise StartError(
            f"{place} is {shown!r}, which takes {takes} and will be called with {given} values ({_GIVEN[word]}): "
            f"name a function of that kind."
        ) from error
    return found


def _columns(word: str, columns: object) -> tuple[str, ...]:
    if isinstance(columns, str):
        return (columns,)
    if not isinstance(columns, Sequence):
        raise NetworkError(f"{word}(): columns={columns!r} is not a list of names, such as columns=['price'].")
    return tuple(columns)


def _check_function(word: str, argument: str, function: object) -> None:
    if not callable(function):
        raise NetworkError(
            f"{word}(): {argument}={function!r} cannot be called: give a function, or its path 'module:function'."
        )


def _check(word: str, columns: tuple[str, ...], type: object) -> None:
    for name in columns:
        if not isinstance(name, str) or not name:
            raise NetworkError(f"{word}(): {name!r} in `columns` is not a column's name, such as 'price'.")
    if not columns:
        raise NetworkError(f"{word}(): name at least one column that the functions get, such as columns=['price'].")
    if len({name.lower() for name in columns}) < len(columns):
        raise NetworkError(f"{word}(): `columns` names a column twice ({', '.join(columns)}): name each once.")
    if not isinstance(type, str) or not type.strip():
        raise NetworkError(f"{word}(): type={type!r} is not a type of Spark, such as 'double' or 'array<int>'.")
    if (fault := unknown_type(type)) is not None:
        raise NetworkError(f"{word}(): type={type!r} has {fault}: use one of Spark's, such as double or array<int>.")
