"""Load shedding against admission control as inputs grow faster: % tuple utility loss (figure 3.11). A simulation.

The claims: shedding by QoS loses less than every way of admission control at every rate, by value less than by chance
(tuples that a filter removes anyway are dropped for nothing), and at very high rates all come to the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from jettison.experiments.harness import Result, Say
from jettison.experiments.support.simulated import CAPACITY, Loss, judged, mean_loss, mixed_queries
from jettison.plan.shedders.admission import ADMISSION
from jettison.plan.shedders.registry import RANDOM, SEMANTIC

SHEDDERS = (SEMANTIC, RANDOM, *ADMISSION)

_NOISE_PERCENT = 0.5
_RATES = (1100, 1250, 1500, 2000, 4000, 10_000, 30_000)
_QUICK_RATES = (1250, 2500, 30_000)

Curves = Mapping[str, Mapping[int, float]]


def run(*, quick: bool, say: Say) -> Result:
    found = {
        shedder: {rate: loss.tuple_percent for rate, loss in losses.items()}
        for shedder, losses in swept(quick, say).items()
    }
    checks = {
        "by value loses no more than by chance at any rate": best_by(found, SEMANTIC, (RANDOM,)),
        "by chance loses no more than admission control at any rate": best_by(found, RANDOM, tuple(ADMISSION)),
        "all come together at the highest rate": together(found),
    }
    return result("fig-3-11", "tuple", found, checks)


def swept(quick: bool, say: Say) -> Mapping[str, Mapping[int, Loss]]:
    """Losses by shedder and rate, over several networks with even utilities (skew 0)."""
    say("simulating six shedders")
    return _swept(_QUICK_RATES, 1, inputs=3, queries=4) if quick else _swept(_RATES, 10, inputs=4, queries=8)


@cache
def _swept(rates: Sequence[int], networks: int, *, inputs: int, queries: int) -> Mapping[str, Mapping[int, Loss]]:
    settings = [mixed_queries(seed, 0.0, inputs=inputs, queries=queries) for seed in range(networks)]
    return {
        shedder: {
            rate: mean_loss([judged(at, shedder, rate, seed) for seed, at in enumerate(settings)]) for rate in rates
        }
        for shedder in SHEDDERS
    }


def best_by(found: Curves, shedder: str, others: Sequence[str]) -> bool:
    """Whether a shedder loses no more than any of the others at any rate, noise apart."""
    return _least_gain(found, shedder, others) >= -_NOISE_PERCENT


def _least_gain(found: Curves, shedder: str, others: Sequence[str]) -> float:
    """By how many percentage points a shedder loses less than the best of the others, where that is the least."""
    return min(found[other][rate] - loss for other in others for rate, loss in found[shedder].items())


def spreads(found: Curves) -> dict[int, float]:
    """Percentage points between the best and the worst at every rate."""
    rates = found[SEMANTIC]
    return {rate: max(c[rate] for c in found.values()) - min(c[rate] for c in found.values()) for rate in rates}


def together(found: Curves) -> bool:
    """Whether the best and the worst are nearer at the highest rate than where they are the farthest apart."""
    apart = spreads(found)
    return apart[max(apart)] < max(apart.values())


def result(name: str, kind: str, found: Curves, checks: Mapping[str, bool]) -> Result:
    """The table, the picture and the metrics of one kind of utility."""
    rates = list(found[SEMANTIC])
    apart = spreads(found)
    metrics = {f"mean_loss_percent_{name}": round(sum(curve.values()) / len(curve), 2) for name, curve in found.items()}
    metrics |= {
        "least_gain_by_value_percent": round(_least_gain(found, SEMANTIC, (RANDOM,)), 2),
        "least_gain_by_chance_percent": round(_least_gain(found, RANDOM, tuple(ADMISSION)), 2),
        "widest_spread_percent": round(max(apart.values()), 2),
        "last_spread_percent": round(apart[rates[-1]], 2),
    }
    table = [{"rows_per_s": rate, **{name: round(curve[rate], 3) for name, curve in found.items()}} for rate in rates]
    return Result(name, metrics, checks, table, lambda figure: _draw(figure, kind, found))


def _draw(figure: Any, kind: str, found: Curves) -> None:
    axes = figure.subplots()
    for (name, curve), mark in zip(found.items(), "osv^Dx", strict=True):
        by_qos = name in (SEMANTIC, RANDOM)
        axes.plot(list(curve), list(curve.values()), marker=mark, label=name, linestyle="-" if by_qos else "--")
    axes.set_xscale("log")
    ticks = list(found[SEMANTIC])
    axes.set_xticks(ticks, [f"{tick / CAPACITY:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel(f"mean rate of each input (times {CAPACITY:,.0f} tuples/s, the capacity)")
    axes.set_ylabel(f"{kind} utility loss (%)")
    axes.set_ylim(0, 100)
    claim = {
        "tuple": "shedding by QoS loses less than admission control, by value less than by chance",
        "value": "by value loses the least",
    }[kind]
    axes.set_title(f"Simulation, thesis figure 3.1{1 if kind == 'tuple' else 2}: {claim}", fontsize=10)
    axes.legend()
