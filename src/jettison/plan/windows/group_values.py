"""Windows of groups that matter less go first: where outputs value a column that their aggregate groups by.

Thesis table 3.1 lets a drop by value stand before an aggregate if it judges by a group-by attribute: whole groups go,
and every window that comes is still right. It stays right when the plan changes only if the change comes between two
windows. So it is no filter that holds from a batch on: every cell of values has a schedule of its own, as windows have.

The share p of windows that a plan lets go is taken from the cells that are worth least: whole cells are closed, all of
their windows go and no gap is promised to their groups; in the cells where p is reached, windows go as the gap allows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from jettison.network.arc import arc_head
from jettison.network.columns.value_tracks import Track
from jettison.network.graph import Graph
from jettison.network.operators import Aggregate, Output
from jettison.plan.drops.kind import Drop
from jettison.plan.drops.window import Fate, GroupCells, Window
from jettison.plan.plan import Plan
from jettison.plan.predictions import claimed
from jettison.plan.problem import Problem
from jettison.plan.windows.decisions import WindowDecisions, decisions_of
from jettison.plan.windows.group_gaps import column_apart, column_at, shares_by_gap


def valued_windows(graph: Graph) -> dict[str, Track]:
    """The aggregates all of whose outputs value one and the same column that it groups by.

    >>> from jettison.network import Network, QoS, Value
    >>> net = Network("taxi")
    >>> trips = net.source("trips", "at timestamp, zone int, fare double", event_time="at")
    >>> busy = trips.window("10 seconds", by="zone").agg(n="count(*)", name="busy")
    >>> _ = busy.output("table", qos=QoS(value=Value("zone", [(0, 50, 0.1), (50, 100, 1.0)])))
    >>> {name: track.columns["trips"] for name, track in valued_windows(net.graph).items()}
    {'busy': 'zone'}
    """
    found = {}
    decisions = decisions_of(graph)
    for name in decisions.by_aggregate:
        aggregate = graph.by_name[name]
        if not isinstance(aggregate, Aggregate):
            continue  # of windows that count rows all groups fare alike
        tracks = [graph.tracks.by_output.get(output) for output in decisions.outputs(name)]
        track = tracks[0]
        if track is None or any(each is not track for each in tracks):
            continue
        column = track.columns.get(name, "").lower()
        grouped = column in {each.lower() for each in aggregate.window.by}
        if grouped and all(column_at(graph, arc, name, column) for arc in decisions.arcs.fate_arcs[name]):
            found[name] = track
    return found


def cell_shares(worth: Sequence[float], mass: Sequence[float], share: float, most: float) -> tuple[float, ...]:
    """The share of windows that goes in each cell, so that `share` of all goes: of what is worth least first.

    Cells are closed (1.0) until in those left that are worth the same no more than `most` has to go.

    >>> cell_shares([0.1, 0.1, 1.0], [0.25, 0.25, 0.5], share=0.2, most=0.8)
    (0.4, 0.4, 0.0)
    >>> cell_shares([0.1, 0.1, 1.0], [0.25, 0.25, 0.5], share=0.6, most=0.8)
    (1.0, 1.0, 0.2)
    >>> cell_shares([0.1, 0.1, 1.0], [0.25, 0.25, 0.5], share=0.45, most=0.8)
    (1.0, 0.8, 0.0)
    """
    shares = [0.0] * len(worth)
    left = share * sum(mass)
    for each in sorted(set(worth)):
        alike = [cell for cell in range(len(worth)) if worth[cell] == each and mass[cell] > 0]
        while alike and left > most * sum(mass[cell] for cell in alike) + 1e-12:
            cell = alike.pop(0)
            shares[cell] = 1.0
            left -= mass[cell]
        if left <= 1e-12:
            break
        whole = sum(mass[cell] for cell in alike)
        for cell in alike:
            shares[cell] = min(most, round(left / whole, 6))
        left -= left if alike else 0.0
    return tuple(shares)


def with_groups_apart(
    problem: Problem, plan: Plan, named: Mapping[str, GroupCells] | None = None, *, by_value: bool = True
) -> Plan:
    """The plan with the windows that it lets go taken from the groups that are worth least, where those are valued, and
    no more of any group than its own gap allows. What those keep others make up for, where `named` has masses."""
    graph = problem.graph
    valued = valued_windows(graph) if plan.fates and graph.tracks.all and by_value else {}
    decisions, fates = decisions_of(graph), dict(plan.fates)
    for name, cells in (named or {}).items():
        if name in fates:
            shares = shares_by_gap(fates[name].drop_share, cells.gaps, cells.masses)
            fates[name] = replace(fates[name], cells=replace(cells, shares=shares))
    for name, track in valued.items():
        fate = fates.get(name)
        if fate is None or not 0.0 < fate.drop_share < 1.0:
            continue
        worth = np.zeros(track.cells)
        for output in decisions.outputs(name):
            operator = graph.by_name[output]
            assert isinstance(operator, Output)
            assert operator.qos.value is not None
            worth += operator.qos.priority * track.worth(operator.qos.value)
        mass = problem.spread.of(graph.by_name[name].inputs[0], track)
        most = decisions.by_aggregate[name].most_drop_share
        shares = cell_shares(worth.tolist(), mass.tolist(), fate.drop_share, most)
        fates[name] = replace(fate, cells=GroupCells(track.columns[name], track.bounds, shares))
    if fates == plan.fates:
        return plan
    others = {arc: drop for arc, drop in plan.drops.items() if drop.judges != "window"}
    drops: dict[str, Drop] = {**others, **window_drops(graph, decisions, fates)}
    if plan.stale:  # its claims are about what is not stale
        return replace(plan, drops=drops)
    return replace(claimed(problem, drops, plan.reason), row=plan.row, below_minimum=plan.below_minimum)


def window_drops(graph: Graph, decisions: WindowDecisions, fates: Mapping[str, Fate]) -> dict[str, Window]:
    """The drops of these fates, with what is to pass of every cell on arcs that all value by the same column."""
    shares = {name: fate.drop_share for name, fate in fates.items()}
    unsplit = unsplit_shares(decisions, fates)
    drops = decisions.arcs.drops(fates, decisions.keeps(shares, unsplit))
    drops |= _mixed(decisions, drops, fates, unsplit)
    cells = {name: fate.cells for name, fate in fates.items() if fate.cells is not None and fate.cells.bounds}
    if not cells:
        return drops
    count = max(len(each.shares) for each in cells.values())
    by_cell = [
        decisions.keeps(
            shares | {name: each.shares[cell] for name, each in cells.items() if cell < len(each.shares)}, unsplit
        )
        for cell in range(count)
    ]
    for arc, drop in drops.items():
        track = graph.tracks.below(arc_head(arc))
        bounds = {cells[name].bounds for name in drop.fates if name in cells}
        if track is not None and bounds == {track.bounds}:
            drops[arc] = replace(drop, cells=tuple(keeps.get(arc, 1.0) for keeps in by_cell[: track.cells]))
    return drops


def unsplit_shares(decisions: WindowDecisions, fates: Mapping[str, Fate]) -> dict[str, float]:
    """By arc above aggregates where groups that fare differently cannot be told apart: the share of windows whose
    tuples go there. What any group needs stays for all, and no two groups lose the same windows, so that is none,
    unless all groups but one are closed."""
    apart = {name: fate.cells for name, fate in fates.items() if fate.cells is not None and _differ(fate.cells)}
    found: dict[str, float] = {}
    for arc in decisions.arcs.early_arcs(fates) if apart else ():
        here = decisions.arcs.deciders(arc) or frozenset()
        cells = {name: apart[name] for name in here if name in apart}
        if cells and column_apart(decisions.graph, arc, cells) is None:
            shares = [share for each in cells.values() for share in each.shares]
            shares += [fates[name].drop_share for name in here if name not in apart]
            still = [share for share in shares if share < 1.0]
            found[arc] = 1.0 if not still else still[0] if len(still) == 1 else 0.0
    return found


def _differ(cells: GroupCells) -> bool:
    """Whether groups lose other windows than others: not where none or all of them go."""
    return set(cells.shares) not in ({0.0}, {1.0})


def _mixed(
    decisions: WindowDecisions, drops: Mapping[str, Window], fates: Mapping[str, Fate], unsplit: Mapping[str, float]
) -> dict[str, Window]:
    """Drops with what passes of all tuples, where groups with names fare differently: above aggregates that of every
    cell, by the share of tuples in it; behind an aggregate what is left of its windows, over what came through above.
    What a named group needs of a tuple also stays for those beside it."""
    named = {name: fate.cells for name, fate in fates.items() if fate.cells is not None and fate.cells.masses}
    if not named:
        return {}
    left: dict[str, float] = {}
    found: dict[str, Window] = {}
    for _, into, _ in decisions.graph.wiring:
        for arc in into:
            above = min((left[each] for each in decisions.graph.arcs_into(arc.tail)), default=1.0) if arc.tail else 1.0
            drop = drops.get(arc)
            if drop is None:
                left[arc] = above
            else:
                left[arc] = min(above, _left_behind(decisions, arc, drop, named, unsplit))
                found[arc] = replace(drop, keep=left[arc] / above if above > 0 else 1.0)
    return found


def _left_behind(
    decisions: WindowDecisions, arc: str, drop: Window, named: Mapping[str, GroupCells], unsplit: Mapping[str, float]
) -> float:
    """The share of all tuples that one window drop would leave by itself."""
    cells = {name: named[name] for name in drop.fates if name in named and arc not in unsplit and _differ(named[name])}
    masses = next(iter(cells.values())).masses if cells else (1.0,)
    left = 0.0
    for cell, mass in enumerate(masses):
        shares = [
            cells[name].shares[cell] if name in cells else named[name].shares[0] if name in named else fate.drop_share
            for name, fate in drop.fates.items()
        ]
        share = unsplit.get(arc, min(shares))
        weight = 1.0 if share == 1.0 or drop.of is not None else decisions.weight(arc)
        left += mass * (1.0 - share * weight)
    return left / sum(masses)
