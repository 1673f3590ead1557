"""Windows that count rows, as arithmetic: which slices they are made of, and which of them a count has closed.

The rows of a group are numbered from 0, in the order of batches, and inside a batch by event time, then by identity.
Window k of size w and slide d holds the rows from k d up to, not including, k d + w, and is given in the batch in which
its last row comes. Its rows are kept in slices of g = gcd(w, d). Time plays no part: no row is late, and none is waited
for. Thesis 4.10.2.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from jettison.errors import NetworkError
from jettison.network.windows.time_windows import WindowSpec, window_spec

_ROWS = re.compile(r"\s*(-?\d+(?:\.\d+)?)\s*rows?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class CountSpec:
    """Windows of so many rows per group of equal `by` columns, one every `slide_rows` rows.

    The last 100 rows every 10 are made of slices of 10. When 115 rows have come, windows 0 and 1 (rows 10 to 109) are
    closed, and the first row that an open window needs is row 20:

    >>> spec = CountSpec(100, 10, by=("symbol",))
    >>> spec.slice_rows, spec.closed(115), spec.first_open(115)
    (10, 2, 20)
    """

    size_rows: int
    slide_rows: int
    by: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.size_rows <= 0:
            raise NetworkError(f"the window has {self.size_rows} rows: say 1 or more, such as '100 rows'.")
        if not 0 < self.slide_rows <= self.size_rows:
            raise NetworkError(
                f"the window slides by {self.slide_rows} rows and has {self.size_rows}: let the slide be 1 or more and "
                f"at most the size, or rows would be in no window."
            )
        if len({name.lower() for name in self.by}) < len(self.by):
            raise NetworkError(f"`by` names a column twice ({', '.join(self.by)}): name each once.")

    @property
    def slice_rows(self) -> int:
        """The rows of a slice: as many as go into both size and slide."""
        return math.gcd(self.size_rows, self.slide_rows)

    @property
    def tumbling(self) -> bool:
        return self.size_rows == self.slide_rows

    def closed(self, rows: int) -> int:
        """How many windows are complete when so many rows of a group have come.

        >>> [CountSpec(3, 2).closed(rows) for rows in range(8)]
        [0, 0, 0, 1, 1, 2, 2, 3]
        """
        return max(0, (rows - self.size_rows) // self.slide_rows + 1)

    def first_open(self, rows: int) -> int:
        """The number of the first row that an open window needs when so many rows of a group have come."""
        return self.slide_rows * self.closed(rows)


def windows_of(
    element: str, size: str, slide: str | None = None, by: Iterable[str] = (), delay: str | None = None
) -> WindowSpec | CountSpec:
    """Windows in words, of time or of rows; `element` is named in errors.

    >>> windows_of("aggregate 'quotes'", "100 rows", slide="10 rows", by="symbol")
    CountSpec(size_rows=100, slide_rows=10, by=('symbol',))
    >>> windows_of("aggregate 'quotes'", "1 minute")
    WindowSpec(size_us=60000000, slide_us=60000000, by=(), delay_us=0)
    """
    counted = [_ROWS.fullmatch(str(text)) is not None for text in (size, slide) if text is not None]
    if not any(counted):
        return window_spec(element, size, slide, by, delay)
    if not all(counted):
        raise NetworkError(
            f"{element}: the window's size is {size!r} and its slide {slide!r}: say both in rows, or both as times."
        )
    if delay is not None:
        raise NetworkError(
            f"{element}: a window of {size!r} counts rows as they come, so that none is late: leave the delay out."
        )
    size_rows = _rows(size, f"{element}: the window's size")
    slide_rows = size_rows if slide is None else _rows(slide, f"{element}: the slide")
    columns = (by,) if isinstance(by, str) else tuple(by)
    try:
        return CountSpec(size_rows, slide_rows, columns)
    except NetworkError as error:
        raise NetworkError(f"{element}: {error}") from error


def rows_text(rows: int) -> str:
    """A number of rows; `windows_of` reads it back.

    >>> rows_text(1), rows_text(100)
    ('1 row', '100 rows')
    """
    return f"{rows} row{'' if rows == 1 else 's'}"


def _rows(text: str, element: str) -> int:
    found = _ROWS.fullmatch(str(text))
    assert found is not None
    if "." in found[1] or int(found[1]) < 1:
        raise NetworkError(f"{element} is {text!r}: write a whole number of rows, 1 or more, such as '100 rows'.")
    return int(found[1])
