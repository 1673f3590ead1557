"""Load shedding against admission control as inputs grow faster: % value utility loss (figure 3.12). A simulation.

The runs are those of figure 3.11. The claim: by value loses the least at every rate. The others are not compared with
each other here: they do not know values, and are to be judged by tuple utility (thesis 3.8.2).
"""

from __future__ import annotations

from jettison.experiments.harness import Result, Say
from jettison.experiments.road_map.fig_3_11 import SHEDDERS, best_by, result, swept, together
from jettison.plan.shedders.registry import SEMANTIC


def run(*, quick: bool, say: Say) -> Result:
    found = {
        shedder: {rate: loss.value_percent for rate, loss in losses.items()}
        for shedder, losses in swept(quick, say).items()
    }
    checks = {
        "by value loses the least at every rate": best_by(found, SEMANTIC, SHEDDERS[1:]),
        "all come together at the highest rate": together(found),
    }
    return result("fig-3-12", "value", found, checks)
