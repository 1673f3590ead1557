"""`jettison plan` for several nodes: each node's plan, and the load that is left on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from rich.table import Table

from jettison.app.screen import out, paragraph, percent, plain_table
from jettison.control.settings import Settings
from jettison.errors import NetworkError
from jettison.network.graph import Graph
from jettison.network.nodes.boxes import as_boxes
from jettison.plan.nodes.local import plan_locally
from jettison.plan.nodes.plans import NodesPlan, fragment_keeps
from jettison.plan.nodes.program import Program
from jettison.plan.nodes.solver import PerTick
from jettison.plan.nodes.structure import Structure, structure
from jettison.statistics.profile import Profile


@dataclass(frozen=True)
class NodesSituation:
    """A placed network at given rates: the load on every node, and the plan that all of them need together."""

    made: Structure
    usable: Structure
    rates: Mapping[str, float]
    plan: NodesPlan
    headroom: float

    @property
    def graph(self) -> Graph:
        return self.made.graph

    @cached_property
    def before(self) -> dict[str, float]:
        """Load over capacity by node, nothing dropped."""
        load = self.made.load_us @ self.made.rates(self.rates) / self.made.capacity_us
        return dict(zip(self.made.nodes, load.tolist(), strict=True))

    @cached_property
    def left(self) -> dict[str, float]:
        """Load over capacity by node, with the plan."""
        scale = (self.usable.capacity_us / self.made.capacity_us).tolist()
        return {node: self.plan.load[node] * share for node, share in zip(self.made.nodes, scale, strict=True)}

    @cached_property
    def parts(self) -> dict[str, dict[str, float]]:
        """The share that each node's drops keep, by arc of its fragment."""
        return fragment_keeps(self.graph, self.plan.keeps)

    def notes(self) -> dict[str, str]:
        """The load of every node in words."""
        return {
            node: f"load {percent(self.before[node])}, with the plan {percent(self.left[node])}"
            for node in self.made.nodes
        }

    def verdict(self) -> list[str]:
        """How the plan was made, and whether it is enough."""
        lines = [
            f"Headroom {percent(self.headroom)}. Planned by a program for all nodes at these rates: its error is 0."
        ]
        return lines + ([f"cannot keep up: {self.plan.infeasible}"] if self.plan.infeasible else [])


def nodes_situation(graph: Graph, profile: Profile, rates: Mapping[str, float], settings: Settings) -> NodesSituation:
    """Plan for all nodes together, at these rates of the sources."""
    for source in graph.sources:
        if source.name not in rates:
            raise NetworkError(
                f"source {source.name!r} has no rate: add profile.rows_per_s.{source.name}, "
                f"or --rows-per-s {source.name}=1000."
            )
        if rates[source.name] == 0:
            raise NetworkError(
                f"rate of source {source.name!r} is 0: give rows per second above 0, or leave the source out."
            )
    made = structure(graph, profile)
    usable = made.usable(settings.headroom, settings.trigger_ms)
    plan = PerTick(usable, Program(usable, "utility")).plan(rates)
    return NodesSituation(made, usable, rates, plan, settings.headroom)


def plan_nodes(now: NodesSituation) -> None:
    """Print the plan of every node, the load that it leaves, and what outputs get."""
    given = ", ".join(f"{name} {rate:,.0f} rows/s" for name, rate in now.rates.items())
    paragraph(f"plan for {len(now.made.nodes)} nodes of network {now.graph.name}: {given}")
    drops = {node: {arc: f"keep {percent(keep)}" for arc, keep in keeps.items()} for node, keeps in now.parts.items()}
    paragraph(as_boxes(now.graph, node_notes=now.notes(), drops=drops))
    out.print(_nodes_table(now))
    out.print(_outputs_table(now))
    paragraph("\n".join(now.verdict()))


def _nodes_table(now: NodesSituation) -> Table:
    table = plain_table(
        "load: work per second over capacity, before and with the plan; keeps: what each node's drops keep"
    )
    for heading in ("node", "load", "left"):
        table.add_column(heading, justify="left" if heading == "node" else "right", no_wrap=True)
    table.add_column("keeps", overflow="fold")
    for node in now.made.placement.order:
        drops = "\n".join(f"{arc} {percent(keep)}" for arc, keep in now.parts[node].items()) or "everything"
        table.add_row(node, percent(now.before[node]), percent(now.left[node]), drops)
    return table


def _outputs_table(now: NodesSituation) -> Table:
    table = plain_table(
        "by itself: what is delivered when every node scales down what comes to it, by the same headroom"
    )
    table.add_column("output")
    for heading in ("rows/s", "delivered", "utility", "by itself"):
        table.add_column(heading, justify="right", no_wrap=True)
    alone, whole = plan_locally(now.usable, now.rates), now.made.throughput @ now.made.rates(now.rates)
    for output, full in zip(now.graph.outputs, whole, strict=True):
        came = now.plan.delivered[output.name]
        share = min(1.0, came / full) if full > 0 else 1.0
        by_itself = min(1.0, alone.delivered[output.name] / full) if full > 0 else 1.0
        utility = f"{output.qos.utility(share):.3f}"
        table.add_row(output.name, f"{came:,.0f}", percent(share), utility, percent(by_itself))
    return table
