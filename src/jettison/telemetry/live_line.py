"""One line in the terminal that says how a run is doing, renewed after every batch."""

from __future__ import annotations

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from jettison.statistics.samples import BatchSample
from jettison.telemetry.events import BatchEvent


class LiveView:
    """Batch, rate, a bar of the batch's time against its budget, what is kept, and how fresh results are."""

    def __init__(self, budget_ms: float, console: Console | None = None) -> None:
        self._budget_ms = budget_ms
        self._live = Live(Text("waiting for the first batch"), console=console, refresh_per_second=4)
        self._live.start()

    def close(self) -> None:
        self._live.stop()
        if not self._live.console.is_terminal:
            self._live.console.print()

    def update(self, event: BatchEvent) -> None:
        """Show one batch."""
        sample, plan = event.sample, event.plan
        budget_ms = self._budget_ms
        rate = 1000 * (sum(sample.rows_in.values()) + sum(sample.skipped.values())) / max(1.0, sample.interval_ms)
        stale = [seen.latency_ms[5] for seen in sample.outputs.values() if seen.latency_ms is not None]
        line = Table.grid(padding=(0, 1))
        shares = [each.share for each in event.delivered.values()]
        kept = "all kept" if not plan.drops else f"kept {min(shares):.0%}-{max(shares):.0%}"
        line.add_row(
            f"batch {sample.batch}",
            f"{rate:,.0f} rows/s",
            ProgressBar(total=1.0, completed=min(1.0, sample.duration_ms / budget_ms), width=12),
            f"{sample.duration_ms / 1000:.1f} of {budget_ms / 1000:.1f} s",
            Text(kept, style="green" if not plan.drops else "yellow"),
            f"SIC {min(event.sic.values()):.2f}" if event.sic and min(event.sic.values()) < 1 else "",
            f"p95 {max(stale) / 1000:.1f} s old" if stale else "",
            _behind(sample),
        )
        self._live.update(line)


def _behind(sample: BatchSample) -> str:
    """How far behind the slowest topic is: in seconds, or in records where none arrive."""
    if not sample.topics:
        return ""
    seconds = [topic.lag_s for topic in sample.topics.values()]
    if None in seconds:
        return f"{sum(topic.lag_rows for topic in sample.topics.values()):,} records behind"
    return f"{max(each for each in seconds if each is not None):.1f} s behind"
