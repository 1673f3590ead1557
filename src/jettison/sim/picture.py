"""A simulation over time: what came in, what came out, and how late."""

from __future__ import annotations

from typing import Any

from jettison.sim.result import SimResult


def draw(figure: Any, result: SimResult) -> None:
    """Rows per second in and out above, 99th percentile of latency below, on a Matplotlib figure."""
    above, below = figure.subplots(2, 1, sharex=True)
    seconds = [batch.started_ms / 1000 for batch in result.batches]
    arriving = [1000 * sum(batch.rows_in.values()) / batch.interval_ms for batch in result.batches]
    above.plot(seconds, arriving, color="black", linestyle="--", linewidth=1, label="in")
    for name in result.outputs:
        out = [1000 * batch.delivered[name] / batch.interval_ms for batch in result.batches]
        late = [batch.latency_ms[name]["p99"] / 1000 if name in batch.latency_ms else None for batch in result.batches]
        above.plot(seconds, out, label=name)
        below.plot(seconds, late, marker=".", label=name)
    above.set_yscale("symlog", linthresh=10)
    above.set_ylabel("rows/s")
    below.set_ylabel("p99 latency (s)")
    below.set_xlabel("virtual time (s)")
    below.margins(y=0.1)
    below.set_ylim(bottom=0)
    above.legend()
    below.legend()
    figure.suptitle(f"{result.network}, simulated ({result.scheduler})")
