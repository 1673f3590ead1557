"""Tables as text: columns that stay aligned at any size, and durations in a unit that people read."""

from __future__ import annotations

from collections.abc import Sequence

_UNITS = ((86_400_000.0, "d"), (3_600_000.0, "h"), (60_000.0, "min"), (1_000.0, "s"))


def shown_ms(ms: float | None) -> str:
    """A duration of milliseconds in three figures or so.

    >>> [shown_ms(each) for each in (None, 0.0, 850.2, 1020.0, 90_000.0, 5_400_000.0, 1e10, 1.7e12)]
    ['-', '0ms', '850ms', '1.02s', '1.5min', '1.5h', '116d', '19,676d']
    >>> shown_ms(-1500.0)  # event times in the future
    '-1.50s'
    """
    if ms is None:
        return "-"
    for size_ms, unit in _UNITS:
        count = ms / size_ms
        if abs(count) >= 1:
            digits = 2 if unit == "s" and abs(count) < 100 else 1 if abs(count) < 100 else 0
            return f"{count:,.{digits}f}{unit}"
    return f"{ms:.0f}ms"


def aligned(rows: Sequence[Sequence[str]], least: Sequence[int] = ()) -> list[str]:
    """Rows of cells as lines: the first column to the left, the others to the right. `least` has the least widths.

    >>> for line in aligned([("output", "rows"), ("fares", "1,000,000"), ("alerts", "7")]): print(line)
    output       rows
    fares   1,000,000
    alerts          7
    """
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    widths = [max(width + 2 * (place > 0), *least[place : place + 1], 0) for place, width in enumerate(widths)]
    return [
        "".join(cell.ljust(width) if place == 0 else cell.rjust(width) for place, (cell, width) in enumerate(cells))
        for cells in (list(zip(row, widths, strict=True)) for row in rows)
    ]
