"""Records that are passed over unread count as not delivered: a plan's shares are of what arrived."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from jettison.network.graph import Graph
from jettison.plan.plan import Plan
from jettison.plan.reasons import READING


@dataclass(frozen=True)
class Unread:
    """Records of a batch that are not read, by source: `skipped` in all, of which `stale` are worth nothing any more.

    `reason` is why, where the plan itself drops nothing.
    """

    skipped: Mapping[str, int] = field(default_factory=dict)
    stale: Mapping[str, int] = field(default_factory=dict)
    reason: str = READING

    def read_shares(self, rows: Mapping[str, int]) -> dict[str, float]:
        """The share of each source that is read, where that is not all of it.

        >>> Unread({"a": 40, "b": 0}).read_shares({"a": 60, "b": 10})
        {'a': 0.6}
        """
        return {name: rows[name] / (rows[name] + count) for name, count in self.skipped.items() if count and rows[name]}


def after_skipping(graph: Graph, plan: Plan, rows: Mapping[str, int], unread: Unread) -> Plan:
    """Restate the shares of a plan: of the records that arrived, read or not.

    >>> from jettison.network import Network
    >>> net = Network("one"); _ = net.source("s", "x int").output("o")
    >>> plan = after_skipping(net.graph, Plan(), {"s": 60}, Unread({"s": 40}))
    >>> plan.delivered, plan.reason
    ({'o': 0.6}, 'reading alone is too much')
    """
    skipped, stale = unread.skipped, unread.stale
    if not any(skipped.values()):
        return plan
    delivered, worth = {}, {}
    for output in graph.outputs:
        above = [source.name for source in graph.sources if output.name in graph.outputs_below(source.name)]
        read = sum(rows[name] for name in above)
        arrived = read + sum(skipped.get(name, 0) for name in above)
        fresh = arrived - sum(stale.get(name, 0) for name in above)
        share = plan.delivered.get(output.name, 1.0)
        delivered[output.name] = share * read / arrived if arrived else share
        if output.name in plan.worth or fresh < arrived:
            worth[output.name] = plan.worth.get(output.name, share) * (read / fresh if fresh else 1.0)
    why = "stale" if stale == skipped else unread.reason
    return replace(plan, delivered=delivered, worth=worth, reason=plan.reason if plan.sheds else why)
