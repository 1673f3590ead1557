"""Batches of a run as rows of a table and as a picture over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jettison.spark.run.run import Run
from jettison.statistics.latency import LatencyHistogram
from jettison.statistics.samples import BatchSample


def table(run: Run, label: str) -> list[dict[str, Any]]:
    """One row per batch: when, how many rows, how long, how stale, how much was kept."""
    if not run.history:
        return []
    first_ms = run.history[0][0].started_ms
    rows = []
    for sample, plan in run.history:
        stale = [seen.latency_ms[6] for seen in sample.outputs.values() if seen.latency_ms is not None]
        rows.append(
            {
                "run": label,
                "batch": sample.batch,
                "second": round((sample.started_ms - first_ms) / 1000, 3),
                "rows_in": sum(sample.rows_in.values()) + sum(sample.skipped.values()),
                "rows_out": processed_rows(sample),
                "batch_ms": round(sample.duration_ms, 1),
                "p99_latency_ms": round(max(stale), 1) if stale else "",
                "plan_row": plan.row,
                "drops": "; ".join(f"{arc} keeps {drop.keep:.3f}" for arc, drop in plan.drops.items()),
            }
        )
    return rows


def processed_rows(sample: BatchSample) -> int:
    """Rows that came out at the outputs, all of them together."""
    return sum(seen.rows for seen in sample.outputs.values())


def p99_ms(samples: Sequence[BatchSample]) -> float:
    """The 99th percentile of latency over all outputs and batches given: that of the worst output."""
    seen: dict[str, LatencyHistogram] = {}
    for sample in samples:
        for name, output in sample.outputs.items():
            if output.latency_ms is not None and output.rows:
                seen.setdefault(name, LatencyHistogram()).add(output.rows, output.latency_ms)
    return max((histogram.quantile(0.99) or 0.0 for histogram in seen.values()), default=0.0)


def draw(figure: Any, tables: dict[str, list[dict[str, Any]]], title: str, budget_ms: float) -> None:
    """Latency above, batch time against the budget below, one line per run."""
    above, below = figure.subplots(2, 1, sharex=True)
    for label, rows in tables.items():
        seconds = [row["second"] for row in rows]
        latency = [float(row["p99_latency_ms"]) / 1000 if row["p99_latency_ms"] != "" else None for row in rows]
        above.plot(seconds, latency, marker=".", label=label)
        below.plot(seconds, [row["batch_ms"] / 1000 for row in rows], marker=".", label=label)
    below.axhline(budget_ms / 1000, color="grey", linestyle="--", linewidth=1, label="budget")
    above.set_ylabel("p99 latency (s)")
    below.set_ylabel("batch time (s)")
    below.set_xlabel("time since the first batch (s)")
    above.set_yscale("log")
    below.set_yscale("log")
    above.legend()
    below.legend()
    figure.suptitle(title)
