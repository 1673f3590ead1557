"""How estimated costs are spread: classes of cost whose bounds are fixed, so that counts of batches add up."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jettison.errors import PlanError

BOUNDS_US: tuple[float, ...] = tuple(float(f"{bound:.3g}") for bound in np.geomspace(1.0, 1e8, 97))
"""Upper bounds of classes, from a microsecond to 100 seconds, each a fifth above the one before."""


@dataclass(frozen=True)
class CostClasses:
    """Tuples by class of cost: how many there are, and what they cost together, as estimated.

    Class i holds costs up to `bounds_us[i]`, the last one all above. With a worth of their own, tuples are put in
    classes by their cost per worth.

    >>> some = CostClasses.of(np.array([100.0, 100.0, 5000.0]), bounds_us=(200.0, 1000.0))
    >>> some.rows, some.totals_us, some.mean_us
    ((2.0, 0.0, 1.0), (200.0, 0.0, 5000.0), 1733.3333333333333)
    """

    rows: tuple[float, ...]
    totals_us: tuple[float, ...]
    bounds_us: tuple[float, ...] = BOUNDS_US

    def __post_init__(self) -> None:
        if not len(self.rows) == len(self.totals_us) == len(self.bounds_us) + 1:
            raise PlanError(
                f"classes of cost: {len(self.rows)} counts and {len(self.totals_us)} totals for {len(self.bounds_us)} "
                f"bounds: give one more than bounds."
            )

    @classmethod
    def of(
        cls,
        costs_us: NDArray[np.float64],
        worth: NDArray[np.float64] | float = 1.0,
        bounds_us: Sequence[float] = BOUNDS_US,
        counts: NDArray[np.int64] | None = None,
    ) -> CostClasses:
        """The classes of tuples with these estimated costs, or of so many tuples with each of them."""
        at = np.searchsorted(bounds_us, costs_us / worth, side="left")
        rows = np.bincount(at, counts, len(bounds_us) + 1)
        totals = np.bincount(at, costs_us if counts is None else counts * costs_us, len(bounds_us) + 1)
        return cls(tuple(map(float, rows)), tuple(totals.tolist()), tuple(bounds_us))

    def plus(self, other: CostClasses, weight: float = 1.0) -> CostClasses:
        """These tuples, counted `weight` times, and others."""
        rows = tuple(weight * mine + theirs for mine, theirs in zip(self.rows, other.rows, strict=True))
        totals = tuple(weight * mine + theirs for mine, theirs in zip(self.totals_us, other.totals_us, strict=True))
        return CostClasses(rows, totals, self.bounds_us)

    def scaled(self, factor: float) -> CostClasses:
        """The same tuples when each costs `factor` times as much. Of a class, what falls in two is shared out.

        >>> CostClasses((0.0, 4.0, 0.0, 0.0), (0.0, 600.0, 0.0, 0.0), (100.0, 200.0, 400.0)).scaled(2.0).totals_us
        (0.0, 0.0, 1200.0, 0.0)
        """
        count = len(self.rows)
        step = (self.bounds_us[-1] / self.bounds_us[0]) ** (1 / max(1, len(self.bounds_us) - 1))
        moved = math.log(factor) / math.log(step) if step > 1 else 0.0
        down = math.floor(moved)
        rows, totals_us = np.zeros(count), np.zeros(count)
        for by, share in ((down, 1 - (moved - down)), (down + 1, moved - down)):
            at = np.clip(np.arange(count) + by, 0, count - 1)
            np.add.at(rows, at, share * np.asarray(self.rows))
            np.add.at(totals_us, at, share * factor * np.asarray(self.totals_us))
        return CostClasses(tuple(rows.tolist()), tuple(totals_us.tolist()), self.bounds_us)

    @property
    def mean_us(self) -> float:
        count = sum(self.rows)
        return sum(self.totals_us) / count if count else 0.0

    def keeps_for(self, work_share: float, least_keep: float = 0.0) -> tuple[float, ...]:
        """What to keep of every class so that this share of the work is left: the cheapest first.

        One class is kept in part. Of all dearer ones `least_keep` is kept whatever it costs.

        >>> CostClasses((2.0, 1.0, 1.0), (200.0, 800.0, 5000.0), (200.0, 1000.0)).keeps_for(0.1)
        (1.0, 0.5, 0.0)
        """
        whole_us = sum(self.totals_us)
        left_us = max(0.0, work_share * whole_us - least_keep * whole_us)
        keeps = []
        for total_us in self.totals_us:
            more_us = (1.0 - least_keep) * total_us
            share = 1.0 if more_us <= left_us else left_us / more_us
            left_us = max(0.0, left_us - more_us)
            keeps.append(least_keep + (1.0 - least_keep) * share)
        return tuple(keeps)

    def kept_share(self, keeps: Sequence[float]) -> float:
        """The share of tuples that is left when so much of each class is kept."""
        count = sum(self.rows)
        return sum(k * rows for k, rows in zip(keeps, self.rows, strict=True)) / count if count else 1.0

    def work_share(self, keeps: Sequence[float]) -> float:
        """The share of the work that is left."""
        whole_us = sum(self.totals_us)
        left_us = sum(k * total_us for k, total_us in zip(keeps, self.totals_us, strict=True))
        return left_us / whole_us if whole_us else 1.0

    def class_of(self, cost_us: float) -> int:
        return bisect.bisect_left(self.bounds_us, cost_us)
