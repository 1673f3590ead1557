"""Looking costs up: the row with the smallest count of a key, and W / F there.

All cells are put into one order, by count, then by row. A key's smallest rank among its rows is then the cell to look
at, and the costs are kept in that order: two steps that are the same in NumPy and in SQL,

    rank = least(ranks_1[column_1], ..., ranks_r[column_r])        cost = costs[rank]

A cell in which nothing was counted has the mean cost: a key that comes there was never seen. Where cells have ages
(`cost_pair`), the oldest come before younger ones, whatever their counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from jettison.network.columns.xxhash64 import Hashes
from jettison.statistics.sketches.universal import HashFunctions

Ranks = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class CostTable:
    """Costs in microseconds by the rank of a cell, `ranks` by row and column, and the mean."""

    functions: HashFunctions
    ranks: Ranks
    by_rank_us: NDArray[np.float64]
    mean_us: float

    @classmethod
    def of(
        cls,
        functions: HashFunctions,
        counts: NDArray[np.int64],
        ratios_us: NDArray[np.float64],
        mean_us: float,
        ages: NDArray[np.int64] | None = None,
    ) -> CostTable:
        """The table of a sketch's cells."""
        seen, older = counts > 0, np.zeros_like(counts) if ages is None else -ages
        # what was never seen, then the oldest, then the smallest count; equal ones as they stand, the first row first
        order = np.lexsort((counts.reshape(-1), older.reshape(-1), seen.reshape(-1)))
        ranks = np.empty(counts.size, np.int64)
        ranks[order] = np.arange(counts.size)
        by_rank_us = np.where(seen, ratios_us, mean_us).reshape(-1)[order]
        return cls(functions, ranks.reshape(counts.shape), by_rank_us, mean_us)

    def costs_us(self, keys: Hashes) -> NDArray[np.float64]:
        """What a tuple of each of these keys costs, as estimated; keys are given by their hashes."""
        found = np.empty(len(keys))
        for block, least in self._blocks(keys):
            found[block] = self.by_rank_us[least]
        return found

    def ranks_of(self, keys: Hashes) -> Ranks:
        """The ranks of the cells that these keys are looked up in."""
        found = np.empty(len(keys), np.int64)
        for block, least in self._blocks(keys):
            found[block] = least
        return found

    def _blocks(self, keys: Hashes) -> Iterator[tuple[slice, Ranks]]:
        for block, places in self.functions.blocks(keys):
            least = self.ranks[0][places[0]]
            for row, at in enumerate(places[1:], start=1):
                np.minimum(least, self.ranks[row][at], out=least)
            yield block, least

    def cost_sql(self, key: str) -> str:
        """The same as a SQL expression of type double, never null; `key` is the key's hash in SQL, a bigint.

        `key` occurs twice for every row: where it is not a column but an expression, Spark may compute it as often.
        Each double is written so that it is read as the one it was. Arrays of literals are folded when Spark plans, and
        compiled code gets them as objects: other numbers do not compile it anew.

        >>> table = CostTable.of(HashFunctions(1, 2), np.array([[3, 0]]), np.array([[1.5, 0.0]]), 1.5)
        >>> table.cost_sql("h").replace(table.functions.places_sql("h")[0], "column")
        'get(array(1.5D, 1.5D), get(array(1, 0), column))'
        """
        ranks = [
            f"get(array({', '.join(map(str, row.tolist()))}), {place})"
            for row, place in zip(self.ranks, self.functions.places_sql(key), strict=True)
        ]
        rank = ranks[0] if len(ranks) == 1 else f"least({', '.join(ranks)})"
        costs = ", ".join(f"{cost!r}D" for cost in self.by_rank_us.tolist())
        return f"get(array({costs}), {rank})"
