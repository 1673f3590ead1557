"""How many results are missing because every row of a group was dropped in a window, told by the results that came.

A result whose rows were all dropped leaves no trace. But of a result with n rows in truth, each kept with probability
p, the chance to keep just one is n p (1 - p)^(n - 1), and that one stands for w = 1 / p rows. So, over all results,

    E sum of (w - 1) over those of which one row was kept            = sum of n (1 - p)^n
    E sum of (w - 1)(w' - 1) over those of which two rows were kept  = sum of n (n - 1) / 2 (1 - p)^n

The first is what rows the missing results have, without bias, whatever n and p are (Good and Turing, with p known); p
may differ from row to row. How many results that are follows by Cauchy and Schwarz, as in Chao's estimator: at least
rows^2 / (rows + 2 pairs), and just that where missing results have the same number of rows.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MissingResults:
    """What is missing of an estimated aggregate: `rows` in results of which no row was kept, and `pairs` of such rows.

    60 results with one kept row that stands for 10, and none with two: these groups have one row each.

    >>> MissingResults(rows=540.0, pairs=0.0).results
    540.0
    >>> round(MissingResults(rows=540.0, pairs=2430.0).results)  # about 10 rows each
    54
    """

    rows: float = 0.0
    pairs: float = 0.0

    @property
    def results(self) -> float:
        """How many results are missing, at least, as estimated; `rows` is the most that there can be."""
        return self.rows * self.rows / (self.rows + 2 * self.pairs) if self.rows > 0 else 0.0

    def __add__(self, other: MissingResults) -> MissingResults:
        return MissingResults(self.rows + other.rows, self.pairs + other.pairs)
