"""Whether the window drops of a plan agree with each other and with the network."""

from __future__ import annotations

from jettison.errors import PlanError
from jettison.network.operators import Aggregate, CountAggregate
from jettison.network.windows.count_windows import CountSpec
from jettison.plan.drops.window import GroupCells, Window
from jettison.plan.plan import Plan
from jettison.plan.windows.decisions import WindowDecisions
from jettison.plan.windows.group_gaps import allowed, named_groups
from jettison.plan.windows.window_arcs import WindowArcs

_TOLERANCE = 1e-6


def check_window_drops(arcs: WindowArcs, plan: Plan) -> None:
    """Raise unless a plan judges the results of every aggregate whose tuples it may drop."""
    fates = plan.fates
    for arc, drop in plan.drops.items():
        if not isinstance(drop, Window):
            continue
        for name, fate in drop.fates.items():
            if fates[name] != fate:
                raise PlanError(f"window drop on {arc!r}: aggregate {name!r} has another fate elsewhere.")
        if drop.of is None and not arcs.is_early(arc, drop.fates):
            raise PlanError(
                f"window drop on {arc!r}: what is below needs more than the windows of {', '.join(drop.fates)}."
            )
    for name, fate in fates.items():
        aggregate = arcs.graph.by_name.get(name)
        if not isinstance(aggregate, Aggregate | CountAggregate) or name not in arcs.fate_arcs:
            raise PlanError(f"window drop: {name!r} is no aggregate whose results can be judged.")
        window = aggregate.window
        slide, unit = (window.slide_rows, "rows") if isinstance(window, CountSpec) else (window.slide_us, "us")
        judged = "rows" if fate.counts_rows else "us"
        if fate.slide_us % slide or judged != unit:
            raise PlanError(
                f"window drop: {name!r} is judged every {fate.slide_us} {judged}, which is no multiple of its "
                f"slide of {slide} {unit}."
            )
        for arc in arcs.fate_arcs[name]:
            judging = plan.drops.get(arc)
            if not isinstance(judging, Window) or judging.of != name:
                raise PlanError(f"window drop: the results of {name!r} are not judged on arc {arc!r}.")


def check_row_schedules(decisions: WindowDecisions, plan: Plan) -> None:
    """Raise unless windows of rows are judged as the network says: those schedules are obeyed as a plan has them.

    All plans of a run have their blocks of windows at the same places. If not, more windows in a row than a gap allows
    could go when the plan changes.
    """
    for name, fate in plan.fates.items():
        if not fate.counts_rows or name not in decisions.by_aggregate:
            continue
        right = decisions.fates({name: fate.drop_share}).get(name)
        if fate.schedule.segments != (() if right is None else right.schedule.segments) or fate.schedule.groups:
            raise PlanError(
                f"the schedule of {name!r}, whose windows count rows, is not that of a share of {fate.drop_share:g}: "
                f"take decisions_of(graph).fates({{{name!r}: {fate.drop_share:g}}})."
            )


def check_named_groups(decisions: WindowDecisions, plan: Plan) -> None:
    """Raise unless groups that `QoS(gaps=...)` names are told apart as declared and lose no more than they may.

    Schedules that are still to be filled in are not judged: who fills them in tells these groups apart.
    """
    if not any(output.qos.gaps for output in decisions.graph.outputs):
        return
    for name, declared in named_groups(decisions.graph).items():
        fate = plan.fates.get(name)
        if fate is None or not fate.schedule.segments or not (fate.drop_share > 0 or _any(fate.cells)):
            continue
        cells = fate.cells
        if cells is None:
            shares = (fate.drop_share,) * len(declared.names)
        elif (cells.kind, cells.column.lower()) != (declared.kind, declared.column.lower()):
            raise PlanError(
                f"aggregate {name!r} has gaps by {declared.column!r} for {', '.join(map(repr, declared.names))}: the "
                f"plan tells apart {', '.join(map(repr, cells.names)) or 'no names'} by {cells.column!r}."
            )
        else:
            shares = cells.shares
        for group, share, gap in zip(declared.names, shares, declared.gaps, strict=False):
            if share > allowed(share, gap) + _TOLERANCE:
                raise PlanError(
                    f"{share:.4f} of the windows of {name!r} go for {declared.column} {group!r}: its gap of {gap} "
                    f"does not allow it."
                )


def _any(cells: GroupCells | None) -> bool:
    return cells is not None and any(share > 0 for share in cells.shares)
