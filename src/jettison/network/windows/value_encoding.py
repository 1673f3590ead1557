"""Values of Python as bytes that are safe to read back: JSON, with a tag for every type that JSON lacks.

What is read back is plain data, whoever wrote it: no code runs, unlike with pickle. Types come back as they were: a
tuple stays a tuple, a key of a dict stays a number.

>>> encode({"sum": 1.5, "days": (1, None)})
b'J1{"d":[["sum",1.5],["days",{"t":[1,null]}]]}'
>>> decode(encode({"sum": 1.5, "days": (1, None)}))
{'sum': 1.5, 'days': (1, None)}
"""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

MARK = b"J1"
"""What encoded values begin with; the number is that of this format."""
PLAIN = "numbers, texts, bytes, times, lists, tuples, dicts and sets"
_LARGEST = 2**63
_NUMPY_KINDS = "biufcMm"

_Writes = Callable[[Any, str], Any]
_Reads = Callable[[Any], Any]


def encode(value: Any) -> bytes:
    """A value as bytes; TypeError says what in it cannot be kept."""
    text = json.dumps(_written(value, ""), separators=(",", ":"), allow_nan=False)
    return MARK + text.encode()


def decode(data: bytes) -> Any:
    """The value that was encoded; ValueError where these are other bytes, such as those of pickle."""
    if not data.startswith(MARK):
        what = "was written by pickle, which is not read" if data[:1] == b"\x80" else "is not what was written"
        raise ValueError(f"a kept value {what}: its first bytes are {data[:8]!r} and not {MARK!r}")
    return _read(json.loads(data[len(MARK) :]))


def _written(value: Any, place: str) -> Any:
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        return value if -_LARGEST <= value < _LARGEST else {"i": hex(value)}
    if kind is float:
        return value if math.isfinite(value) else {"f": repr(value)}
    if kind is list:
        return [_written(each, f"{place}[{at}]") for at, each in enumerate(value)]
    tag = _TAGS.get(kind)
    if tag is not None:
        return {tag: _KINDS[tag][1](value, place)}
    if kind.__module__ == "numpy":
        return _written_numpy(value, place)
    raise TypeError(_refusal(kind, place))


def _refusal(kind: type, place: str) -> str:
    where = f" (at {place[:60]})" if place else ""
    return (
        f"a value of type {kind.__module__}.{kind.__qualname__}{where}, which cannot be kept: make it of {PLAIN}, or "
        f"ask for pickle with encoding='pickle'"
    )


def _written_numpy(value: Any, place: str) -> Any:
    import numpy as np

    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in _NUMPY_KINDS:
        flat = np.ascontiguousarray(value)
        tag = "a" if isinstance(value, np.ndarray) else "n"
        return {tag: [value.dtype.str, list(value.shape), base64.b64encode(flat.tobytes()).decode()]}
    raise TypeError(_refusal(type(value), place))


def _read_numpy(encoded: Any) -> Any:
    import numpy as np

    dtype, shape, data = encoded
    if np.dtype(dtype).kind not in _NUMPY_KINDS:
        raise ValueError(f"a kept array of type {dtype!r} is not one of numbers")
    return np.frombuffer(base64.b64decode(data), np.dtype(dtype)).reshape(shape).copy()


def _read(encoded: Any) -> Any:
    if type(encoded) is list:
        return [_read(each) for each in encoded]
    if type(encoded) is dict:
        ((tag, inside),) = encoded.items()
        return _KINDS[tag][2](inside)
    return encoded


def _each(values: Any, place: str) -> list[Any]:
    return [_written(each, f"{place}[{at}]") for at, each in enumerate(values)]


def _pairs(values: Any, place: str) -> list[Any]:
    return [
        [_written(key, f"{place} key {key!r}"), _written(each, f"{place}[{key!r}]")] for key, each in values.items()
    ]


def _read_pairs(encoded: Any) -> list[tuple[Any, Any]]:
    return [(_read(key), _read(each)) for key, each in encoded]


def _read_all(encoded: Any) -> list[Any]:
    return [_read(each) for each in encoded]


def _counter(encoded: Any) -> Counter[Any]:
    found: Counter[Any] = Counter()
    dict.update(found, _read_pairs(encoded))
    return found


def _zone(value: dt.datetime | dt.time, place: str) -> Any:
    """A time zone: none, its name, or its distance from UTC in microseconds."""
    zone = value.tzinfo
    if zone is None:
        return None
    if type(zone) is ZoneInfo and zone.key:
        return zone.key
    if type(zone) is dt.timezone:
        offset = zone.utcoffset(None)
        return offset // dt.timedelta(microseconds=1)
    raise TypeError(_refusal(type(zone), place))


@lru_cache(maxsize=64)
def _read_zone(encoded: Any) -> dt.tzinfo | None:
    if encoded is None:
        return None
    return ZoneInfo(encoded) if isinstance(encoded, str) else dt.timezone(dt.timedelta(microseconds=encoded))


def _written_time(value: dt.datetime | dt.time, place: str) -> list[Any]:
    return [value.replace(tzinfo=None).isoformat(), value.fold, _zone(value, place)]


_KINDS: dict[str, tuple[type | None, _Writes, _Reads]] = {
    "i": (None, lambda value, _: hex(value), lambda encoded: int(encoded, 16)),
    "f": (None, lambda value, _: repr(value), float),
    "t": (tuple, _each, lambda encoded: tuple(_read_all(encoded))),
    "d": (dict, _pairs, lambda encoded: dict(_read_pairs(encoded))),
    "o": (OrderedDict, _pairs, lambda encoded: OrderedDict(_read_pairs(encoded))),
    "c": (Counter, _pairs, _counter),
    "s": (set, lambda value, place: _each(sorted(value, key=repr), place), lambda encoded: set(_read_all(encoded))),
    "z": (
        frozenset,
        lambda value, place: _each(sorted(value, key=repr), place),
        lambda encoded: frozenset(_read_all(encoded)),
    ),
    "q": (
        deque,
        lambda value, place: [value.maxlen, _each(value, place)],
        lambda encoded: deque(_read_all(encoded[1]), encoded[0]),
    ),
    "b": (bytes, lambda value, _: base64.b64encode(value).decode(), base64.b64decode),
    "y": (
        bytearray,
        lambda value, _: base64.b64encode(value).decode(),
        lambda encoded: bytearray(base64.b64decode(encoded)),
    ),
    "D": (
        dt.datetime,
        _written_time,
        lambda encoded: dt.datetime.fromisoformat(encoded[0]).replace(fold=encoded[1], tzinfo=_read_zone(encoded[2])),
    ),
    "T": (
        dt.time,
        _written_time,
        lambda encoded: dt.time.fromisoformat(encoded[0]).replace(fold=encoded[1], tzinfo=_read_zone(encoded[2])),
    ),
    "A": (dt.date, lambda value, _: value.isoformat(), dt.date.fromisoformat),
    "L": (
        dt.timedelta,
        lambda value, _: [value.days, value.seconds, value.microseconds],
        lambda encoded: dt.timedelta(*encoded),
    ),
    "E": (Decimal, lambda value, _: str(value), Decimal),
    "a": (None, _written_numpy, _read_numpy),
    "n": (None, _written_numpy, lambda encoded: _read_numpy(encoded)[()]),
}
"""By tag: the type, how a value is written, and how it is read."""
_TAGS = {kind: tag for tag, (kind, _, _) in _KINDS.items() if kind is not None}
