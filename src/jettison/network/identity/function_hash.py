"""The identity of a function and of the values it holds, the same in every process.

Some values say nothing of what they are but their type: an object with fields of its own, a DataFrame. They are marked
`<unknown Type>`, so that two functions that look alike are not taken for the same.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import partial
from pathlib import PurePath
from types import CodeType, ModuleType
from typing import Any
from uuid import UUID

from jettison.network.import_paths import Imported

_DIGITS = 16
_PLAIN = (str, bytes, bytearray, int, float, complex, bool, type(None), type(...), range)
_VALUES = (Decimal, Fraction, timedelta, date, UUID, PurePath)
_ARRAY_BYTES = 16 * 2**20
_UNKNOWN = re.compile(r"<unknown [^<>]*>")


def unknown(kind: str) -> str:
    """The mark of something of which only the type is known."""
    return f"<unknown {kind}>"


def unknown_parts(lines: tuple[str, ...]) -> tuple[str, ...]:
    """The types of what a lineage marks as unknown.

    >>> unknown_parts(("source trips", "join [0] table <unknown DataFrame> on=(zone)"))
    ('DataFrame',)
    """
    return tuple(dict.fromkeys(found[9:-1] for line in lines for found in _UNKNOWN.findall(line)))


def function_identity(function: Callable[..., Any] | str) -> str:
    """A function by its import path; where nothing can be imported, such as a lambda, also by its code and by what it
    holds.

    >>> function_identity(len), function_identity("my.fares:added")
    ('builtins:len', 'my.fares:added')
    >>> function_identity(lambda x: x + 1) == function_identity(lambda x: x - 1)
    False
    >>> function_identity(partial(max, {"low": 3})) == function_identity(partial(max, {"low": 4}))
    False
    """
    return _function(function, ())


def constant(value: Any) -> object:
    """A value as JSON has it, the same in every process; marked where only its type is known.

    >>> constant({"b": 1.5, "a": {2, 1}})
    ['dict', ["'a'", ['set', '1', '2']], ["'b'", '1.5']]
    """
    return _constant(value, ())


def _function(function: Any, above: tuple[int, ...]) -> str:
    if isinstance(function, str | Imported):
        return function if isinstance(function, str) else function.path
    above = (*above, id(function))
    if isinstance(function, partial):
        given = [_constant(function.args, above), _constant(function.keywords, above)]
        return f"{_function(function.func, above)} with {_hashed(given)}"
    name = getattr(function, "__qualname__", None)
    if name is None:
        return _hashed(_constant(function, above[:-1]), f"{type(function).__module__}:{type(function).__qualname__} ")
    path = f"{getattr(function, '__module__', None)}:{name}"
    owner = getattr(function, "__self__", None)
    if owner is not None and not isinstance(owner, ModuleType):  # a method of an object
        return _hashed(_constant(owner, above), f"{path} of ")
    code = getattr(function, "__code__", None)
    if code is None or "<" not in name:
        return path
    cells = [_constant(_held(cell), above) for cell in getattr(function, "__closure__", None) or ()]
    given = [_constant(getattr(function, each, None), above) for each in ("__defaults__", "__kwdefaults__")]
    return _hashed([_code(code, above), cells, given], f"{path} ")


def _held(cell: Any) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # a variable that has no value yet
        return None


def _code(code: CodeType, above: tuple[int, ...]) -> list[object]:
    return [code.co_code.hex(), list(code.co_names), [_constant(each, above) for each in code.co_consts]]


def _constant(value: Any, above: tuple[int, ...]) -> object:
    """A value as JSON has it; `above` has what holds it, which it may hold in turn."""
    kind = type(value).__qualname__
    if id(value) in above and not isinstance(value, _PLAIN):
        return f"what holds it, {above[::-1].index(id(value))} above"
    inner = (*above, id(value))
    if isinstance(value, CodeType):
        return _code(value, above)
    if isinstance(value, Enum):
        return [kind, value.name]
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, datetime | time) and value.tzinfo is not None:
        zone = value.tzinfo
        named = type(zone).__module__ in ("datetime", "zoneinfo")
        return [kind, value.isoformat(), repr(zone) if named else unknown(type(zone).__name__)]
    if isinstance(value, (*_VALUES, time, re.Pattern)):
        return [kind, repr(value)]
    if isinstance(value, tuple | list):
        return [kind, *(_constant(each, inner) for each in value)]
    if isinstance(value, frozenset | set):
        return [kind, *sorted((_constant(each, inner) for each in value), key=json.dumps)]
    if isinstance(value, Mapping):
        pairs = [[_constant(key, inner), _constant(each, inner)] for key, each in value.items()]
        return [kind, *sorted(pairs, key=json.dumps)]
    if isinstance(value, ModuleType):
        return value.__name__
    if isinstance(value, type):
        return f"{value.__module__}:{value.__qualname__}"
    if is_dataclass(value):
        return [kind, *([each.name, _constant(getattr(value, each.name), inner)] for each in fields(value))]
    if isinstance(value, partial) or (callable(value) and hasattr(value, "__qualname__")):
        return _function(value, above)
    return _array(value) or unknown(type(value).__name__)


def _array(value: Any) -> list[object] | None:
    """An array or a number of NumPy, by a hash of its bytes; None for all else, and where that would take long."""
    if type(value).__module__ != "numpy" or not hasattr(value, "tobytes"):
        return None
    if value.dtype.hasobject or value.nbytes > _ARRAY_BYTES:
        return None
    digest = hashlib.blake2b(value.tobytes(), digest_size=_DIGITS // 2).hexdigest()
    return [str(value.dtype), list(value.shape), digest]


def _hashed(content: object, before: str = "") -> str:
    """The hash of a value, with what is unknown in it."""
    text = json.dumps(content, separators=(",", ":"))
    marks = sorted(set(_UNKNOWN.findall(text)))
    digest = hashlib.blake2b(text.encode(), digest_size=_DIGITS // 2).hexdigest()
    return " ".join([f"{before}{digest}", *marks])
