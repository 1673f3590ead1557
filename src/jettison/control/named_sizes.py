"""Which share of tuples is in the groups that `QoS(gaps=...)` names, learned while running.

Behind a window drop there are fewer tuples of some groups than of others. With c tuples of a cell counted there, of n
in all, k the share of the cell that the drop lets pass and q the share of all tuples that passed, the cell's share of
all tuples is  (c / n) q / k.  For the groups that lose nothing k is 1, and that is exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from jettison.plan.drops.window import GroupCells, Window
from jettison.plan.plan import Plan
from jettison.plan.windows.decisions import WindowDecisions
from jettison.plan.windows.group_values import unsplit_shares
from jettison.statistics.groups import GroupSizes
from jettison.statistics.samples import BatchSample, GroupSample

_DIGITS = 2
"""A share that is known more finely would change what is planned with every batch."""


def before_drops(
    decisions: WindowDecisions, plan: Plan, sample: BatchSample, known: GroupSizes
) -> dict[str, GroupSample]:
    """The sizes of named groups in a batch, as they would be without its drops; by aggregate and number of the name.

    Of groups that are closed nothing can be seen: their share stays as it is.
    """
    found = {}
    for name, seen in sample.groups.items():
        fate = plan.fates.get(name)
        if seen.rows <= 0:
            continue
        if fate is None or fate.cells is None or not fate.cells.names:
            found[name] = seen
            continue
        rows = seen.rows / max(_passed(decisions, plan, sample, name), 1e-9)
        sizes = {}
        for cell, size in seen.sizes.items():
            keep = _kept(decisions, plan, name, fate.cells.shares[cell])
            sizes[cell] = size / keep if keep > 0 else rows * known.of(name).get(cell, 0.0)
        found[name] = GroupSample(rows, sizes)
    return found


def with_masses(named: Mapping[str, GroupCells], sizes: GroupSizes) -> dict[str, GroupCells]:
    """Named groups with the share of tuples in each, and in all others, where that is known."""
    found = {}
    for name, cells in named.items():
        if sizes.rows(name) is not None:
            shares = [round(min(1.0, sizes.of(name).get(cell, 0.0)), _DIGITS) for cell in range(len(cells.names))]
            cells = replace(cells, masses=(*shares, max(0.0, round(1.0 - sum(shares), _DIGITS))))
        found[name] = cells
    return found


def _passed(decisions: WindowDecisions, plan: Plan, sample: BatchSample, name: str) -> float:
    """The share of tuples that passed the drops above an operator, as counted; where streams merge, the mean."""
    ways = []
    for arc in decisions.graph.arcs_into(name):
        rows, kept = sample.arcs.get(arc, (0, 0)) if isinstance(plan.drops.get(arc), Window) else (0, 0)
        tail = arc.tail
        above = _passed(decisions, plan, sample, tail) if tail else 1.0
        ways.append(above * (kept / rows if rows else 1.0))
    return sum(ways) / len(ways) if ways else 1.0


def _kept(decisions: WindowDecisions, plan: Plan, name: str, share: float) -> float:
    """The share of tuples of a cell that comes to an aggregate when such a share of its windows goes."""
    shares = {each: fate.drop_share for each, fate in plan.fates.items()} | {name: share}
    left = decisions.left(shares, unsplit_shares(decisions, plan.fates))
    arcs = decisions.graph.arcs_into(name)
    return sum(left[arc][1] for arc in arcs) / len(arcs)
