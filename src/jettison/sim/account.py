"""An account of every tuple: what was shed, was taken up, was given on, and came out after how long.

On every arc, what entered is what was shed, what was taken up by the operator behind it, and what still waits. What an
operator took and did not give on was filtered (below 0 where it makes more of less).
"""

from __future__ import annotations

import numpy as np

from jettison.network.graph import Graph
from jettison.network.operators import Output
from jettison.sim.cells import Matrix, Vector
from jettison.sim.quantiles import weighted_quantiles
from jettison.sim.trains import by_cell, by_train

ByValue = tuple[dict[str, Vector], dict[str, Vector]]


class Account:
    """Tuples of a whole run: by arc and operator, and by cell where they are lost or delivered."""

    def __init__(self, graph: Graph, cells: int) -> None:
        self.graph = graph
        self.shed: dict[str, Vector] = {arc: np.zeros(cells) for arc in graph.arcs}
        self.taken: dict[str, float] = dict.fromkeys(graph.arcs, 0.0)
        self.entered = {source.name: np.zeros(cells) for source in graph.sources} if graph.tracks.all else {}
        self.gave = {operator.name: 0.0 for operator in graph.operators if not isinstance(operator, Output)}
        self.delivered = {output.name: np.zeros(cells) for output in graph.outputs}
        self._late_ms: dict[str, list[Vector]] = {output.name: [] for output in graph.outputs}
        self._rows: dict[str, list[Vector]] = {output.name: [] for output in graph.outputs}

    def take(self, arc: str, rows: float, trains: Matrix) -> None:
        """Trains of `rows` tuples that an operator takes up from an arc, behind its drop."""
        self.taken[arc] += rows
        if arc in self.entered:
            self.entered[arc] += by_cell(trains)

    def drop(self, arc: str, trains: Matrix, kept: Matrix) -> None:
        """Trains of which a drop lets only `kept` pass."""
        self.shed[arc] += by_cell(trains - kept)

    def by_value(self, since: ByValue | None = None) -> ByValue:
        """Tuples by cell that sources took up behind their drops, and that outputs got, since an earlier call."""
        entered, delivered = since or ({}, {})
        return (
            {name: rows - entered.get(name, 0.0) for name, rows in self.entered.items()},
            {name: rows - delivered.get(name, 0.0) for name, rows in self.delivered.items()},
        )

    def deliver(self, output: str, late_ms: Vector, trains: Matrix) -> None:
        """Trains that came out, and how late each of them is."""
        self.delivered[output] += by_cell(trains)
        self._late_ms[output].append(late_ms)
        self._rows[output].append(by_train(trains))

    def mark(self) -> dict[str, int]:
        """Where the deliveries of each output stand now, for `latency_ms` of what comes after."""
        return {name: len(rows) for name, rows in self._rows.items()}

    def latency_ms(self, output: str, shares: tuple[float, ...], since: int = 0) -> tuple[float, ...] | None:
        """Latency that these shares of an output's tuples stay within; None when nothing came out."""
        if len(self._rows[output]) <= since:
            return None
        late_ms, rows = np.concatenate(self._late_ms[output][since:]), np.concatenate(self._rows[output][since:])
        return weighted_quantiles(late_ms, rows, shares)

    def lost(self, passes: dict[str, Vector], before: dict[str, Vector]) -> dict[str, Vector]:
        """What each output would have got of the tuples that were shed, at selectivities `passes` by operator.

        `before` is what had been shed already when counting began, by arc.
        """
        shed = {arc: rows - before.get(arc, 0.0) for arc, rows in self.shed.items()}
        gives: dict[str, dict[str, Vector]] = {}
        lost = {name: np.zeros_like(rows) for name, rows in self.delivered.items()}
        for operator in reversed(self.graph.operators):
            name = operator.name
            if isinstance(operator, Output):
                gives[name] = {name: np.ones_like(self.delivered[name])}
            else:
                gives[name] = {}
                for head in self.graph.consumers[name]:
                    for output, share in gives[head].items():
                        gives[name][output] = gives[name].get(output, 0.0) + passes[name] * share
            for arc in self.graph.arcs_into(name):
                if shed[arc].any():
                    for output, share in gives[name].items():
                        lost[output] += shed[arc] * share
        return lost
