"""What outputs of several nodes are worth: second by second, of what came before the deadline."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np

from jettison.network.arc import arc_head
from jettison.network.nodes.fragments import Fragment
from jettison.plan.nodes.structure import Structure
from jettison.sim.arrivals import Arrivals
from jettison.sim.cells import Matrix, Vector
from jettison.statistics.load import yields

_FEWEST_ROWS = 25.0
"""An output with fewer rows per second is judged over as many seconds as bring so many: of one row in ten seconds
nobody can say which share of it came."""


class Judge:
    """Counts rows at outputs by the second in which they arrived at the network.

    What an output should have got is what it got, and what it would have got of rows that were dropped on the way or
    are still under way. Which rows pass a filter is a matter of luck; so an output of which nothing was dropped gets
    all of it, however few rows that is.
    """

    def __init__(self, made: Structure, deadline_s: float) -> None:
        self._made, self._deadline_ms = made, 1000 * deadline_s
        self._yields = yields(made.graph, made.profile)
        self._got: dict[str, list[tuple[Vector, Vector, Vector]]] = {each.name: [] for each in made.graph.outputs}
        self._missed: dict[str, list[tuple[Vector, Vector]]] = {each.name: [] for each in made.graph.outputs}

    def take(self, output: str, times_ms: Vector, late_ms: Vector, trains: Matrix) -> None:
        """Rows that came out, with the times at which they arrived and how late they are."""
        self._got[output].append((times_ms, late_ms, trains.sum(axis=1)))

    def miss(self, part: Fragment, arc: str, times_ms: Vector, rows: Vector) -> None:
        """Rows that were dropped on an arc of a node, or wait there, with the times at which they arrived."""
        for head in _heads(part, arc):
            for output, share in self._yields[head].items():
                self._missed[output].append((times_ms, rows * share))

    def result(
        self, arrivals: Mapping[str, Arrivals], seconds: float
    ) -> tuple[dict[str, float], dict[str, float], float, float]:
        """Shares that came, shares that came in time, worth per second, and what all would be worth.

        Rows of the last seconds, for which the deadline is not over, are not judged.
        """
        judged = max(1, int(seconds - self._deadline_ms / 1000))
        edges = np.arange(judged + 1) * 1000.0
        names = [source.name for source in self._made.graph.sources]
        came = np.array([[arrivals[name].rows(a, b)[name] for a, b in pairwise(edges.tolist())] for name in names])
        expected = self._made.throughput @ came
        share, in_time, worth, most = {}, {}, 0.0, 0.0
        for output, sent in zip(self._made.graph.outputs, expected > 0, strict=True):
            got, missed = self._got[output.name], self._missed[output.name]
            times, late, rows = (np.concatenate([np.zeros(0), *(each[at] for each in got)]) for at in range(3))
            lost_at, lost = (np.concatenate([np.zeros(0), *(each[at] for each in missed)]) for at in range(2))
            fresh = late <= self._deadline_ms
            delivered = np.histogram(times, edges, weights=rows)[0]
            early = np.histogram(times[fresh], edges, weights=rows[fresh])[0]
            full = delivered + np.histogram(lost_at, edges, weights=lost)[0]
            share[output.name], in_time[output.name] = _share(delivered, full), _share(early, full)
            worths = [
                sent[span].sum() * output.qos.utility(_share(early[span], full[span])) for span in _spans(full, judged)
            ]
            worth += output.qos.priority * float(sum(worths)) / judged
            most += output.qos.priority * float(sent.sum()) / judged
        return share, in_time, worth, most


def _share(part: Vector, whole: Vector) -> float:
    """Of rows; 1 where there are none.

    >>> _share(np.array([1.0, 2.0]), np.array([4.0, 2.0])), _share(np.zeros(2), np.zeros(2))
    (0.5, 1.0)
    """
    total = float(whole.sum())
    return min(1.0, float(part.sum()) / total) if total > 0 else 1.0


def _spans(full: Vector, judged: int) -> list[slice]:
    """Seconds that are judged together: one by one where rows are many.

    >>> _spans(np.full(10, 100.0), 10)[:2], _spans(np.full(60, 1.0), 60), _spans(np.zeros(3), 3)
    ([slice(0, 1, None), slice(1, 2, None)], [slice(0, 30, None), slice(30, 60, None)], [slice(0, 3, None)])
    """
    seconds = int(np.ceil(_FEWEST_ROWS * judged / max(float(full.sum()), 1e-12))) if full.any() else judged
    spans = max(1, judged // min(judged, seconds))
    edges = np.linspace(0, judged, spans + 1).round().astype(int).tolist()
    return [slice(begin, end) for begin, end in pairwise(edges)]


def _heads(part: Fragment, arc: str) -> list[str]:
    """The operators of the whole network that rows on an arc of a fragment come to."""
    head = arc_head(arc)
    link = part.sends.get(head) or part.reads.get(head)
    if link is None:
        return [head]
    placement = part.whole.placement
    assert placement is not None
    return [each for each in part.whole.consumers[link.operator] if placement.node_of[each] == link.head]
