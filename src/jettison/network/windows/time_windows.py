"""Windows of event time, as arithmetic: which slices they are made of, which of them a watermark has closed.

Window k of size w and slide d is the half-open interval [k d, k d + w), counted from 1970. Its rows are kept in slices
of g = gcd(w, d), so that a row is touched once however many windows it is in. A window is closed, and given, when its
end is at or before the watermark. All times are in microseconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from jettison.errors import NetworkError
from jettison.network.durations import duration_ms

_ROUNDING = 1e-9

START, END = "window_start", "window_end"
"""The columns of a result that say which window it is of."""


@dataclass(frozen=True)
class WindowSpec:
    """Windows per group of equal `by` columns; a row may come `delay_us` behind the newest one.

    60 s every 5 s are made of slices of 5 s; with the watermark at second 100, the first window that is still open
    begins at second 45:

    >>> spec = WindowSpec(60_000_000, 5_000_000, by=("zone",))
    >>> spec.slice_us, spec.first_open_us(100_000_000)
    (5000000, 45000000)
    """

    size_us: int
    slide_us: int
    by: tuple[str, ...] = ()
    delay_us: int = 0

    def __post_init__(self) -> None:
        if self.size_us <= 0:
            raise NetworkError(f"the window's size is {self.size_us} us: say more than 0, such as '1 minute'.")
        if not 0 < self.slide_us <= self.size_us:
            raise NetworkError(
                f"the window slides by {self.slide_us} us and is {self.size_us} us long: let the slide be above 0 and "
                f"at most the size, or rows would be in no window."
            )
        if self.delay_us < 0:
            raise NetworkError(f"the delay is {self.delay_us} us: say 0 or more, such as '10 seconds'.")
        if len({name.lower() for name in self.by}) < len(self.by):
            raise NetworkError(f"`by` names a column twice ({', '.join(self.by)}): name each once.")

    @property
    def slice_us(self) -> int:
        """The length of a slice: the longest of which both size and slide are a multiple."""
        return math.gcd(self.size_us, self.slide_us)

    @property
    def tumbling(self) -> bool:
        return self.size_us == self.slide_us

    def first_open_us(self, mark_us: int) -> int:
        """Where the first window begins that ends after a watermark. Rows before it are in closed windows alone.

        It is also the event time of the first result that is still to come, for a result's event time is its window's
        start: the watermark of what reads the results. Five-minute windows and a watermark of one hour: the next result
        is of minute 60, so that the hour's results are all there (the watermark less the size would be minute 55).

        >>> WindowSpec(300, 300).first_open_us(3600)
        3600
        """
        return self.slide_us * ((mark_us - self.size_us) // self.slide_us + 1)

    def closing(self, before_us: int | None, mark_us: int | None, oldest_us: int | None) -> tuple[int, int] | None:
        """The starts of the first and the last window that a watermark closes on its way; None when there is none.

        `oldest_us` is the oldest slice that is kept: no window before it has any row.

        >>> spec = WindowSpec(60, 20)
        >>> spec.closing(100, 150, oldest_us=0), spec.closing(100, 110, oldest_us=0), spec.closing(None, 70, 25)
        ((60, 80), None, (-20, 0))
        """
        if mark_us is None or oldest_us is None:
            return None
        first = self.first_open_us(oldest_us)
        if before_us is not None:
            first = max(first, self.first_open_us(before_us))
        last = self.first_open_us(mark_us) - self.slide_us
        return (first, last) if first <= last else None


def watermark_us(spec: WindowSpec, newest_us: int | None, above: Iterable[int | None], *, rows: bool) -> int | None:
    """How far the input of an aggregate has got, less its delay; None while that cannot be told.

    With `rows`, rows come that no aggregate has made: they have got as far as the newest of them. `above` holds, for
    every aggregate whose results come, the event time of the next one. The slowest counts.

    >>> spec = WindowSpec(60, 60, delay_us=10)
    >>> watermark_us(spec, 100, [], rows=True), watermark_us(spec, 100, [80], rows=True)
    (90, 70)
    >>> watermark_us(spec, None, [80, None], rows=False)
    """
    reached = [*([newest_us] if rows else []), *above]
    known = [each for each in reached if each is not None]
    return min(known) - spec.delay_us if len(known) == len(reached) and known else None


def window_spec(
    element: str, size: str, slide: str | None = None, by: Iterable[str] = (), delay: str | None = None
) -> WindowSpec:
    """Windows in words; `element` is named in errors.

    >>> window_spec("aggregate 'busy'", "1 minute", slide="5 seconds", delay="250 ms")
    WindowSpec(size_us=60000000, slide_us=5000000, by=(), delay_us=250000)
    """
    size_us = _us(size, f"{element}: the window's size")
    slide_us = size_us if slide is None else _us(slide, f"{element}: the slide")
    delay_us = 0 if delay is None else _us(delay, f"{element}: the delay", zero=True)
    if slide_us > size_us:
        raise NetworkError(
            f"{element}: the slide {slide!r} is longer than the window's size {size!r}, and rows between two windows "
            f"would be in none: let it be at most the size."
        )
    columns = (by,) if isinstance(by, str) else tuple(by)
    try:
        return WindowSpec(size_us, slide_us, columns, delay_us)
    except NetworkError as error:
        raise NetworkError(f"{element}: {error}") from error


def _us(text: str, element: str, *, zero: bool = False) -> int:
    microseconds = 1000 * duration_ms(text, element, zero=zero)
    if abs(microseconds - round(microseconds)) > _ROUNDING * max(1.0, microseconds):
        raise NetworkError(f"{element} is {text!r}: event times are in microseconds, so say a whole number of those.")
    return round(microseconds)
