"""One scenario in the simulator and on Spark: the same loop, the same costs, the same rates must shed alike.

Half the capacity, then twice, then half again. Spark's costs are measured first, and both loops begin with them. The
simulated machine costs what Spark had learned by the end of the burst, at the pace at which Spark's batches really
went: a shared machine is not as fast in one minute as in the next, which is a part of the scenario and not of the loop.
Compared are the shares that each output gets, and what is kept second by second.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jettison.experiments.harness import Result, Say
from jettison.experiments.support.capacity import Capacity, measure_capacity, parquet_sinks
from jettison.experiments.support.waiting import first_batch
from jettison.experiments.support.workload import taxi_network
from jettison.network.graph import Graph
from jettison.options.costs import Costs
from jettison.options.shedding import Shedding
from jettison.plan.certify import planned_load_us
from jettison.plan.plan import Plan
from jettison.plan.problem import Problem
from jettison.sim import simulate
from jettison.spark.read.generator import generate
from jettison.spark.run.run import Run
from jettison.spark.run.session import local_session
from jettison.spark.run.start import start
from jettison.statistics.profile import Profile
from jettison.synthetic.fields import TAXI_PAYLOAD
from jettison.synthetic.rates import Burst, Rate

_HEADROOM = 0.9
_MOST_GAP = 0.05
_LEAST_AGREE = 0.85


def run(*, quick: bool, say: Say, capacity: Capacity | None = None) -> Result:
    """Compare; `capacity` may be given to save the time of measuring it."""
    seconds = 8.0 if quick else 90.0
    spark = local_session()
    network = taxi_network(valued=True)
    capacity = capacity or measure_capacity(spark, network, say, batches=6 if quick else 12)
    rate = Burst(0.5 * capacity.rows_per_s, 2 * capacity.rows_per_s, at_s=seconds / 3, length_s=seconds / 3)
    say(f"{seconds:.0f} s on Spark")
    real, costs = _on_spark(spark, capacity, rate, seconds)
    say("the same, simulated")
    graph = network.graph
    pace = _pace(graph, costs, real, capacity.trigger_ms)
    simulated = simulate(
        graph,
        capacity.profile,
        {"trips": rate},
        trigger_ms=capacity.trigger_ms,
        headroom=_HEADROOM,
        seconds=seconds,
        truth=costs,
        pace=pace,
        seed=1,
        noise_share=0.05,
    )
    shares = {
        output.name: (
            real.report().outputs[output.name].delivered_share,
            simulated.outputs[output.name].delivered_share,
        )
        for output in graph.outputs
    }
    first_ms = real.history[0][0].started_ms
    kept = {
        "Spark": [(sample.started_ms - first_ms, _kept(plan)) for sample, plan in real.history],
        "simulator": [(batch.started_ms, _kept(batch.plan)) for batch in simulated.batches],
    }
    metrics, checks = _compared(shares, kept, capacity.trigger_ms, seconds)
    metrics["pace_in_burst"] = round(_median_pace(pace, seconds / 3, 2 * seconds / 3), 3)
    metrics["pace_before"] = round(_median_pace(pace, 0.0, seconds / 3), 3)
    rows = [
        {"output": name, "spark": round(one, 4), "simulator": round(other, 4)} for name, (one, other) in shares.items()
    ]
    return Result("parity", metrics, checks, rows, lambda figure: _draw(figure, kept, shares, seconds))


def _compared(
    shares: Mapping[str, tuple[float, float]],
    kept: Mapping[str, Sequence[tuple[float, float]]],
    trigger_ms: float,
    seconds: float,
) -> tuple[dict[str, float], dict[str, bool]]:
    """Metrics and checks: how far shares delivered differ, and whether both shed at the same moments."""
    gap = max(abs(one - other) for one, other in shares.values())
    # Spark's first batch begins with its first rows, the simulator's at the first trigger
    moments = np.arange(0.0, 1000 * seconds - 2 * trigger_ms, trigger_ms / 4)
    spark_kept, sim_kept = (_at(steps, moments + steps[0][0]) for steps in kept.values())
    agree = float(np.mean((spark_kept < 1.0) == (sim_kept < 1.0)))
    metrics = {
        "max_share_gap": round(gap, 4),
        "plans_agree_share": round(agree, 3),
        "kept_gap_mean": round(float(np.mean(np.abs(spark_kept - sim_kept))), 4),
    }
    checks = {
        f"delivered shares differ by at most {_MOST_GAP}": gap <= _MOST_GAP,
        f"both shed, or neither does, at least {_LEAST_AGREE:.0%} of the time": agree >= _LEAST_AGREE,
        "both shed in the burst and nothing before it": all(
            min(share for _, share in steps) < 1.0
            and all(share == 1.0 for moment, share in steps if moment < 1000 * (seconds / 3) - trigger_ms)
            for steps in kept.values()
        ),
    }
    return metrics, checks


def _pace(graph: Graph, costs: Profile, run: Run, trigger_ms: float) -> list[tuple[float, float]]:
    """How many times as long as these costs say Spark's batches took, batch by batch: the median of five around it."""
    history = [(sample, plan) for sample, plan in run.history if sample.rows_in["trips"] > 0]
    ratios = [
        1000 * sample.duration_ms / planned_load_us(Problem(graph, costs, sample.rows_in, 0.0), plan)
        for sample, plan in history
    ]
    first_ms = history[0][0].started_ms - trigger_ms  # the simulator's first batch begins after one trigger
    return [
        ((sample.started_ms - first_ms) / 1000, float(np.median(ratios[max(0, index - 2) : index + 3])))
        for index, (sample, _) in enumerate(history)
    ]


def _median_pace(pace: Sequence[tuple[float, float]], from_s: float, to_s: float) -> float:
    """Where this differs in the burst from before it, costs are wrong: drops save less, or more, than they say."""
    return float(np.median([factor for second, factor in pace if from_s <= second < to_s] or [1.0]))


def _kept(plan: Plan) -> float:
    """The share of trips that a plan lets in."""
    return plan.keep("trips")


def _at(steps: Sequence[tuple[float, float]], moments: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """What was in force at each moment."""
    began, shares = zip(*steps, strict=True)
    return np.array(shares)[np.clip(np.searchsorted(began, moments, side="right") - 1, 0, len(shares) - 1)]


def _draw(
    figure: Any,
    kept: Mapping[str, Sequence[tuple[float, float]]],
    shares: Mapping[str, tuple[float, float]],
    seconds: float,
) -> None:
    left, right = figure.subplots(1, 2, width_ratios=[2, 1])
    for label, steps in kept.items():
        began = [(moment - steps[0][0]) / 1000 for moment, _ in steps]
        left.step(began, [100 * share for _, share in steps], where="post", label=label)
    left.axvspan(seconds / 3, 2 * seconds / 3, color="grey", alpha=0.15, label="2 x capacity")
    left.set_xlabel("time (s)")
    left.set_ylabel("trips that the plan lets in (%)")
    left.set_ylim(0, 105)
    left.legend()
    places = np.arange(len(shares))
    for offset, (label, index) in zip((-0.2, 0.2), (("Spark", 0), ("simulator", 1)), strict=True):
        right.bar(places + offset, [100 * pair[index] for pair in shares.values()], width=0.4, label=label)
    right.set_xticks(places, list(shares))
    right.set_ylabel("delivered over the run (%)")
    right.legend()
    figure.suptitle("The same loop on Spark and in the simulator sheds alike")


def _on_spark(spark: Any, capacity: Capacity, rate: Rate, seconds: float) -> tuple[Run, Profile]:
    """The run, and what it had learned of costs by the end of the burst."""
    network = taxi_network(valued=True)
    with tempfile.TemporaryDirectory(prefix="jettison-parity-") as name:
        running = start(
            network,
            {"trips": generate(spark, TAXI_PAYLOAD, rate=rate)},
            parquet_sinks(network, Path(name)),
            trigger=capacity.trigger,
            shedding=Shedding(headroom=_HEADROOM),
            checkpoint=f"{name}/checkpoint",
            costs=Costs(capacity.profile, shared=capacity.shared),
        )
        running.await_termination(timeout=2 * seconds / 3)
        costs = running.controller.profile
        running.await_termination(timeout=seconds / 3)
        first_batch(running)
        running.stop()
    return running, costs
