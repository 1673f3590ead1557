"""What each operator costs, from the work of prefixes of the network on a sample.

Prefixes are long and operators are short: of a filter behind a parser little more is left than the noise of both
prefixes. So prefixes begin at copies: the rows of a dear operator are kept, and what is below it is measured from
there.

    work of an operator = work of the prefix that ends with it - reading the copies or prefixes above it

Cheap operators in a row (filters, projections) are measured together and cost the same per row: no drop stands between
them, so no plan depends on which of them is the dearer. A difference below the resolution, a share of all work of the
network, is noise. It counts as the resolution.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from jettison.network.graph import Graph
from jettison.network.operators import Output, Select, Source, Union, Where, WithColumns

RESOLUTION_SHARE = 0.04
"""Of all work of the network: what is measured to be less counts as this much."""
RESOLUTION_MS = 1.0
"""The same on a sample so small that all work is noise."""

_CHEAP = (Where, Select, WithColumns, Union)


@dataclass(frozen=True)
class PrefixWork:
    """Milliseconds of work on a sample: of prefixes, by the operator that they end with; of reading copies, by the
    operator whose rows were kept, and of reading the sample itself, by source."""

    prefixes: Mapping[str, float]
    copies: Mapping[str, float]
    raw: Mapping[str, float]
    shares_with: Mapping[str, str] = field(default_factory=dict)
    """By aggregate, the one whose slices it is made of: those are made once."""


def kept_copies(graph: Graph) -> frozenset[str]:
    """The operators whose rows are kept: splits, and dear ones unless nobody but an output reads them.

    >>> from jettison.network.declare import Network
    >>> net = Network("n")
    >>> s = net.source("s", "a int", id=["a"]).where("a > 0", name="w")
    >>> _ = s.select("a", name="one").output("first")
    >>> _ = s.select("a", name="two").output("second")
    >>> sorted(kept_copies(net.graph)), sorted(prefix_ends(net.graph))
    (['w'], ['one', 's', 'two', 'w'])
    """
    found = set()
    for operator in graph.operators:
        heads = graph.consumers[operator.name]
        read_on = any(not isinstance(graph.by_name[head], Output) for head in heads)
        parsed = isinstance(operator, Source) and operator.payload is not None
        dear = parsed or not isinstance(operator, Output | Source | Where | Select | WithColumns | Union)
        if (dear and read_on) or len(heads) > 1:
            found.add(operator.name)
    return frozenset(found)


def prefix_ends(graph: Graph) -> frozenset[str]:
    """The operators that a prefix is measured for: all but cheap ones that only another cheap one reads."""
    return frozenset(
        operator.name
        for operator in graph.operators
        if not isinstance(operator, Output) and not _goes_on(graph, operator.name)
    )


def operator_costs(graph: Graph, work: PrefixWork, entering: Mapping[str, float]) -> dict[str, float]:
    """Microseconds per row that enters, by operator that was measured, alone or in a row of others.

    Parsing took 100 ms of 1,000 rows; two filters behind it, from a copy that takes 10 ms to read, 20 ms together:

    >>> from jettison.network.declare import Network
    >>> net = Network("n")
    >>> s = net.source("s", "a int", id=["a"])
    >>> _ = s.where("a > 0", name="one").where("a > 1", name="two").output("o")
    >>> work = PrefixWork({"s": 105.0, "two": 30.0}, {"s": 10.0}, {"s": 5.0})
    >>> operator_costs(net.graph, work, {"s": 1000, "one": 1000, "two": 600})
    {'s': 100.0, 'one': 12.5, 'two': 12.5}
    """
    stretches = {name: _stretch(graph, work, name) for name in work.prefixes}
    extra_ms = {name: max(0.0, work.prefixes[name] - _before_ms(graph, work, name)) for name in work.prefixes}
    least_ms = max(RESOLUTION_MS, RESOLUTION_SHARE * sum(extra_ms.values()))
    found: dict[str, float] = {}
    for name in (each.name for each in graph.operators if each.name in stretches):
        rows = sum(entering.get(each, 0.0) for each in stretches[name])
        cost_us = 1000 * max(least_ms, extra_ms[name]) / max(1.0, rows)
        for each in reversed(stretches[name]):
            found[each] = min(cost_us, found.get(each, cost_us))  # what feeds two prefixes is in both
    return found


def work_above_ms(graph: Graph, costs_us: Mapping[str, float], entering: Mapping[str, float], name: str) -> float:
    """All work up to an operator's rows, its own included, on the sample."""
    above: set[str] = set()
    waiting = [name]
    while waiting:
        here = waiting.pop()
        if here not in above:
            above.add(here)
            waiting.extend(graph.by_name[here].inputs)
    return sum(costs_us.get(each, 0.0) * entering.get(each, 0.0) for each in above) / 1000


def _goes_on(graph: Graph, name: str) -> bool:
    """Whether a cheap operator is read by another cheap one, and by nobody else."""
    below = [graph.by_name[head] for head in graph.consumers[name]]
    return isinstance(graph.by_name[name], _CHEAP) and len(below) == 1 and isinstance(below[0], _CHEAP)


def _stretch(graph: Graph, work: PrefixWork, name: str) -> list[str]:
    """An operator, and those above it up to what was measured."""
    found = [name]
    for tail in _unmeasured(work, graph.by_name[name].inputs):
        found += [each for each in _stretch(graph, work, tail) if each not in found]
    return found


def _before_ms(graph: Graph, work: PrefixWork, name: str) -> float:
    """The work of what an operator's stretch begins with."""
    first = work.shares_with.get(name, name)
    if first != name and first in work.prefixes:
        return work.prefixes[first]
    operator = graph.by_name[name]
    if isinstance(operator, Source):
        return work.raw.get(name, 0.0)
    begins = {tail: work.copies.get(tail, work.prefixes.get(tail)) for tail in operator.inputs}
    return sum(_before_ms(graph, work, tail) if ms is None else ms for tail, ms in begins.items())


def _unmeasured(work: PrefixWork, tails: Iterable[str]) -> list[str]:
    return [tail for tail in tails if tail not in work.copies and tail not in work.prefixes]
