"""How much more shedding by chance loses than by value, as utilities get more skewed (figure 3.13). A simulation.

The claims: the ratio of value utility lost, by chance over by value, is above 1, rises with the skew (the more outputs
hold low values for nearly worthless, the more there is to choose), and falls as inputs grow faster (what is worth a
lot has to go as well).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from jettison.experiments.harness import Result, Say
from jettison.experiments.support.simulated import judged, mean_loss, mixed_queries
from jettison.plan.shedders.registry import RANDOM, SEMANTIC

_RATES, _QUICK_RATES = (1500, 2000, 4000), (1500, 4000)
_SKEWS, _QUICK_SKEWS = (0.0, 0.5, 1.0, 1.5), (0.0, 1.5)

Ratios = Mapping[int, Mapping[float, float]]


def run(*, quick: bool, say: Say) -> Result:
    rates, skews = (_QUICK_RATES, _QUICK_SKEWS) if quick else (_RATES, _SKEWS)
    networks, inputs, queries = (1, 3, 4) if quick else (10, 4, 8)
    table = []
    ratios: dict[int, dict[float, float]] = {rate: {} for rate in rates}
    for skew in skews:
        say(f"simulating skew {skew:g}")
        settings = [mixed_queries(seed, skew, inputs=inputs, queries=queries) for seed in range(networks)]
        for rate in rates:
            chance, value = (
                mean_loss([judged(at, shedder, rate, seed) for seed, at in enumerate(settings)]).value_percent
                for shedder in (RANDOM, SEMANTIC)
            )
            ratios[rate][skew] = chance / value if value > 0 else float("inf")
            table.append(
                {
                    "rows_per_s": rate,
                    "skew": skew,
                    "random_loss_percent": round(chance, 3),
                    "semantic_loss_percent": round(value, 3),
                    "ratio": round(ratios[rate][skew], 4),
                }
            )
    checks = {
        "by chance loses more than by value everywhere": all(r > 1 for at in ratios.values() for r in at.values()),
        "the ratio rises with the skew at every rate": all(
            at[less] < at[more] for at in ratios.values() for less, more in pairwise(skews)
        ),
        "the ratio falls with the rate at every skew": all(
            ratios[faster][skew] < ratios[slower][skew] for slower, faster in pairwise(rates) for skew in skews
        ),
    }
    metrics = {f"ratio_at_{rate}_skew_{skew:g}": round(r, 3) for rate, at in ratios.items() for skew, r in at.items()}
    return Result("fig-3-13", metrics, checks, table, lambda figure: _draw(figure, ratios))


def _draw(figure: Any, ratios: Ratios) -> None:
    axes = figure.subplots()
    for (rate, at), mark in zip(ratios.items(), "osv", strict=False):
        axes.plot(list(at), list(at.values()), marker=mark, label=f"{rate:,} tuples/s at each input")
    axes.axhline(1.0, color="grey", linestyle=":", linewidth=1)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("skew of the first interval's utility (Zipf parameter)")
    axes.set_ylabel("value utility loss, random / semantic")
    axes.set_title(
        "Simulation, thesis figure 3.13: by value gains the more the more utilities are skewed,\n"
        "and the less the faster inputs are (the capacity is 1,000 tuples/s)",
        fontsize=10,
    )
    axes.legend()
