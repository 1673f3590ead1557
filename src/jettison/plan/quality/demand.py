"""Processor load that tasks need for an accuracy, and the accuracy that they get for a load (eq. 3.9 to 3.13).

Load is in cores (the seed's 100 % is 1.0). It is proportional to accuracy. A task whose accuracy is 0, or of which
nothing is known, is taken to need a whole core for any accuracy above 0, and to reach all of it with that core.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jettison.plan.quality.accuracy import processed_share, slowest_cpu
from jettison.plan.quality.instances import Instances, Metrics
from jettison.plan.quality.tasks import Mask, TaskGraph, Vector


@dataclass(frozen=True, eq=False)
class Demand:
    """What one instance of every task needs: `full` cores at accuracy 1, at most `most` cores whatever it needs.

    `unknown` marks tasks whose cost nobody has measured: they need `most`, or a whole core, for any accuracy above 0.

    >>> demand = Demand.proportional([0.5, 2.0])
    >>> demand.required(np.array([0.6, 0.6])), demand.obtained(np.array([0.25, 0.25]))
    (array([0.3, 1. ]), array([0.5  , 0.125]))
    """

    full: Vector
    most: Vector
    unknown: Mask

    @classmethod
    def proportional(cls, full: Vector | list[float], most: float = 1.0) -> Demand:
        """Costs that are known: cores at accuracy 1. `most=math.inf` lets an instance use all cores of its machine."""
        column = np.asarray(full, dtype=float)
        return cls(column, np.full(len(column), most), np.zeros(len(column), dtype=bool))

    @classmethod
    def measured(cls, cpu: Vector, current: Vector, most: float = 1.0) -> Demand:
        """From `cpu(t)` and `currAc(t)`: accuracy and load are proportional (eq. 3.9). nan or accuracy 0: unknown."""
        unknown = ~(np.isfinite(cpu) & (current > 0))
        full = np.divide(cpu, current, out=np.full(len(cpu), float(most)), where=~unknown)
        return cls(full, np.full(len(cpu), most), unknown)

    def required(self, wanted: Vector) -> Vector:
        """`rCpu(t, ac)`: cores of an instance for an accuracy (eq. 3.9)."""
        needed = np.where(self.unknown & (wanted > 0), self._whole, self.full * wanted)
        return np.minimum(needed, self.most)

    def obtained(self, cores: Vector) -> Vector:
        """`obtAc(t, cpu)`: the accuracy that an instance reaches with so many cores (eq. 3.12)."""
        bet = self.unknown | (self.full <= 0)
        proportional = np.divide(cores, self.full, out=np.ones_like(cores), where=~bet)
        return np.where(bet, np.where((cores > 0) | ~self.unknown, 1.0, 0.0), np.minimum(proportional, 1.0))

    def minimum(self, graph: TaskGraph) -> Vector:
        """`minReqCpu(t)` (eq. 3.10)."""
        return self.required(graph.min_accuracy)

    def maximum(self, graph: TaskGraph, desired: Vector) -> Vector:
        """`maxReqCpu(t)`, of the desired accuracies of queries (eq. 3.6, 3.11)."""
        return self.required(graph.most(desired))

    def reachable(self) -> Vector:
        """The accuracy that no instance can exceed on any machine: it would need more than `most` cores."""
        known = ~self.unknown & (self.full > 0)
        return np.minimum(1.0, np.divide(self.most, self.full, out=np.ones_like(self.full), where=known))

    def parts(self, minimum: Vector) -> tuple[Vector, Vector]:
        """Load as a fixed part and a part per accuracy, the form in which it is shared out.

        An unknown task with a minimum needs its core for the minimum; beyond it, it costs nothing more (3.3.7, 3.3.8).
        """
        fixed = np.where(self.unknown & (minimum > 0), self._whole, 0.0)
        return fixed, np.where(self.unknown, np.where(minimum > 0, 0.0, self._whole), self.full)

    @property
    def _whole(self) -> Vector:
        return np.where(np.isfinite(self.most), self.most, 1.0)


def measure(graph: TaskGraph, placed: Instances, metrics: Metrics, history: Demand | None = None) -> Demand:
    """What tasks need, from metrics; where they say nothing, or an instance warms up, from `history`.

    The seed divides by `currAc(t)`, which is at most 1 and takes the least accurate stream where several meet. We
    divide by the share that the task really processes, which is above 1 while it works off what waited: then a backlog
    does not pass for a dearer task. Where nothing waits and streams are equally accurate, both are the same.
    """
    found = Demand.measured(slowest_cpu(placed, metrics), processed_share(graph, placed, metrics))
    if history is None:
        return found
    warming = np.maximum.reduceat(placed.warming, placed.starts)
    older = (warming | found.unknown) & ~history.unknown
    return Demand(np.where(older, history.full, found.full), found.most, found.unknown & ~older)
