"""Functions of the user by import path, "module:name": how YAML, which is text, names what is written in Python."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

from jettison.errors import NetworkError, StartError
from jettison.network.columns.words import an


@dataclass(frozen=True)
class Imported:
    """A function that is known by its path. Nothing is imported before somebody calls it, or a run starts.

    >>> Imported("math:hypot")(3.0, 4.0)
    5.0
    """

    path: str

    def __post_init__(self) -> None:
        module, _, name = self.path.partition(":")
        if not all(part.isidentifier() for part in (*module.split("."), *name.split("."))):
            raise NetworkError(f"{self.path!r} is not of the form 'module:function', such as 'my.fares:added'.")

    def __call__(self, *given: Any) -> Any:
        return imported(repr(self.path), self.path)(*given)

    @property
    def name(self) -> str:
        """What the function is called, without its module."""
        return self.path.rpartition(":")[2].rpartition(".")[2]


def imported(element: str, path: str) -> Callable[..., Any]:
    """What stands at a path, which can be called; `element` is named in errors.

    >>> imported("apply 'big'", "math:sqrt")(16.0)
    4.0
    """
    module, _, name = path.partition(":")
    try:
        found: Any = reduce(getattr, name.split("."), importlib.import_module(module))
    except Exception as error:  # whatever the user's module throws while it is read
        raise StartError(
            f"{element}: cannot import {path!r} ({type(error).__name__}: {error}): give the path 'module:function' of "
            f"a module in the folder where you start, in PYTHONPATH or among what is installed."
        ) from error
    if not callable(found):
        raise StartError(f"{element}: {path!r} is {_kind(found)} which cannot be called: give the path of a function.")
    return found  # type: ignore[no-any-return]


def import_path(element: str, function: object) -> str:
    """Where a function can be imported from; raises where it cannot, such as a lambda.

    >>> import os.path
    >>> import_path("apply 'w'", os.path.join)
    'posixpath:join'
    """
    if isinstance(function, str | Imported):
        return function if isinstance(function, str) else function.path
    name = getattr(function, "__qualname__", None)
    if name is None or "<" in name:
        shown = name or an(type(function).__name__)
        raise NetworkError(f"{element} holds {shown}, which cannot be imported: define it with def in a module.")
    return f"{function.__module__}:{name}"


def _kind(found: object) -> str:
    """What was found, in words.

    >>> _kind(3.5), _kind([1])
    ('3.5, a float,', '[1], a list,')
    """
    shown = repr(found)
    shown = shown if len(shown) <= 40 else f"{shown[:37]}..."
    return f"{shown}, {an(type(found).__name__)},"
