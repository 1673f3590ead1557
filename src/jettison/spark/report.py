"""What a run has done so far: totals, and per output how complete and how fresh it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jettison.network.graph import Graph
from jettison.plan.plan import Plan
from jettison.statistics.arrival import TopicSample
from jettison.statistics.latency import LatencyHistogram
from jettison.statistics.samples import BatchSample, FailedWindows

_SHOWN_SHARES = (0.5, 0.95, 0.99, 1.0)


@dataclass(frozen=True)
class OutputReport:
    """One output: rows delivered, the share of its tuples that this is, its utility, its latency in milliseconds.

    `latency_utility` is what was left of the delivered tuples' utility at their age (1 where age does not matter).
    """

    rows: int
    delivered_share: float
    utility: float
    latency_ms: Mapping[str, float | None]
    latency_utility: float = 1.0


@dataclass(frozen=True)
class Report:
    """Totals of a run. `print(report)` shows it as a table."""

    network: str
    batches: int
    seconds: float
    rows_in: int
    rows_shed: int
    rows_rejected: int
    rows_without_time: int
    slowest_batch_ms: float
    over_budget_batches: int
    plan: Plan
    infeasible: str | None
    outputs: Mapping[str, OutputReport]
    rows_gone: int = 0
    rows_late: int = 0
    topics: Mapping[str, TopicSample] = field(default_factory=dict)
    failed: Mapping[str, FailedWindows] = field(default_factory=dict)
    unfit: Mapping[str, int] = field(default_factory=dict)
    """By operator: rows that it rejected, as one of its expressions failed on them."""

    @property
    def rows_unfit(self) -> int:
        """Rows that operators rejected, as an expression failed on them; a row may be among them on several arcs."""
        return sum(self.unfit.values())

    @property
    def windows_failed(self) -> int:
        """Windows of which an aggregate of the user's own could not be computed."""
        return sum(each.windows for each in self.failed.values())

    def __str__(self) -> str:
        shed = self.rows_shed / self.rows_in if self.rows_in else 0.0
        lines = [
            f"network {self.network}: {self.batches} batches in {self.seconds:.0f} s",
            f"{self.rows_in:,} rows in, {self.rows_shed:,} shed on arcs ({shed:.1%} of rows in), "
            f"{self.rows_rejected:,} rejected",
            f"slowest batch {self.slowest_batch_ms:.0f} ms, {self.over_budget_batches} over budget; "
            f"plan row {self.plan.row:.1f} ({self.plan.reason})",
            f"{'output':<14}{'rows':>12}{'delivered':>10}{'utility':>8}{'p50':>8}{'p95':>8}{'p99':>8}{'max':>8}",
        ]
        for name, output in self.outputs.items():
            times = "".join(_shown(output.latency_ms[key]) for key in ("p50", "p95", "p99", "max"))
            lines.append(f"{name:<14}{output.rows:>12,}{output.delivered_share:>10.1%}{output.utility:>8.3f}{times}")
        for name, topic in self.topics.items():
            lines.append(
                f"topic {name}: {topic.rows_per_s:,.0f} rows/s arrive, {topic.lag_rows:,} behind ({topic.lag_s:.1f} s)"
            )
        if self.rows_gone:
            lines.append(f"{self.rows_gone:,} records were gone from Kafka before they were read")
        if self.rows_late:
            lines.append(
                f"{self.rows_late:,} rows came late: their windows were closed, or partners at a join may have gone"
            )
        for name, each in self.failed.items():
            lines.append(f"aggregate {name}: {each.windows:,} windows failed, their value is null ({each.reason})")
        for name, count in self.unfit.items():
            lines.append(f"operator {name}: its expression failed on {count:,} rows, which are kept with the rejects")
        if self.rows_without_time:
            lines.append(f"{self.rows_without_time:,} rows have no event time: they count in no latency")
        if self.infeasible:
            lines.append(f"cannot keep up: {self.infeasible}")
        return "\n".join(lines)


def _shown(latency_ms: float | None) -> str:
    return f"{'-':>8}" if latency_ms is None else f"{latency_ms / 1000:>7.2f}s"


@dataclass
class Totals:
    """Adds up batches, in bounded memory."""

    graph: Graph
    budget_ms: float
    batches: int = 0
    rows_in: int = 0
    rows_shed: int = 0
    rejected: int = 0
    timeless: int = 0
    gone: int = 0
    late: int = 0
    unfit: dict[str, int] = field(default_factory=dict)
    topics: dict[str, TopicSample] = field(default_factory=dict)
    failed: dict[str, FailedWindows] = field(default_factory=dict)
    slowest_ms: float = 0.0
    over_budget: int = 0
    rows: dict[str, int] = field(default_factory=dict)
    latency: dict[str, LatencyHistogram] = field(default_factory=dict)
    _weighted: dict[str, float] = field(default_factory=dict)
    _worth: dict[str, float] = field(default_factory=dict)
    _possible: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._below = {source.name: self.graph.outputs_below(source.name) for source in self.graph.sources}

    def add(self, sample: BatchSample, plan: Plan) -> None:
        skipped = sum(sample.skipped.values())
        arrived = sum(sample.rows_in.values()) + skipped
        self.batches += 1
        self.rows_in += arrived
        self.rows_shed += sum(rows - kept for rows, kept in sample.arcs.values()) + skipped
        self.rejected += sum(sample.rejected.values())
        for name, count in sample.unfit.items():
            self.unfit[name] = self.unfit.get(name, 0) + count
        self.timeless += sum(sample.timeless.values())
        self.gone += sum(sample.gone.values())
        self.late += sum(sample.late.values())
        self.topics.update(sample.topics)
        for name, each in sample.failed.items():
            before = self.failed.get(name, FailedWindows(0, each.reason))
            self.failed[name] = FailedWindows(before.windows + each.windows, before.reason)
        self.slowest_ms = max(self.slowest_ms, sample.duration_ms)
        self.over_budget += sample.duration_ms > self.budget_ms
        for output in self.graph.outputs:
            seen = sample.outputs.get(output.name)
            if seen is None:
                continue
            self.rows[output.name] = self.rows.get(output.name, 0) + seen.rows
            share = plan.delivered.get(output.name, 1.0)
            above = sum(
                count + sample.skipped.get(source, 0)
                for source, count in sample.rows_in.items()
                if output.name in self._below[source]
            )
            self._weighted[output.name] = self._weighted.get(output.name, 0.0) + share * above
            worth = plan.worth.get(output.name, share)
            self._worth[output.name] = self._worth.get(output.name, 0.0) + worth * above
            self._possible[output.name] = self._possible.get(output.name, 0) + above
            if seen.latency_ms is not None and seen.rows:
                self.latency.setdefault(output.name, LatencyHistogram()).add(seen.rows, seen.latency_ms)

    def delivered_share(self, output: str) -> float:
        """Share of an output's tuples that was delivered, by the plans that were in force."""
        possible = self._possible.get(output, 0)
        return self._weighted[output] / possible if possible else 1.0

    def worth_share(self, output: str) -> float:
        """Share of what an output's tuples are worth that was delivered, by the plans that were in force."""
        possible = self._possible.get(output, 0)
        return self._worth[output] / possible if possible else 1.0

    def latency_ms(self, output: str, share: float) -> float | None:
        return self.latency[output].quantile(share) if output in self.latency else None

    def report(self, seconds: float, plan: Plan, infeasible: str | None) -> Report:
        outputs = {}
        for output in self.graph.outputs:
            share = self.delivered_share(output.name)
            names = ("p50", "p95", "p99", "max")
            latency = {n: self.latency_ms(output.name, q) for n, q in zip(names, _SHOWN_SHARES, strict=True)}
            rows = self.rows.get(output.name, 0)
            worth = output.qos.utility(self.worth_share(output.name))
            fresh = (
                self.latency[output.name].mean_of(output.qos.latency_utility) if output.name in self.latency else 1.0
            )
            outputs[output.name] = OutputReport(rows, share, worth, latency, fresh)
        return Report(
            self.graph.name,
            self.batches,
            seconds,
            self.rows_in,
            self.rows_shed,
            self.rejected,
            self.timeless,
            self.slowest_ms,
            self.over_budget,
            plan,
            infeasible,
            outputs,
            self.gone,
            self.late,
            dict(self.topics),
            dict(self.failed),
            dict(self.unfit),
        )
