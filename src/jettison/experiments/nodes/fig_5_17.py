"""Figure 5.17: what D-FIT sends: table size over epsilon and load, and deltas after changes (planning)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from jettison.experiments.harness import Result, Say
from jettison.network.declare import Network
from jettison.network.nodes.placement import Node
from jettison.plan.nodes.examples import chains
from jettison.plan.nodes.fit import generate
from jettison.plan.nodes.fragment_structure import NodeView, node_view
from jettison.plan.nodes.structure import structure
from jettison.plan.nodes.tables import Grain, TableNode
from jettison.statistics.profile import Profile

_TOLERANCES = (0.0, 0.05, 0.1, 0.2)
_JUDGED = 0.1
_GRAIN = Grain(0.05)


def _with_selectivity(selectivity: float) -> NodeView:
    """A child with two chain queries of two operators each; the first operator of one of them passes this share."""
    net = Network("selective")
    for query in range(2):
        stream = net.source(f"i{query}", "x int").where("true", name=f"p{query}")
        stream.where("true", name=f"q{query}").output(f"o{query}")
    net.place(Node("B", ["p0", "p1", "q0", "q1"], 1.0))
    costs = {"p0": 32_000.0, "q0": 32_000.0, "p1": 16_000.0, "q1": 16_000.0}
    return node_view(structure(net.graph, Profile(costs, {"p0": selectivity})), "B")


def _with_load(moved: float) -> NodeView:
    """The child of two chains (64, 32), when so many ms of the first query have moved to it from its parent."""
    return node_view(chains((64.0 - moved, 32.0), (64.0 + moved, 32.0), capacity=1000.0), "B")


def entries_sent(before: NodeView, after: NodeView, tolerance: float) -> float:
    """The share of a table's entries that must travel after a change."""
    node = TableNode(before, _GRAIN, tolerance)
    node.send()
    node.changed(after)
    full = len(node.fit)
    message = node.send()
    return 0.0 if message is None else message.entries / full


def run(*, quick: bool, say: Say) -> Result:
    rows: list[dict[str, Any]] = []
    for share in (1.0, 0.75, 0.5):
        for epsilon in (0.02, 0.05, 0.1, 0.2):
            made = chains((64.0 * share, 32.0 * share), capacity=1000.0)
            # the spread of the full load: with less of it more rates fit
            limit = (1000 / 64 * epsilon, 1000 / 32 * epsilon)
            size = len(generate(node_view(made, "A"), _array(limit)))
            rows.append({"part": "size", "x": epsilon, "curve": f"load {share:g}", "value": size})
    say("deltas")
    for tolerance in _TOLERANCES:
        for selectivity in (0.95, 0.9, 0.8, 0.6, 0.4, 0.2):
            sent = entries_sent(_with_selectivity(1.0), _with_selectivity(selectivity), tolerance)
            rows.append({"part": "selectivity", "x": 1 - selectivity, "curve": f"{tolerance:g}", "value": sent})
        for moved in (4.0, 8.0, 16.0, 24.0):
            sent = entries_sent(_with_load(0.0), _with_load(moved), tolerance)
            rows.append({"part": "load", "x": moved, "curve": f"{tolerance:g}", "value": sent})
    judged = {part: _curve(rows, part, f"{_JUDGED:g}") for part in ("selectivity", "load")}
    most = {part: max(values) for part, values in judged.items()}
    metrics = {
        "fewer_than_full": round(max(most.values()), 4),
        "after_selectivity": round(most["selectivity"], 4),
        "after_move": round(most["load"], 4),
        "exact_after_selectivity": round(max(_curve(rows, "selectivity", "0")), 4),
    }
    checks = {
        "fewer entries travel than the table has, at 10 % difference": metrics["fewer_than_full"] < 1,
        "more travel the larger the change of selectivity": _rises(judged["selectivity"]),
        "more travel the more load moves": _rises(judged["load"]),
        "a table is larger the smaller epsilon and the load": _sizes(rows),
    }
    return Result("fig-5-17", metrics, checks, rows, lambda figure: _draw(figure, rows))


def _array(values: tuple[float, ...]) -> Any:
    import numpy as np

    return np.array(values)


def _curve(rows: list[dict[str, Any]], part: str, curve: str) -> list[float]:
    return [row["value"] for row in rows if row["part"] == part and row["curve"] == curve]


def _rises(values: list[float]) -> bool:
    return all(after >= before for before, after in pairwise(values)) and values[-1] > values[0]


def _sizes(rows: list[dict[str, Any]]) -> bool:
    curves = [_curve(rows, "size", f"load {share:g}") for share in (1.0, 0.75, 0.5)]
    falling = all(before > after for curve in curves for before, after in pairwise(curve))
    return falling and all(small > large for large, small in zip(curves[0], curves[2], strict=True))


def _draw(figure: Any, rows: list[dict[str, Any]]) -> None:
    parts = ("size", "selectivity", "load")
    titles = ("entries of a table", "selectivity changes", "load moves to the child")
    labels = ("epsilon", "selectivity falls by", "ms moved")
    for axes, part, title, label in zip(figure.subplots(1, 3), parts, titles, labels, strict=True):
        for curve in dict.fromkeys(row["curve"] for row in rows if row["part"] == part):
            here = [row for row in rows if row["part"] == part and row["curve"] == curve]
            axes.plot([row["x"] for row in here], [row["value"] for row in here], marker="o", label=curve)
        axes.set_title(title)
        axes.set_xlabel(label)
        axes.legend(title="difference" if part != "size" else None)
    figure.axes[0].set_yscale("log")
    figure.axes[0].set_ylabel("entries")
    figure.axes[1].set_ylabel("share of entries that travel")
    figure.suptitle("What D-FIT sends (planning)")
