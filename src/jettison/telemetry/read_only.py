"""Values that nobody can change: what several listeners, on several threads, may hold on to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")


class ReadOnlyDict(dict[Any, Any]):
    """A dict that cannot be changed. It prints, compares, copies and turns into JSON as a dict does.

    >>> rows = ReadOnlyDict({"trips": 7})
    >>> rows, rows == {"trips": 7}
    ({'trips': 7}, True)
    >>> rows["trips"] = 8
    Traceback (most recent call last):
    TypeError: this mapping is read-only: make a copy with dict(...) to change it
    """

    def _refuse(self, *given: Any, **named: Any) -> NoReturn:
        raise TypeError("this mapping is read-only: make a copy with dict(...) to change it")

    __setitem__ = __delitem__ = update = pop = popitem = clear = setdefault = __ior__ = _refuse

    def __reduce__(self) -> tuple[type[ReadOnlyDict], tuple[dict[Any, Any]]]:
        return ReadOnlyDict, (dict(self),)

    def __copy__(self) -> ReadOnlyDict:
        return self


def read_only(value: T) -> T:
    """A frozen dataclass whose mappings, and those inside them and inside its parts, cannot be changed: a copy.

    >>> from jettison.statistics.samples import BatchSample
    >>> rows = {"trips": 7}
    >>> sample = read_only(BatchSample(0, 0.0, 1000.0, 80.0, rows))
    >>> rows["trips"] = 8
    >>> sample.rows_in
    {'trips': 7}
    """
    frozen: Any = value
    if isinstance(value, ReadOnlyDict):
        return value
    if isinstance(value, Mapping):
        frozen = ReadOnlyDict({key: read_only(each) for key, each in value.items()})
    elif isinstance(value, list):
        frozen = tuple(map(read_only, value))
    elif is_dataclass(value) and not isinstance(value, type):
        parts = {each.name: getattr(value, each.name) for each in fields(value) if each.init}
        changed = {
            name: read_only(part)
            for name, part in parts.items()
            if isinstance(part, Mapping | list) or is_dataclass(part)
        }
        frozen = replace(value, **changed) if changed else value
    return frozen  # type: ignore[no-any-return]
