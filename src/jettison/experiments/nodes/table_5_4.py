"""Table 5.4: three feasible input tables with a spread of .2, row by row; and the other numbers of 5.5 (planning)."""

from __future__ import annotations

from typing import Any

import numpy as np

from jettison.experiments.harness import Result, Say
from jettison.plan.nodes.examples import chains, fan_out, two_chains
from jettison.plan.nodes.fit import Fit, generate, merge, rate_limits, rows_as_tuples
from jettison.plan.nodes.fragment_structure import node_view
from jettison.plan.nodes.local_blocks import local_drops

_A = (
    *((0.0, 0.0, 0.0), (0.0, 0.2, 0.2), (0.0, 0.4, 0.4), (0.2, 0.0, 0.2), (0.2, 0.2, 0.4), (0.2, 0.4, 0.6)),
    *((0.4, 0.0, 0.4), (0.4, 0.2, 0.6), (0.6, 0.0, 0.6), (0.6, 0.2, 0.8), (0.8, 0.0, 0.8), (1.0, 0.0, 1.0)),
)
_B = (
    *((0.0, 0.0, 0.0), (0.0, 0.2, 0.2), (0.0, 0.4, 0.4), (0.0, 0.6, 0.6), (0.0, 0.8, 0.8), (0.0, 1.0, 1.0)),
    *((0.2, 0.0, 0.2), (0.2, 0.2, 0.4), (0.2, 0.4, 0.6)),
)
_MERGED = ((0.0, 0.0, 0.0), (0.0, 0.2, 0.2), (0.0, 0.4, 0.4), (0.2, 0.0, 0.2), (0.2, 0.2, 0.4), (0.2, 0.4, 0.6))
PRINTED = {"a": _A, "b": _B, "c": _MERGED}


def tables() -> dict[str, Fit]:
    """The local tables of A and B, and that of A for both."""
    spread = np.array([0.2, 0.2])
    both = two_chains((1.0, 2.0), (3.0, 1.0))
    below = generate(node_view(both, "B"), spread)
    alone = generate(node_view(chains((1.0, 2.0)), "A"), spread)
    return {"a": alone, "b": below, "c": merge(node_view(both, "A"), {"B": below})}


def run(*, quick: bool, say: Say) -> Result:
    rows: list[dict[str, Any]] = []
    for name, fit in tables().items():
        found, printed = rows_as_tuples(fit), PRINTED[name]
        for at in range(max(len(found), len(printed))):
            ours = found[at] if at < len(found) else None
            theirs = printed[at] if at < len(printed) else None
            rows.append({"table": name, "row": at, "printed": theirs, "found": ours, "equal": ours == theirs})
    equal = sum(row["equal"] for row in rows)
    view = node_view(fan_out(1.0, [2.0, 5.0]), "A")
    limit = float(rate_limits(view, local_drops(view.own, view.worth))[0])
    local = generate(view, np.array([0.1]))
    at = int(np.argmin(np.abs(local.rates[:, 0] - 0.2)))
    dropped = 1 - float(local.passing[at, 2] / local.passing[at, 0])
    fine = generate(node_view(two_chains((1.0, 2.0), (3.0, 1.0)), "B"), np.array([0.03, 0.1]))
    metrics = {
        "rows_equal": equal,
        "local_limit": round(limit, 6),
        "local_score": round(float(local.score[at]), 6),
        "local_dropped": round(dropped, 6),
        "entries_at_10_percent": len(fine),
    }
    checks = {
        "27 rows are as printed, and there is no other": equal == len(rows) == 27,
        "5.5.2: the limit is 1/3": abs(limit - 1 / 3) < 1e-9,
        "5.5.2: at .2 the score is .28 with 60 % of the lower branch dropped": abs(metrics["local_score"] - 0.28) < 1e-6
        and abs(dropped - 0.6) < 1e-6,
        "5.5.2: 68 entries at spreads .03 and .1, the best gives 1": len(fine) == 68 and float(fine.score.max()) == 1.0,
    }
    return Result("table-5-4", metrics, checks, rows, _draw)


def _draw(figure: Any) -> None:
    left, middle, right = figure.subplots(1, 3, sharex=True, sharey=True)
    for axes, (name, fit) in zip((left, middle, right), tables().items(), strict=True):
        drawn = axes.scatter(*fit.rates.T, c=fit.score, s=120, vmin=0, vmax=1)
        axes.set_title(f"({name}) {len(fit)} rows")
        axes.set_xlabel("rate of input 1")
    left.set_ylabel("rate of input 2")
    figure.colorbar(drawn, ax=right, label="throughput")
    figure.suptitle("Feasible input tables of node A, node B, and both (planning)")
