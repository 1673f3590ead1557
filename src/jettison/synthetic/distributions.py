"""Numbers of a distribution, drawn for any range of rows: uniform, normal, Zipf, or given by quantiles."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from jettison.errors import NetworkError
from jettison.network.calls import checked_init
from jettison.synthetic.draws import Rows, Table, draw64, draw_below, draw_share
from jettison.synthetic.tagged import require_number

Numbers: TypeAlias = NDArray[np.int32] | NDArray[np.int64] | NDArray[np.float64]

_WIDEST = 2**53  # beyond it a double no longer holds every integer


@checked_init("Uniform")
@dataclass(frozen=True)
class Uniform:
    """Equally likely numbers: integers from `low` to `high`, both included, or doubles in [low, high).

    >>> Uniform(1, 6).draw(np.arange(8), key=1)
    array([6, 5, 4, 3, 3, 6, 5, 3], dtype=int32)
    """

    low: float
    high: float
    type: Literal["int", "long", "double"] = "int"

    def __post_init__(self) -> None:
        if self.type not in ("int", "long", "double"):
            raise NetworkError(f"Uniform: type is {self.type!r}, give int, long or double")
        require_number(self, "low", self.low)
        require_number(self, "high", self.high, least=self.low)
        if self.type == "double":
            return
        widest = 2**31 if self.type == "int" else _WIDEST
        for name, value in (("low", self.low), ("high", self.high)):
            if value != int(value) or not -widest <= value < widest:
                raise NetworkError(f"Uniform: {name} is {value!r}, give an integer that fits {self.type} (or 53 bits)")

    def draw(self, rows: Rows, key: int) -> Numbers:
        """One number for each row."""
        if self.type == "double":
            return draw_share(rows, key) * (self.high - self.low) + self.low
        values = draw_below(rows, key, int(self.high) - int(self.low) + 1) + int(self.low)
        return values.astype(np.int32) if self.type == "int" else values


@checked_init("Normal")
@dataclass(frozen=True)
class Normal:
    """Normally distributed doubles, by Box and Muller from the two halves of one 64-bit draw: within 6.7 sd.

    >>> values = Normal(mean=50, sd=10).draw(np.arange(100_000), key=1)
    >>> round(float(values.mean())), round(float(values.std()))
    (50, 10)
    """

    mean: float
    sd: float

    def __post_init__(self) -> None:
        require_number(self, "mean", self.mean)
        require_number(self, "sd", self.sd, least=0)

    @property
    def type(self) -> str:
        """Spark's name of the type."""
        return "double"

    def draw(self, rows: Rows, key: int) -> NDArray[np.float64]:
        """One number for each row."""
        bits = draw64(rows, key)
        radius = np.sqrt(-2 * np.log(((bits >> np.uint64(32)).astype(np.float64) + 0.5) * 2.0**-32))
        angle = (bits & np.uint64(0xFFFFFFFF)).astype(np.float64) * (2 * np.pi * 2.0**-32)
        values: NDArray[np.float64] = self.mean + self.sd * radius * np.cos(angle)
        return values


@checked_init("Zipf")
@dataclass(frozen=True)
class Zipf:
    """Integers from 0 to n - 1; k has probability proportional to 1 / (k + 1)^s.

    >>> np.bincount(Zipf(3).draw(np.arange(11_000), key=1)) // 100  # 6 : 3 : 2
    array([60, 30, 19])
    """

    n: int
    s: float = 1.0

    def __post_init__(self) -> None:
        require_number(self, "n", self.n, least=1, most=10_000_000)
        require_number(self, "s", self.s, least=0)

    @property
    def type(self) -> str:
        """Spark's name of the type."""
        return "int"

    def draw(self, rows: Rows, key: int) -> NDArray[np.int32]:
        """One integer for each row."""
        return zipf_table(self).pick(draw_share(rows, key))


@lru_cache(maxsize=16)
def zipf_table(zipf: Zipf) -> Table:
    """The intervals of a Zipf distribution's numbers."""
    return Table.of_weights(np.arange(1, int(zipf.n) + 1, dtype=np.float64) ** -zipf.s)


@checked_init("Quantiles")
@dataclass(frozen=True)
class Quantiles:
    """Doubles of any distribution, given by (share, value) points of its quantile function, straight between them.

    >>> fares = Quantiles(((0, 3), (0.5, 13), (1, 60)))  # half of the fares are below 13
    >>> float(np.mean(fares.draw(np.arange(100_000), key=1) < 13).round(2))
    0.5
    """

    points: tuple[tuple[float, float], ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "points", tuple((share, value) for share, value in self.points))
        if len(self.points) < 2 or self.points[0][0] != 0 or self.points[-1][0] != 1:
            raise NetworkError(
                f"Quantiles: points are {self.points}, give the first with share 0, the last with share 1"
            )
        for k, (share, value) in enumerate(self.points):
            require_number(self, f"share of points[{k}]", share)
            require_number(self, f"value of points[{k}]", value)
            if k and (share <= self.points[k - 1][0] or value < self.points[k - 1][1]):
                raise NetworkError(f"Quantiles: points[{k}] is {(share, value)}, give ascending shares and values")

    @property
    def type(self) -> str:
        """Spark's name of the type."""
        return "double"

    def draw(self, rows: Rows, key: int) -> NDArray[np.float64]:
        """One number for each row."""
        table, at_zero, slopes = quantile_table(self)
        shares = draw_share(rows, key)
        picked = table.pick(shares)
        values: NDArray[np.float64] = slopes[picked]
        values *= shares
        values += at_zero[picked]
        return values


@lru_cache(maxsize=16)
def quantile_table(quantiles: Quantiles) -> tuple[Table, NDArray[np.float64], NDArray[np.float64]]:
    """The intervals between points, and the line on each: its value at share 0, its slope."""
    shares, values = np.array(quantiles.points, np.float64).T
    slopes = np.diff(values) / np.diff(shares)
    return Table.of_ends(shares[1:]), values[:-1] - slopes * shares[:-1], slopes
