"""A run under the controller as a picture: load of machines, accuracies with their minima, throughput, moves."""

from __future__ import annotations

from typing import Any

from jettison.sim.quality.result import QualityResult


def draw(figure: Any, result: QualityResult, title: str) -> None:
    """Draw on a Matplotlib figure; a dashed line marks every move, a grey band the cycles of a warm-up."""
    panels = figure.subplots(3, 1, sharex=True)
    seconds = [cycle.second for cycle in result.cycles]
    for name in result.cycles[0].machine_cpu:
        (line,) = panels[0].plot(seconds, [cycle.machine_cpu[name] for cycle in result.cycles], label=name)
        others = [cycle.others_cpu[name] for cycle in result.cycles]
        if any(others):
            panels[0].plot(seconds, others, ":", color=line.get_color(), label=f"{name}, others")
    for name, least in result.minima.items():
        placed = [
            any(where and at.rsplit(".", 1)[0] == name for at, where in each.where.items()) for each in result.cycles
        ]
        shares = [each.accuracy[name] if there else None for each, there in zip(result.cycles, placed, strict=True)]
        (line,) = panels[1].plot(seconds, shares, label=name)
        panels[1].axhline(least, color=line.get_color(), linestyle=":", linewidth=1)
        panels[2].plot(seconds, [cycle.throughput[name] / 1000 for cycle in result.cycles], label=name)
    arriving = [sum(cycle.arriving.values()) / 1000 for cycle in result.cycles]
    panels[2].plot(seconds, arriving, color="grey", linewidth=1, label="arriving, all sources")
    step = seconds[1] - seconds[0] if len(seconds) > 1 else 0.0
    for axes in panels:
        for cycle in result.cycles:
            if cycle.warming:
                axes.axvspan(cycle.second, cycle.second + step, color="0.92", linewidth=0)
        for second, _ in result.moves:
            axes.axvline(second, color="black", linestyle="--", linewidth=1)
    for second, move in result.moves:
        panels[0].annotate(
            f"{move.instance} to {move.target}", (second, 1.0), xytext=(4, 2), textcoords="offset points", fontsize=8
        )
    for axes, label in zip(panels, ("load (cores)", "accuracy", "thousand tuples/s"), strict=True):
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
        axes.legend(ncols=2, fontsize=8, loc="lower left")
    panels[0].set_ylim(0, 1.2 * max(max(cycle.machine_cpu.values()) for cycle in result.cycles))
    panels[-1].set_xlabel("virtual time (s); dotted: minimum accuracy, grey: warm-up")
    figure.suptitle(title)
