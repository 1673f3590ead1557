"""`jettison explain` for several nodes: what each operator costs its node, and what the plan keeps where."""

from __future__ import annotations

import typer
from rich.table import Table

from jettison.app.nodes.plan import NodesSituation
from jettison.app.screen import depth_first, number, out, paragraph, percent, plain_table
from jettison.network.arc import Arc
from jettison.network.nodes.fragments import Fragment
from jettison.network.render import as_mermaid
from jettison.plan.nodes.fragment_structure import fragment_profile
from jettison.statistics.load import flows


def explain_nodes(now: NodesSituation, *, mermaid: bool) -> None:
    """Print operators node by node with their costs and rates, or all of it as a flow chart."""
    if mermaid:
        drops = {arc: f"keep {percent(keep)}" for arc, keep in now.plan.keeps.items()}
        profile = now.made.profile
        costs = {
            name: f"cost {number(profile.cost(name))} us, passes {percent(profile.passes(name))}"
            for name in now.graph.by_name
        }
        typer.echo(f"%% {' '.join(now.verdict())}")
        typer.echo(as_mermaid(now.graph, costs | now.notes(), drops))
        return
    paragraph(f"network {now.graph.name}, {len(now.made.nodes)} nodes")
    out.print(_table(now))
    paragraph("\n".join(now.verdict()))
    for node, load in now.before.items():
        paragraph(f"node {node}: load {percent(load)} of its capacity, {percent(now.left[node])} with the plan")


def _table(now: NodesSituation) -> Table:
    table = plain_table(
        caption="cost: work per row here; passes: rows out per row in; rows/s, nothing dropped; of capacity: of its "
        "node; drop: what the plan keeps of the rows that come here"
    )
    table.add_column("operator", overflow="fold")
    for heading in ("cost\nus/row", "passes", "rows/s", "of\ncapacity", "drop\nkeeps"):
        table.add_column(heading, justify="right", no_wrap=True)
    for node in now.made.placement.order:
        part = now.graph.fragment(node)
        profile = fragment_profile(part, now.made.profile)
        rates = flows(part.graph, profile, _coming(now, part))
        table.add_section()
        table.add_row(f"node {node}, capacity {part.node.capacity:g}", "", "", "", percent(now.before[node]), "")
        for depth, name, arc, is_first in depth_first(part.graph):
            link = part.reads.get(name) or part.sends.get(name)
            where = "" if link is None else f" (from {link.tail})" if name in part.reads else f" (link to {link.head})"
            cost_us = profile.cost(name) + profile.read_us.get(name, 0.0)
            of_capacity = percent(rates[arc] * cost_us / part.node.capacity_us)
            drop = percent(now.parts[node][arc]) if arc in now.parts[node] else ""
            here = (number(cost_us), percent(profile.passes(name))) if is_first else ("", "")
            shown = f"{'  ' * (depth + 1)}{name}{where}{'' if is_first else ' (see above)'}"
            table.add_row(shown, *here, f"{rates[arc]:,.0f}", of_capacity, drop)
    return table


def _coming(now: NodesSituation, part: Fragment) -> dict[str, float]:
    """Rows per second at the inputs of a fragment, nothing dropped."""
    whole = flows(now.graph, now.made.profile, now.rates)
    sent = {Arc(arc).origin: rate for arc, rate in whole.items() if not Arc(arc).is_input}
    links = {name: sent[link.operator] for name, link in part.reads.items()}
    return {**{name: rate for name, rate in now.rates.items() if name in part.graph.by_name}, **links}
