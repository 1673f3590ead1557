"""Messages between coordinator and nodes, and between neighbours: plain values with a version each (thesis 5.3, 5.6).

A message may be late, lost or come twice: who receives one compares versions and keeps what is newest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from jettison.plan.nodes.point_quadtree import PointQuadtree
from jettison.plan.nodes.structure import Matrix, Vector


@dataclass(frozen=True)
class RatesMessage:
    """Load monitoring: the rates that a node measures at its sources, for the coordinator."""

    node: str
    version: int
    rows_per_s: Mapping[str, float]


@dataclass(frozen=True)
class PlanMessage:
    """Plan selection: the shares that a node's drops are to keep, by arc of its fragment, from the coordinator.

    `rows_per_s` are the rates of sources that the plan is for. What it promises to nodes downstream are rows per
    second, so a source that brings more by now passes a smaller share, and one that brings less a larger one.

    >>> PlanMessage("A", 1, {"s": 0.5}, {"s": 100.0}).keeps_at({"s": 80.0})
    {'s': 0.625}
    """

    node: str
    version: int
    keeps: Mapping[str, float]
    rows_per_s: Mapping[str, float] = field(default_factory=dict)

    def keeps_at(self, rows_per_s: Mapping[str, float]) -> dict[str, float]:
        """The shares to keep now that sources bring these rates."""
        keeps = dict(self.keeps)
        for source, planned in self.rows_per_s.items():
            if source in keeps and rows_per_s.get(source, 0.0) > 0:
                keeps[source] = min(1.0, keeps[source] * planned / rows_per_s[source])
        return keeps


@dataclass(frozen=True)
class TableMessage:
    """Advance planning between neighbours: a node's feasible input table, whole (see `fit.Fit`)."""

    node: str
    version: int
    inputs: tuple[str, ...]
    rates: Matrix
    score: Vector
    loads: Matrix

    @property
    def entries(self) -> int:
        return len(self.score)


@dataclass(frozen=True)
class TableDelta:
    """What has changed since version `base`: rows that are new or give something else, and rows that no longer hold."""

    node: str
    version: int
    base: int
    rates: Matrix
    score: Vector
    withdrawn: Matrix
    loads: Matrix

    @property
    def entries(self) -> int:
        """Rows that travel."""
        return len(self.score) + len(self.withdrawn)


def delta_between(before: TableMessage, after: TableMessage, tolerance: float = 0.0) -> TableDelta:
    """What to send so that the receiver's scores are within `tolerance` of the new ones.

    Rows that no longer hold are always withdrawn. A row is sent where what the receiver has is further off: the same
    row's old score or, for a new row, the best row that is still there and asks for no more, by its old score or by the
    one that is sent with this delta.
    """
    old, new = _keys(before.rates), _keys(after.rates)
    at_old, at_new = ({key: at for at, key in enumerate(keys)} for keys in (old, new))
    stays = np.array([key in at_new for key in old], dtype=bool)
    known = np.array([at_old.get(key, -1) for key in new], dtype=np.intp)
    fresh = known < 0
    score = np.where(fresh, np.inf, before.score[known])  # nothing stands for a new row
    allowed = tolerance * np.abs(after.score) + 1e-12
    off = np.abs(after.score - score) > allowed
    if tolerance > 0 and fresh.any() and not fresh.all():
        found = np.zeros(int(fresh.sum()), dtype=bool)
        for held in (score[~fresh], np.where(off, after.score, score)[~fresh]):  # before the delta, and with it
            index = PointQuadtree(after.rates[~fresh], held)
            best = np.array([index.find(rates) for rates in after.rates[fresh]], dtype=np.intp)
            found |= np.abs(after.score[fresh] - np.where(best < 0, np.inf, held[best])) > allowed[fresh]
        off[fresh] = found
    rates, withdrawn = after.rates[off], before.rates[~stays]
    return TableDelta(after.node, after.version, before.version, rates, after.score[off], withdrawn, after.loads)


def with_delta(known: TableMessage, delta: TableDelta) -> TableMessage:
    """The table after a delta."""
    changed, gone = set(_keys(delta.rates)), set(_keys(delta.withdrawn))
    stays = np.array([key not in changed and key not in gone for key in _keys(known.rates)], dtype=bool)
    rates = np.vstack([known.rates[stays], delta.rates])
    score = np.concatenate([known.score[stays], delta.score])
    order = np.lexsort(np.round(rates, 9).T[::-1])
    return replace(known, version=delta.version, rates=rates[order], score=score[order], loads=delta.loads)


def _keys(rates: Matrix) -> list[bytes]:
    """Rows as keys: rates that differ by rounding alone are the same."""
    return [row.tobytes() for row in np.round(rates, 9) + 0.0]
