"""Load: how much work a tuple causes from an arc to the outputs, and what that sums to (thesis 3.3.1).

The load coefficient of an arc into operator o is  L = cost(o) + selectivity(o) * sum of L over the arcs out of o.
On a flat query this is equation 3.1; summed over the arcs out of a fan-out it is equation 3.3, path by path.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from jettison.network.graph import Graph
from jettison.network.operators import StreamJoin
from jettison.statistics.profile import Profile


def load_coefficients(graph: Graph, profile: Profile) -> dict[str, float]:
    """Microseconds of work per tuple on every arc.

    >>> from jettison.network import Source, Where, Output
    >>> graph = Graph("flat", (Source("s", (("a", "int"),)), Where("w", ("s",), "a > 0"), Output("o", ("w",))))
    >>> load_coefficients(graph, Profile({"s": 1.0, "w": 10.0, "o": 4.0}, {"w": 0.5}))
    {'s': 13.0, 's>w': 12.0, 'w>o': 4.0}
    """
    through: dict[str, float] = {}
    costs, passes = profile.cost_us, profile.selectivity
    for operator in reversed(graph.operators):
        name = operator.name
        after = sum([through[head] for head in graph.consumers[name]])
        through[name] = costs.get(name, 0.0) + passes.get(name, 1.0) * after
    return {arc: through[operator.name] for operator in graph.operators for arc in graph.arcs_into(operator.name)}


def yields(graph: Graph, profile: Profile) -> dict[str, dict[str, float]]:
    """Tuples that come to each output per tuple that comes to an operator, nothing dropped.

    >>> from jettison.network import Source, Where, Output
    >>> graph = Graph("flat", (Source("s", (("a", "int"),)), Where("w", ("s",), "a > 0"), Output("o", ("w",))))
    >>> yields(graph, Profile({}, {"w": 0.5}))
    {'o': {'o': 1.0}, 'w': {'o': 0.5}, 's': {'o': 0.5}}
    """
    found: dict[str, dict[str, float]] = {}
    for operator in reversed(graph.operators):
        name = operator.name
        found[name] = {name: 1.0} if not graph.consumers[name] else {}
        for head in graph.consumers[name]:
            for output, share in found[head].items():
                found[name][output] = found[name].get(output, 0.0) + profile.passes(name) * share
    return found


def flows(
    graph: Graph, profile: Profile, rows: Mapping[str, float], keeps: Mapping[str, float] | None = None
) -> dict[str, float]:
    """Tuples that pass every arc when `rows` tuples enter at each source and drops keep these shares of an arc.

    >>> from jettison.network import Source, Where, Output
    >>> graph = Graph("flat", (Source("s", (("a", "int"),)), Where("w", ("s",), "a > 0"), Output("o", ("w",))))
    >>> flows(graph, Profile({}, {"w": 0.5}), {"s": 100}, {"s": 0.8})
    {'s': 80.0, 's>w': 80.0, 'w>o': 40.0}
    """
    kept, passes = keeps or {}, profile.selectivity
    full = flows(graph, profile, rows) if kept and graph.stream_joins else {}
    on: dict[str, float] = {}
    for operator, into, out_of in graph.wiring:
        name = operator.name
        if not operator.inputs:
            entering = on[name] = rows.get(name, 0.0) * kept.get(name, 1.0)
        elif full and isinstance(operator, StreamJoin):
            entering = joined([on[arc] for arc in into], [full[arc] for arc in into])
        else:
            entering = on[into[0]] if len(into) == 1 else sum([on[arc] for arc in into])
        out = entering * passes.get(name, 1.0)
        for arc in out_of:
            on[arc] = out * kept[arc] if arc in kept else out
    return on


def joined(kept: Sequence[float], full: Sequence[float]) -> float:
    """What comes to a join of streams, counted as the pairs go: the same keys are kept on both sides, or the same times
    (windows), so as many as on the side that keeps less.

    >>> joined([50.0, 10.0], full=[100.0, 40.0])
    35.0
    """
    return sum(full) * min(here / there if there > 0 else 1.0 for here, there in zip(kept, full, strict=True))


def total_load_us(coefficients: Mapping[str, float], rows: Mapping[str, float]) -> float:
    """Work of all inputs together: the sum of load coefficient times rate (equation 3.2), in microseconds.

    >>> total_load_us({"i1": 26.5, "i2": 18.75}, {"i1": 10, "i2": 20})
    640.0
    """
    return math.fsum(coefficients[source] * count for source, count in rows.items())


def queue_load_us(coefficients: Mapping[str, float], queues: Mapping[str, float], melt_rate: float) -> float:
    """Extra work that melts the queues: the sum of melt rate x load coefficient x queue length (thesis 3.3.1).

    >>> queue_load_us({"i1": 26.5, "w>o": 4.0}, {"i1": 100, "w>o": 50}, melt_rate=0.1)
    285.0
    """
    return melt_rate * sum(coefficients[arc] * length for arc, length in queues.items())
