"""`jettison plan`: the road map as a table, and the row that the given rates need."""

import math
from typing import Annotated

import numpy as np
import typer
from rich.table import Table

from jettison.app.arguments import Headroom, Rates, SpecPath
from jettison.app.nodes.plan import plan_nodes
from jettison.app.screen import closed, kept, out, paragraph, percent, plain_table, predicates
from jettison.app.situation import Situation, placed_situation, situation

_MOST_COLUMNS = 3


def plan(
    spec: SpecPath,
    rows_per_s: Rates = None,
    headroom: Headroom = None,
    most: Annotated[int, typer.Option(min=2, help="Show at most this many rows of the road map.")] = 20,
) -> None:
    """Show what would be shed, in which order, and what it costs. Needs no Spark.

    Rates and costs are those of the file's `profile` section. Of a file with `nodes` it shows each node's plan.

    \b
    jettison plan examples/taxi.yaml
    jettison plan examples/taxi.yaml --rows-per-s trips=2000000 --headroom 0.8
    jettison plan examples/pipeline.yaml
    """
    several = placed_situation(spec, rows_per_s or (), headroom)
    if several is not None:
        plan_nodes(several)
        return
    now = situation(spec, rows_per_s or (), headroom)
    arriving = ", ".join(f"{name} {rate:,.0f} rows/s" for name, rate in now.rows_per_s.items())
    paragraph(f"road map of network {now.graph.name}: {len(now.road_map)} rows, for {arriving}")
    out.print(_table(now, chosen_rows(len(now.road_map), most, math.ceil(now.plan.row))))
    paragraph(now.verdict())
    low, high = math.floor(now.plan.row), math.ceil(now.plan.row)
    if low < high:
        paragraph(f"The plan lies between rows {low} and {high}: `jettison explain` shows the shares that it keeps.")
    paragraph("\n".join([*closed(now.plan, now.reason), *predicates(now.plan)]))


def chosen_rows(count: int, most: int, needed: int) -> list[int]:
    """At most `most` of `count` rows, evenly spread: the first, the last, and the needed one in place of its neighbour.

    >>> chosen_rows(101, most=5, needed=60)
    [0, 25, 60, 75, 100]
    >>> chosen_rows(3, most=5, needed=1)
    [0, 1, 2]
    """
    rows = sorted({int(row) for row in np.linspace(0, count - 1, min(most, count)).round()})
    inner = rows[1:-1]
    if needed not in rows and inner:
        rows[1 + min(range(len(inner)), key=lambda place: abs(inner[place] - needed))] = needed
    return rows


def _table(now: Situation, rows: list[int]) -> Table:
    table = plain_table(
        "keeps: the share that the drop on an arc lets through; outputs: the share that is delivered; "
        "utility: the sum over outputs of priority x utility"
    )
    for heading in ("row", "saves\nms/s", "saves\nof load"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("keeps", overflow="fold", min_width=20)
    names = [output.name for output in now.graph.outputs]
    in_columns = len(names) <= _MOST_COLUMNS
    for heading in names if in_columns else ["delivered"]:
        table.add_column(heading, justify="right" if in_columns else "left", overflow="fold")
    table.add_column("utility", justify="right", no_wrap=True)
    for row in rows:
        each = now.road_map.plan(row, now.problem.rows, "")
        drops = "\n".join(f"{arc} {share}" for arc, share in kept(each).items())
        shares = [percent(each.delivered[name]) for name in names]
        delivered = shares if in_columns else ["\n".join(map(" ".join, zip(names, shares, strict=True)))]
        of_load = percent(each.saves_us / now.problem.load_us if now.problem.load_us else 0.0)
        saves = f"{each.saves_us / 1000 / now.trigger_s:,.0f}"
        needed = row == now.needed_row
        mark = f"> {row}" if needed else str(row)
        table.add_row(mark, saves, of_load, drops, *delivered, f"{each.utility:.3f}", style="bold" if needed else "")
    return table
