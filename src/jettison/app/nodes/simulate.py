"""`jettison simulate` for several nodes: what every node does, and what outputs get, coordinated and by themselves."""

from __future__ import annotations

import json as json_
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import typer
from rich.table import Table

from jettison.app.screen import out, paragraph, percent, plain_table
from jettison.network.graph import Graph
from jettison.sim.nodes import MODES, NodesResult, simulate_nodes
from jettison.sim.nodes.engine import NodesSettings
from jettison.sim.nodes.picture import draw
from jettison.statistics.profile import Profile
from jettison.synthetic.rates import Rate


def simulate_several(
    graph: Graph, profile: Profile, rates: Mapping[str, Rate], *, seconds: float, settings: NodesSettings, seed: int
) -> list[NodesResult]:
    """Simulate a placed network: as `settings` say, and every node by itself to compare with."""
    modes = dict.fromkeys([settings.mode, "local"])
    return [
        simulate_nodes(graph, profile, rates, seconds=seconds, settings=replace(settings, mode=mode), seed=seed)
        for mode in modes
    ]


def show_several(found: list[NodesResult], *, json: bool) -> None:
    """Print what was simulated: the first of these as JSON, or all of them as tables."""
    first = found[0]
    if json:
        typer.echo(json_.dumps(first.to_dict()))
        return
    paragraph(f"simulation of {len(first.nodes)} nodes of network {first.network}, {first.seconds:g} s")
    out.print(_nodes_table(first))
    out.print(_outputs_table(found))
    worths = ", ".join(f"{each.mode} {each.worth:.3f}" for each in found)
    paragraph(f"worth delivered in time, per second, of {first.worth_of_all:g}: {worths}")
    paragraph("Simulated at the costs of the file's profile: nothing was run or measured.")


def several_picture(result: NodesResult, folder: Path) -> Path:
    """Write the picture of load, drops and throughput per node."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 7), layout="constrained")
    draw(figure, result)
    path = folder / "simulation.png"
    figure.savefig(path, dpi=110)
    return path


def check_mode(mode: str) -> None:
    """Refuse a mode that is not known."""
    if mode not in MODES:
        raise typer.BadParameter(f"--mode is {mode!r}: use one of {', '.join(MODES)}.")


def _nodes_table(result: NodesResult) -> Table:
    table = plain_table(
        "load before drops; busy: share of the interval that batches took; rows per second; dropped: rows that would "
        "have been given on, had the node dropped nothing"
    )
    table.add_column("node")
    for heading in ("load", "busy", "rows in", "dropped", "given on"):
        table.add_column(heading, justify="right", no_wrap=True)
    for node in result.nodes:
        here = [batch for batch in result.batches if batch.node == node]
        load, busy = (sum(each) / len(here) for each in zip(*((at.load, at.busy) for at in here), strict=True))
        rows = (sum(each) for each in zip(*((at.rows_in, at.dropped, at.given) for at in here), strict=True))
        table.add_row(node, percent(load), percent(busy), *(f"{each / result.seconds:,.0f}" for each in rows))
    return table


def _outputs_table(found: list[NodesResult]) -> Table:
    table = plain_table("share of rows that came in time")
    table.add_column("output")
    for result in found:
        table.add_column(result.mode, justify="right", no_wrap=True)
    for output in found[0].in_time:
        table.add_row(output, *(percent(result.in_time[output]) for result in found))
    return table
