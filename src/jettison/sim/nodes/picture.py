"""Several nodes over time: load, drops, and what each gives on."""

from __future__ import annotations

from typing import Any

from jettison.sim.nodes.result import NodesResult


def draw(figure: Any, result: NodesResult) -> None:
    """Load before drops, rows dropped and rows given on per batch, a line per node, on a Matplotlib figure."""
    panels = figure.subplots(3, 1, sharex=True)
    for node in result.nodes:
        here = [batch for batch in result.batches if batch.node == node]
        seconds = [batch.started_ms / 1000 for batch in here]
        for axes, values in zip(
            panels,
            ([batch.load for batch in here], [batch.dropped for batch in here], [batch.given for batch in here]),
            strict=True,
        ):
            axes.plot(seconds, values, label=node)
    labels = ("load before drops", "rows dropped", "rows given on,\nto links and outputs")
    for axes, label in zip(panels, labels, strict=True):
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter("{x:,g}")
    panels[0].axhline(1.0, color="grey", linestyle="--", linewidth=1, label="capacity")
    panels[0].legend(ncols=4)
    panels[-1].set_xlabel("virtual time (s); rows are per batch")
    figure.suptitle(f"{result.network}, {len(result.nodes)} nodes, simulated ({result.mode})")
