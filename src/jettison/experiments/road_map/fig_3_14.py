"""Twenty queries behind one shared operator: dropping at the input against dropping at the split (figure 3.14).

A simulation. The claims: the ratio of tuple utility lost, input-uniform over random, is above 1, rises with the skew
(the road map takes from the outputs that tolerate loss), and falls as load becomes extreme (drops behind the shared
operator cannot save its work, so plans come to drop at the input as well).

All loss graphs bend where three quarters are lost. At 300 % excess load, which is just that, taking the same from all
is best, so that the ratio is 1 and can be no more. Nothing is left to chance: what passes a drop is what is expected.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from jettison.experiments.harness import Result, Say
from jettison.experiments.support.simulated import CAPACITY, judged_by_tuples, shared_queries
from jettison.plan.shedders.registry import RANDOM

_INPUT_UNIFORM = "input-uniform"
_EXCESS_PERCENT, _QUICK_EXCESS_PERCENT = (10, 25, 50, 100, 200, 300, 400, 900), (25, 400)
_SKEWS = (0.0, 0.5, 1.0)
_SAME = 1e-6

Ratios = Mapping[float, Mapping[int, float]]


def run(*, quick: bool, say: Say) -> Result:
    excesses = _QUICK_EXCESS_PERCENT if quick else _EXCESS_PERCENT
    networks = 2 if quick else 12
    table = []
    ratios: dict[float, dict[int, float]] = {skew: {} for skew in _SKEWS}
    for skew in _SKEWS:
        say(f"simulating skew {skew:g}")
        settings = [shared_queries(seed, skew) for seed in range(networks)]
        for excess in excesses:
            rate = CAPACITY * (1 + excess / 100)
            at_input, at_split = (
                float(np.mean([judged_by_tuples(at, shedder, rate) for at in settings]))
                for shedder in (_INPUT_UNIFORM, RANDOM)
            )
            ratios[skew][excess] = _ratio(at_input, at_split)
            table.append(
                {
                    "skew": skew,
                    "excess_percent": excess,
                    "input_uniform_loss_percent": round(at_input, 3),
                    "random_loss_percent": round(at_split, 3),
                    "ratio": round(ratios[skew][excess], 4),
                }
            )
    averages = [sum(at.values()) / len(at) for at in ratios.values()]
    checks = {
        "the input loses no less than the split anywhere": all(
            ratio >= 1 - _SAME for at in ratios.values() for ratio in at.values()
        ),
        "the ratio rises with the skew": averages == sorted(averages) and averages[0] < averages[-1],
        "the ratio falls from the least excess load to the most": all(
            at[excesses[-1]] < at[excesses[0]] for at in ratios.values()
        ),
    }
    metrics = {
        f"ratio_at_{excess}_skew_{skew:g}": round(r, 3) for skew, at in ratios.items() for excess, r in at.items()
    }
    metrics["least_ratio"] = round(min(r for at in ratios.values() for r in at.values()), 4)
    return Result("fig-3-14", metrics, checks, table, lambda figure: _draw(figure, ratios))


def _ratio(at_input: float, at_split: float) -> float:
    """1 where both lose nothing."""
    if at_split > _SAME:
        return at_input / at_split
    return 1.0 if at_input <= _SAME else float("inf")


def _draw(figure: Any, ratios: Ratios) -> None:
    axes = figure.subplots()
    width = 0.8 / len(ratios)
    for number, (skew, at) in enumerate(ratios.items()):
        places = [place + (number - (len(ratios) - 1) / 2) * width for place in range(len(at))]
        axes.bar(places, list(at.values()), width, label=f"skew {skew:g}")
    excesses = list(next(iter(ratios.values())))
    axes.set_xticks(range(len(excesses)), [str(excess) for excess in excesses])
    axes.axhline(1.0, color="grey", linestyle=":", linewidth=1)
    axes.set_xlabel("excess load (% of capacity)")
    axes.set_ylabel("tuple utility loss, input-uniform / random")
    axes.set_title(
        "Simulation, thesis figure 3.14: 20 queries behind one operator; the split gains the more the more\n"
        "utilities are skewed, and little at extreme load",
        fontsize=10,
    )
    axes.legend()
