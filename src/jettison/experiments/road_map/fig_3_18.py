"""The battalion on Spark: value utility lost by three algorithms as load rises past capacity (thesis 3.9, fig. 3.18).

Every batch brings `1 + excess` times the rows that fit into its budget, while the enemy's units move across the line.
What each output got is summed from the delivered rows themselves, and compared with the same sum, nothing shed.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jettison.experiments.harness import Result, Say
from jettison.experiments.road_map.battalion import battalion_network
from jettison.experiments.support.capacity import wait_for
from jettison.network.graph import Graph
from jettison.network.value import Value
from jettison.options.costs import Costs
from jettison.options.shedding import Shedding
from jettison.plan.plan import Plan
from jettison.plan.problem import Problem
from jettison.spark.compile.compiler import Compiler
from jettison.spark.read.generator import generate, generated
from jettison.spark.run.run import Run
from jettison.spark.run.session import local_session
from jettison.spark.run.start import start
from jettison.statistics.profile import Profile
from jettison.synthetic.fields import Field
from jettison.synthetic.presets import FRIENDLY_UNITS, enemy_units

SHEDDERS = {"semantic": "semantic", "random": "random", "admission control": "input-uniform"}

_HEADROOM = 0.9
_ASSUMED = Profile(
    {
        **{"friendly": 1.0, "enemy": 1.0, "reports": 1.0, "signed": 30.0, "enemy_tanks": 1.0, "tank_tracks": 20.0},
        **{"enemy_aircraft": 1.0, "aircraft_tracks": 20.0, "crossed": 1.0},
    },
    {"enemy_tanks": 0.2, "enemy_aircraft": 0.1, "crossed": 0.15},
    fixed_ms=100.0,
)
"""Costs for a quick run, far above any machine's, so that few rows are an overload."""
_TOLERANCE = 0.01


def run(*, quick: bool, say: Say) -> Result:
    excesses = (1.0,) if quick else (0.25, 0.5, 1.0, 2.0)
    batches, rounds, trigger_ms = (2, 1, 1000.0) if quick else (5, 1, 3000.0)
    spark = local_session()
    graph = battalion_network().graph
    profile, shared = _ASSUMED, frozenset({"reports"})
    if not quick:
        say("measuring what the network costs")
        profile, shared = _costs(spark, graph, batches=12)
    fitting = _rows_that_fit(graph, profile, 1000 * _HEADROOM * trigger_ms)
    rows: list[dict[str, Any]] = []
    for number in range(rounds):
        for excess in excesses:
            per_batch = int((1 + excess) * fitting / 2)
            fields = _fields(per_batch, batches)
            whole = _whole(spark, graph, fields, per_batch * batches)
            for label, shedder in SHEDDERS.items():
                say(f"round {number + 1}, excess load {excess:.0%}: {label}")
                got, seen = _shed(spark, graph, fields, per_batch, batches, shedder, profile, shared, trigger_ms)
                loss = {name: 1 - got[name] / whole[name] for name in whole}
                late = statistics.median(sample.duration_ms for sample, _ in list(seen.history)[1:])
                rows.append(
                    {
                        "round": number,
                        "excess": excess,
                        "algorithm": label,
                        "loss": round(_mean(graph, loss), 4),
                        **{name: round(each, 4) for name, each in loss.items()},
                        "batch_ms": round(late),
                    }
                )
    lines = {label: [_average(rows, label, excess) for excess in excesses] for label in SHEDDERS}
    semantic, random, admission = lines.values()
    gaps = [most - least for most, least in zip(admission, semantic, strict=True)]
    metrics = {
        f"{label.replace(' ', '_')}_{excess:g}": round(loss, 4)
        for label, losses in lines.items()
        for excess, loss in zip(excesses, losses, strict=True)
    }
    checks = {
        "semantic loses least at every load": all(
            s <= r + _TOLERANCE and s <= a + _TOLERANCE for s, r, a in zip(semantic, random, admission, strict=True)
        ),
        "admission control loses most at every load": all(
            a >= r - _TOLERANCE for r, a in zip(random, admission, strict=True)
        ),
    }
    if not quick:
        checks["they converge at very high load"] = gaps[-1] < max(gaps)
    return Result("fig-3-18", metrics, checks, rows, lambda figure: _draw(figure, excesses, lines))


def utility_sql(value: Value) -> str:
    """The utility of a row, in SQL.

    >>> utility_sql(Value("x", [(0, 50, 0.2), (50, 100, 1.0)], otherwise=0.1))
    'CASE WHEN x >= 0.0 AND x < 50.0 THEN 0.2D WHEN x >= 50.0 AND x <= 100.0 THEN 1.0D ELSE 0.1D END'
    """
    last = value.pieces[-1].high
    cases = " ".join(
        f"WHEN {value.column} >= {low} AND {value.column} {'<=' if high == last else '<'} {high} THEN {utility}D"
        for low, high, utility in value.pieces
    )
    return f"CASE {cases} ELSE {float(value.otherwise)}D END"


def _fields(per_batch: int, batches: int) -> dict[str, Mapping[str, Field]]:
    """Reports of both sides; the attack begins after a fifth of the rows and goes on to the end."""
    rows = per_batch * batches
    return {"friendly": FRIENDLY_UNITS, "enemy": enemy_units(rows // 5, max(1, rows * 3 // 5))}


def _costs(spark: Any, graph: Graph, batches: int, rows: int = 60_000) -> tuple[Profile, frozenset[str]]:
    """Costs as calibrated and refined on some batches, nothing shed."""
    fields = _fields(rows, batches)
    with tempfile.TemporaryDirectory(prefix="jettison-battalion-") as folder:
        streams = {
            name: generate(spark, each, rows_per_batch=rows, limit_rows=rows * batches) for name, each in fields.items()
        }
        sinks = {output.name: _Summing(output.name, {}, output.qos.value) for output in graph.outputs}
        running = start(
            graph, streams, sinks, trigger="1 millisecond", shedding=False, checkpoint=f"{folder}/checkpoint"
        )
        wait_for(running, batches)
        return running.controller.profile, running.shared


def _rows_that_fit(graph: Graph, profile: Profile, budget_us: float) -> float:
    """Rows of both sources together, half of each, whose work is just the budget."""
    thousand = Problem(graph, profile, {source.name: 500.0 for source in graph.sources}, budget_us)
    fixed_us = 1000 * profile.fixed_ms
    return max(1000.0, 1000 * (budget_us - fixed_us) / (thousand.load_us - fixed_us))


class _Summing:
    """A sink that adds up what the delivered rows are worth. All columns are computed, as any sink would."""

    def __init__(self, output: str, sums: dict[tuple[str, int], float], value: Value | None) -> None:
        self._output = output
        self._sums = sums
        self._worth = "1D" if value is None else utility_sql(value)

    def __call__(self, frame: Any, batch: int) -> None:
        row = frame.selectExpr(f"sum({self._worth}) AS worth", "bit_xor(xxhash64(*)) AS all_columns").first()
        self._sums[self._output, batch] = 0.0 if row is None or row.worth is None else float(row.worth)


def _whole(spark: Any, graph: Graph, fields: Mapping[str, Mapping[str, Field]], rows: int) -> dict[str, float]:
    """What each output would be worth, nothing shed."""
    raw = {name: generated(spark, each, 0, rows, start_us=0) for name, each in fields.items()}
    compiler = Compiler(graph, raw, Plan(), {})
    worth = {}
    for output in graph.outputs:
        assert output.qos.value is not None
        row = compiler.output(output.name, count=False).selectExpr(f"sum({utility_sql(output.qos.value)}) AS w").first()
        worth[output.name] = 0.0 if row is None else float(row.w)
    return worth


def _shed(
    spark: Any,
    graph: Graph,
    fields: Mapping[str, Mapping[str, Field]],
    per_batch: int,
    batches: int,
    shedder: str,
    profile: Profile,
    shared: frozenset[str],
    trigger_ms: float,
) -> tuple[dict[str, float], Run]:
    """What each output got, and the run."""
    sums: dict[tuple[str, int], float] = {}
    sinks = {output.name: _Summing(output.name, sums, output.qos.value) for output in graph.outputs}
    streams = {
        name: generate(spark, each, rows_per_batch=per_batch, limit_rows=per_batch * batches)
        for name, each in fields.items()
    }
    with tempfile.TemporaryDirectory(prefix="jettison-battalion-") as folder:
        running = start(
            graph,
            streams,
            sinks,
            trigger=f"{trigger_ms:.0f} milliseconds",
            shedding=Shedding(shedder=shedder, headroom=_HEADROOM),
            checkpoint=str(Path(folder) / "checkpoint"),
            # all three are asked the same question, whatever the machine does meanwhile
            costs=Costs(profile, learn=False, shared=shared),
        )
        wait_for(running, batches)
    got = {output.name: 0.0 for output in graph.outputs}
    for (output, _), worth in sums.items():
        got[output] += worth
    return got, running


def _mean(graph: Graph, loss: Mapping[str, float]) -> float:
    """Loss over all outputs, by priority."""
    weights = {output.name: output.qos.priority for output in graph.outputs}
    return sum(weights[name] * each for name, each in loss.items()) / sum(weights.values())


def _average(rows: list[dict[str, Any]], label: str, excess: float) -> float:
    losses = [row["loss"] for row in rows if row["algorithm"] == label and row["excess"] == excess]
    return float(statistics.mean(losses))


def _draw(figure: Any, excesses: tuple[float, ...], lines: Mapping[str, list[float]]) -> None:
    axes = figure.subplots()
    for (label, losses), marker in zip(lines.items(), "os^", strict=True):
        axes.plot([100 * excess for excess in excesses], [100 * loss for loss in losses], marker=marker, label=label)
    axes.set_xlabel("excess load (% of capacity)")
    axes.set_ylabel("value utility lost (%)")
    axes.set_ylim(0, 100)
    axes.set_title(
        "Battalion monitoring on Spark (thesis fig. 3.18)\nclaim: semantic loses least, admission control most; all "
        "converge at very high load",
        fontsize=11,
    )
    axes.legend()
