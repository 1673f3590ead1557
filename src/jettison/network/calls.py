"""Calls of public functions with arguments that they do not have: an error of ours, with the known names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, TypeVar, cast

from jettison.errors import JettisonError, NetworkError
from jettison.network.columns.words import meant

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)

_KEYWORDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def checked_call(
    name: str, error: type[JettisonError] = NetworkError, moved: Mapping[str, str] | None = None
) -> Callable[[F], F]:
    """Decorate a function: calls that do not fit its signature raise `error` instead of TypeError.

    `moved` says of arguments that it had once where they are now.

    >>> @checked_call("jt.thing")
    ... def thing(size, *, colour="red"): return size
    >>> thing(5, colour="blue")
    5
    >>> thing(5, color="blue")
    Traceback (most recent call last):
    jettison.errors.NetworkError: jt.thing has no argument 'color' (did you mean 'colour'?): it takes size, colour.
    >>> thing()
    Traceback (most recent call last):
    jettison.errors.NetworkError: jt.thing: argument 'size' is missing: it takes size, colour.
    >>> thing(1, 2)
    Traceback (most recent call last):
    jettison.errors.NetworkError: jt.thing: too many positional arguments: it takes size, colour.
    """

    def decorate(function: F) -> F:
        signature = inspect.signature(function)

        @wraps(function)
        def called(*given: Any, **named: Any) -> Any:
            try:
                return function(*given, **named)
            except TypeError:
                fault = _fault(name, signature, given, named, moved or {})  # looked for only now: calls stay quick
                if fault is None:
                    raise
            except (RecursionError, OverflowError) as wrong:
                if error is not NetworkError:  # a declaration computes nothing: it can only be an argument
                    raise
                raise error(f"{name}: an argument is nested too deeply, or a number too large to be used.") from wrong
            raise error(fault)

        return cast(F, called)

    return decorate


def checked_init(name: str, error: type[JettisonError] = NetworkError) -> Callable[[C], C]:
    """Decorate a class: wrong arguments of its constructor raise `error` instead of TypeError."""

    def decorate(kind: C) -> C:
        made: Any = kind
        made.__init__ = checked_call(name, error)(made.__init__)
        return kind

    return decorate


def _fault(
    name: str, signature: inspect.Signature, given: tuple[Any, ...], named: dict[str, Any], moved: Mapping[str, str]
) -> str | None:
    """Why a call does not fit a signature; None where it does."""
    try:
        signature.bind(*given, **named)
    except TypeError as error:
        wrong = str(error)
    else:
        return None
    parameters = {each.name: each.kind for each in signature.parameters.values() if each.name != "self"}
    takes = f"it takes {', '.join(parameters) or 'none'}"
    keywords = [each for each, kind in parameters.items() if kind in _KEYWORDS]
    open_ended = any(kind is inspect.Parameter.VAR_KEYWORD for kind in parameters.values())
    unknown = next((each for each in named if each not in keywords and not open_ended), None)
    if unknown is not None and unknown in moved:
        return f"{name} has no argument {unknown!r}: {moved[unknown]}."
    if unknown is not None:
        return f"{name} has no argument {unknown!r}{meant(unknown, keywords)}: {takes}."
    if "missing a required" in wrong:
        missing = wrong.rpartition(": ")[2] if ": " in wrong else wrong
        return f"{name}: argument {missing} is missing: {takes}."
    return f"{name}: {wrong}: {takes}."
