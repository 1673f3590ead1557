"""How many rows arrive by when: the rate profiles of a generated source.

Every profile is a piecewise constant rate, so that the rows that have arrived by t and the time at which row i arrives
are exact inverses (see `arrived.py`), the same in every process and after every restart.
"""

import csv
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from jettison.errors import NetworkError
from jettison.network.calls import checked_init
from jettison.network.columns.words import meant
from jettison.synthetic.arrivals import Arrived, Piece
from jettison.synthetic.tagged import by_kind, from_kind_dict, require_number, to_kind_dict

_SLACK_ROWS = 1e-6  # 0.29 s x 100 rows/s is 28.999999999999996 in floats, and means 29 rows
_SINE_STEPS = 1024


class Rate(Protocol):
    """What a generated source asks of a profile."""

    @property
    def end_s(self) -> float | None:
        """When the last row arrives; None is never."""

    def rows_until(self, seconds: float) -> int:
        """Rows that have arrived `seconds` after the start."""

    def seconds_of(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """When each row arrives, counted from the start; infinity for rows that never do."""

    def pieces(self, from_row: int, to_row: int) -> Iterator[tuple[int, int, Piece]]:
        """Rows `from_row` to `to_row` - 1, cut where the rate changes: first row, row behind the last one, rate."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `rate_from_dict`."""


@dataclass(frozen=True, kw_only=True)
class _Profile:
    """What all profiles share. Each one says its `Arrived` and checks its own numbers."""

    end_s: float | None = None

    def __post_init__(self) -> None:
        if self.end_s is not None:
            require_number(self, "end_s", self.end_s, least=0)
        self._check()

    def _check(self) -> None:
        raise NotImplementedError

    def _arrived(self) -> Arrived:
        raise NotImplementedError

    def rows_until(self, seconds: float) -> int:
        """Rows that have arrived `seconds` after the start: floor(N(min(seconds, end_s)))."""
        until_s = max(0.0, seconds if self.end_s is None else min(seconds, self.end_s))
        return math.floor(_arrived_of(self).rows_at(until_s) + _SLACK_ROWS)

    def seconds_of(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """When each row arrives, counted from the start; infinity for rows that never do."""
        seconds = _arrived_of(self).seconds_at(np.asarray(rows, np.float64))
        if self.end_s is not None:
            seconds[np.asarray(rows) >= self.rows_until(self.end_s)] = math.inf
        return seconds

    def pieces(self, from_row: int, to_row: int) -> Iterator[tuple[int, int, Piece]]:
        """Rows `from_row` to `to_row` - 1, cut where the rate changes: first row, row behind the last one, rate."""
        return _arrived_of(self).pieces(from_row, to_row)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for `rate_from_dict`."""
        return to_kind_dict(self)


@lru_cache(maxsize=256)
def _arrived_of(profile: _Profile) -> Arrived:
    return profile._arrived()


@checked_init("Constant")
@dataclass(frozen=True)
class Constant(_Profile):
    """The same rate for ever.

    >>> Constant(1000).rows_until(2.5), Constant(1000).seconds_of(np.array([0, 999]))
    (2500, array([0.   , 0.999]))
    """

    rows_per_s: float

    def _check(self) -> None:
        require_number(self, "rows_per_s", self.rows_per_s, least=0)

    def _arrived(self) -> Arrived:
        return Arrived.of([0.0], [self.rows_per_s])


@checked_init("Step")
@dataclass(frozen=True)
class Step(_Profile):
    """One rate until `at_s`, another from then on.

    >>> Step(100, 400, at_s=10).rows_until(11)
    1400
    """

    before_rows_per_s: float
    after_rows_per_s: float
    at_s: float

    def _check(self) -> None:
        require_number(self, "before_rows_per_s", self.before_rows_per_s, least=0)
        require_number(self, "after_rows_per_s", self.after_rows_per_s, least=0)
        require_number(self, "at_s", self.at_s, above=0)

    def _arrived(self) -> Arrived:
        return Arrived.of([0.0, self.at_s], [self.before_rows_per_s, self.after_rows_per_s])


@checked_init("Square")
@dataclass(frozen=True)
class Square(_Profile):
    """Low, then high for the share `duty` of the period, again and again.

    >>> Square(100, 300, period_s=10, duty=0.2).rows_until(10)  # 8 s at 100, 2 s at 300
    1400
    """

    low_rows_per_s: float
    high_rows_per_s: float
    period_s: float
    duty: float = 0.5

    def _check(self) -> None:
        require_number(self, "low_rows_per_s", self.low_rows_per_s, least=0)
        require_number(self, "high_rows_per_s", self.high_rows_per_s, least=self.low_rows_per_s)
        require_number(self, "period_s", self.period_s, above=0)
        require_number(self, "duty", self.duty, least=0, most=1)

    def _arrived(self) -> Arrived:
        high_from_s = self.period_s * (1 - self.duty)
        return Arrived.of([0.0, high_from_s], [self.low_rows_per_s, self.high_rows_per_s], self.period_s)


@checked_init("Sine")
@dataclass(frozen=True)
class Sine(_Profile):
    """mean + amplitude * sin(2 pi t / period), averaged over each 1/1024 of the period.

    >>> Sine(1000, 500, period_s=60).rows_until(30)  # 30 s x 1000, and 500 x 60 / pi for the upper half wave
    39549
    """

    mean_rows_per_s: float
    amplitude_rows_per_s: float
    period_s: float

    def _check(self) -> None:
        require_number(self, "mean_rows_per_s", self.mean_rows_per_s, least=0)
        require_number(self, "amplitude_rows_per_s", self.amplitude_rows_per_s, least=0, most=self.mean_rows_per_s)
        require_number(self, "period_s", self.period_s, above=0)

    def _arrived(self) -> Arrived:
        share = np.arange(_SINE_STEPS + 1) / _SINE_STEPS
        swing = np.diff(1 - np.cos(2 * math.pi * share)) * _SINE_STEPS / (2 * math.pi)
        rates = np.maximum(self.mean_rows_per_s + self.amplitude_rows_per_s * swing, 0.0)
        return Arrived.of(share[:-1] * self.period_s, rates, self.period_s)


@checked_init("Burst")
@dataclass(frozen=True)
class Burst(_Profile):
    """A base rate with one burst.

    >>> Burst(1000, 5000, at_s=10, length_s=2).rows_until(20)  # 18 s at 1000, 2 s at 5000
    28000
    """

    base_rows_per_s: float
    peak_rows_per_s: float
    at_s: float
    length_s: float

    def _check(self) -> None:
        require_number(self, "base_rows_per_s", self.base_rows_per_s, least=0)
        require_number(self, "peak_rows_per_s", self.peak_rows_per_s, least=self.base_rows_per_s)
        require_number(self, "at_s", self.at_s, least=0)
        require_number(self, "length_s", self.length_s, above=0)

    def _arrived(self) -> Arrived:
        rates = [self.base_rows_per_s, self.peak_rows_per_s, self.base_rows_per_s]
        return Arrived.of([0.0, self.at_s, self.at_s + self.length_s], rates)


@checked_init("Trace")
@dataclass(frozen=True)
class Trace(_Profile):
    """A recorded rate: rows_per_s[k] holds from seconds[k] to seconds[k + 1], the last one for ever (or until `end_s`).

    >>> Trace((0, 10, 20), (100, 500, 0)).rows_until(60)
    6000
    """

    seconds: tuple[float, ...]
    rows_per_s: tuple[float, ...]

    @classmethod
    def from_csv(cls, path: str | Path, *, end_s: float | None = None) -> "Trace":
        """Read a file with the header `second,rows_per_s`."""
        if not Path(path).is_file():
            raise NetworkError(f"Trace: there is no file {str(path)!r}, give the path of a CSV file")
        with open(path, newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            columns = reader.fieldnames or []
            for column in ("second", "rows_per_s"):
                if column not in columns:
                    raise NetworkError(f"Trace: {path} has the columns {list(columns)}, add {column!r} to its header")
            seconds, rates = [], []
            for row in reader:
                try:
                    seconds.append(float(row["second"]))
                    rates.append(float(row["rows_per_s"]))
                except (TypeError, ValueError):
                    raise NetworkError(f"Trace: {path} line {reader.line_num} is {row}, give two numbers") from None
        return cls(tuple(seconds), tuple(rates), end_s=end_s)

    def _check(self) -> None:
        for name in ("seconds", "rows_per_s"):
            given = getattr(self, name)
            if isinstance(given, str) or not isinstance(given, Iterable):
                raise NetworkError(f"Trace: {name} is {given!r}, give a list of numbers")
            object.__setattr__(self, name, tuple(given))
        if not self.seconds or len(self.seconds) != len(self.rows_per_s):
            sizes = f"{len(self.seconds)} seconds and {len(self.rows_per_s)} rows_per_s"
            raise NetworkError(f"Trace: got {sizes}, give at least one, and as many of the one as of the other")
        for k, (second, rate) in enumerate(zip(self.seconds, self.rows_per_s, strict=True)):
            require_number(self, f"seconds[{k}]", second, least=0)
            require_number(self, f"rows_per_s[{k}]", rate, least=0)
            if k and second <= self.seconds[k - 1]:
                before = self.seconds[k - 1]
                raise NetworkError(f"Trace: seconds[{k}] is {second} after {before}, give ascending seconds")

    def _arrived(self) -> Arrived:
        before = ((0.0,), (0.0,)) if self.seconds[0] > 0 else ((), ())
        return Arrived.of(before[0] + self.seconds, before[1] + self.rows_per_s)


_KINDS = by_kind(Constant, Step, Square, Sine, Burst, Trace)


def rate_from_dict(data: Mapping[str, Any]) -> Rate:
    """The profile that a mapping declares; a trace may give `path` (a CSV file) in place of its numbers.

    >>> rate_from_dict({"kind": "burst", "base_rows_per_s": 1000, "peak_rows_per_s": 5000, "at_s": 10, "length_s": 2})
    Burst(end_s=None, base_rows_per_s=1000, peak_rows_per_s=5000, at_s=10, length_s=2)
    """
    if isinstance(data, Mapping) and data.get("kind") == "trace" and "path" in data:
        extra = sorted(set(data) - {"kind", "path", "end_s"})
        if extra:
            raise NetworkError(f"rate 'trace' has both 'path' and {extra[0]!r}: give the file or the numbers")
        return Trace.from_csv(data["path"], end_s=data.get("end_s"))
    return from_kind_dict(data, _KINDS, "rate")


def __getattr__(name: str) -> Any:
    known = [each for each in globals() if each[0].isupper()]
    raise AttributeError(f"jt.rates has no rate {name!r}{meant(name, known)}")
