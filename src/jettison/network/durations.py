"""Durations in Spark's words: "1 second", "500 milliseconds"."""

from __future__ import annotations

import re
from decimal import Decimal

from jettison.errors import NetworkError

_UNITS_MS = {
    "millisecond": 1.0,
    "ms": 1.0,
    "second": 1e3,
    "s": 1e3,
    "minute": 6e4,
    "min": 6e4,
    "hour": 3.6e6,
    "h": 3.6e6,
}


def duration_ms(text: str, element: str, *, zero: bool = False) -> float:
    """Milliseconds of a duration; `element` is named in errors. With `zero` it may be none at all.

    >>> duration_ms("1 second", "trigger"), duration_ms("250 ms", "trigger"), duration_ms("1.5 minutes", "trigger")
    (1000.0, 250.0, 90000.0)
    >>> duration_ms("0 seconds", "delay", zero=True)
    0.0
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+?)s?\s*", str(text).lower())
    unit = None if match is None else match[2] if match[2] in _UNITS_MS else f"{match[2]}s"
    if match is None or unit not in _UNITS_MS or (float(match[1]) <= 0 and not zero):
        least = "of 0 or more" if zero else "above 0"
        raise NetworkError(
            f"{element} is {text!r}: write a duration {least}, such as '1 second' or '500 milliseconds'."
        )
    return float(match[1]) * _UNITS_MS[unit]


def duration_text(milliseconds: float) -> str:
    """A duration in the largest unit that needs no fraction; `duration_ms` reads it back.

    >>> duration_text(600_000.0), duration_text(1000.0), duration_text(90_000.0), duration_text(0.5)
    ('10 minutes', '1 second', '90 seconds', '0.5 milliseconds')
    """
    for unit in ("hour", "minute", "second"):
        count = milliseconds / _UNITS_MS[unit]
        if count >= 1 and count == int(count):
            return f"{int(count)} {unit}{'' if count == 1 else 's'}"
    number = f"{Decimal(repr(float(milliseconds))):f}"
    return f"{number.removesuffix('.0')} milliseconds"
