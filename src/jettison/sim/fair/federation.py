"""Queries whose sources are on several nodes, each with a capacity of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jettison.errors import NetworkError

Vector = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Federation:
    """By source: the query that it is for, the node that it is on, its tuples per interval, and the work of a tuple.

    `capacity_us` is, by node, the work that one interval has room for.
    """

    query: Numbers
    node: Numbers
    rows: Vector
    tuple_us: Vector
    capacity_us: Vector

    def __post_init__(self) -> None:
        if not len(self.query) == len(self.node) == len(self.rows) == len(self.tuple_us) > 0:
            raise NetworkError("federation: give query, node, rows and cost of every source, and at least one source.")
        if int(self.node.max()) >= len(self.capacity_us):
            raise NetworkError(f"federation: a source is on node {self.node.max()}, of {len(self.capacity_us)} nodes.")

    @property
    def queries(self) -> int:
        return int(self.query.max()) + 1

    @property
    def sources_of(self) -> Numbers:
        """How many sources every query has, on all nodes."""
        return np.bincount(self.query, minlength=self.queries)


def random_federation(
    draw: np.random.Generator, *, nodes: int, queries: int, most_nodes: int = 3, overload: float = 2.0
) -> Federation:
    """Queries on one to `most_nodes` nodes, with one or two sources on each. Rates differ by factors of up to 100 and
    costs by as much; all nodes together have 1 / `overload` of the time that everything takes, in equal parts.

    >>> made = random_federation(np.random.default_rng(1), nodes=4, queries=10)
    >>> made.queries, len(made.capacity_us)
    (10, 4)
    """
    query, node = [], []
    for number in range(queries):
        spans = draw.choice(nodes, size=draw.integers(1, most_nodes + 1), replace=False)
        for each in spans:
            for _ in range(draw.integers(1, 3)):
                query.append(number)
                node.append(int(each))
    rows = 10.0 ** draw.uniform(1.0, 3.0, len(query))
    work_us = 10.0 ** draw.uniform(4.0, 4.7, len(query))
    capacity_us = np.full(nodes, float(work_us.sum()) / nodes / overload)
    return Federation(np.array(query), np.array(node), rows, work_us / rows, capacity_us)
