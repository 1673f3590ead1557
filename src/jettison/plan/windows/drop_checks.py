"""Whether the window drops of a plan agree with each other and with the network."""

from __future__ import annotations

from jettison.errors import PlanError
from jettison.network.operators import Aggregate, CountAggregate
from jettison.network.windows.count_windows import CountSpec
from jettison.plan.drops.window import Window
from jettison.plan.plan import Plan
from jettison.plan.windows.window_arcs import WindowArcs


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
