"""Durations in Spark's words: "1 second", "500 milliseconds", "7 days".

A day has 24 hours and a week seven of those days, as in Spark's own windows, whatever clocks do.
"""

from __future__ import annotations

import re
from decimal import Decimal

from jettison.errors import NetworkError

_UNITS_MS = {
    "microsecond": 1e-3,
    "us": 1e-3,
    "millisecond": 1.0,
    "ms": 1.0,
    "second": 1e3,
    "s": 1e3,
    "minute": 6e4,
    "min": 6e4,
    "hour": 3.6e6,
    "h": 3.6e6,
    "day": 8.64e7,
    "d": 8.64e7,
    "week": 6.048e8,
}
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*")
_PRINTED = ("week", "day", "hour", "minute", "second")


def duration_ms(text: str, element: str, *, zero: bool = False) -> float:
    """Milliseconds of a duration; `element` is named in errors. With `zero` it may be none at all.

    >>> duration_ms("1 second", "trigger"), duration_ms("250 ms", "trigger"), duration_ms("1.5 minutes", "trigger")
    (1000.0, 250.0, 90000.0)
    >>> duration_ms("1 day", "size"), duration_ms("2 weeks", "size"), duration_ms("0 seconds", "delay", zero=True)
    (86400000.0, 1209600000.0, 0.0)
    """
    match = _DURATION.fullmatch(str(text).lower())
    if match is None or (float(match[1]) <= 0 and not zero):
        least = "of 0 or more" if zero else "above 0"
        raise NetworkError(
            f"{element} is {text!r}: write a duration {least}, such as '1 second' or '500 milliseconds'."
        )
    unit = match[2] if match[2] in _UNITS_MS else match[2].removesuffix("s")
    if unit not in _UNITS_MS:
        raise NetworkError(
            f"{element} is {text!r}: {match[2]!r} is no unit of a fixed length that is known: write a duration in "
            f"weeks, days, hours, minutes, seconds, milliseconds or microseconds."
        )
    return float(match[1]) * _UNITS_MS[unit]


def duration_text(milliseconds: float) -> str:
    """A duration in the largest unit that needs no fraction; `duration_ms` reads it back.

    >>> duration_text(600_000.0), duration_text(1000.0), duration_text(90_000.0), duration_text(0.5)
    ('10 minutes', '1 second', '90 seconds', '0.5 milliseconds')
    >>> duration_text(86_400_000.0), duration_text(1_209_600_000.0), duration_text(691_200_000.0)
    ('1 day', '2 weeks', '8 days')
    """
    for unit in _PRINTED:
        count = milliseconds / _UNITS_MS[unit]
        if count >= 1 and count == int(count):
            return f"{int(count)} {unit}{'' if count == 1 else 's'}"
    number = f"{Decimal(repr(float(milliseconds))):f}"
    return f"{number.removesuffix('.0')} milliseconds"
