"""What a run has done so far: totals, and per output how complete and how fresh it is. docs/figures.md defines each
figure."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from jettison.network.graph import Graph
from jettison.plan.plan import DEGRADED, PAUSED, Plan
from jettison.statistics.account import Account, summed
from jettison.statistics.arrival import TopicSample
from jettison.statistics.latency import LatencyHistogram
from jettison.statistics.missing_results import MissingResults
from jettison.statistics.samples import BatchSample, FailedWindows
from jettison.statistics.worth import timely_share
from jettison.telemetry.cost_view import CostsReport
from jettison.telemetry.events import BatchEvent, batch_event

_SHOWN_SHARES = (0.5, 0.95, 0.99, 1.0)


@dataclass(frozen=True)
class OutputReport:
    """One output: rows delivered, the share of its rows that this is, its utility, its latency in milliseconds.

    `delivered_share` is what came over what would have come without shedding, by the rows counted on every arc; of
    windows that may be dropped whole, those kept over those closed. `utility` is what the QoS says of that share, each
    row counted with what its age leaves of it by the latency graph. `latency_utility` is what was left of the delivered
    rows' utility at their age (1 where age does not matter). `in_time_share` is the share of what the output's rows are
    worth that was delivered in time: by its latency graph, else within three triggers of its event time. Before the
    first batch all shares and utilities are 1: nothing was lost. Tables show "-" then.
    `accuracy` is the share of source rows that was processed for this output, and `account` says what became of the
    others. `sic` is how much of what its sources brought in the last source time window is in its results, `lowest_sic`
    the least that it was in this run.
    """

    rows: int
    delivered_share: float
    utility: float
    latency_ms: Mapping[str, float | None]
    latency_utility: float = 1.0
    accuracy: float = 1.0
    account: Account = field(default_factory=Account)
    in_time_share: float = 1.0
    sic: float = 1.0
    lowest_sic: float = 1.0


@dataclass(frozen=True)
class Report:
    """Totals of a run. `print(report)` shows it as a table.

    `rows_in` counts source rows that arrived, those skipped unread included. `rows_shed` counts drops: rows removed
    where a drop stood, and those skipped. A row that two branches drop is two drops, so this is no share of `rows_in`:
    that is `shed_share`. `results_shed` counts results of windows, which are no rows of a source.
    `accounts` says by (source, output): read = processed + shed + rejected + late + skipped.
    """

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
    rows_would_shed: int = 0
    would_deliver: Mapping[str, float] = field(default_factory=dict)
    budget_ms: float = 0.0
    mispredicted_batches: int = 0
    infeasible_batches: int = 0
    rows_skipped: int = 0
    results_shed: int = 0
    accounts: Mapping[tuple[str, str], Account] = field(default_factory=dict)

    @property
    def shed_share(self) -> float:
        """Of the source rows that outputs should have got, the share that was shed or skipped: the mean over all
        (source, output), weighed by rows, so it lies between the outputs' own shares."""
        whole = summed(self.accounts.values())
        return whole.lost_to_overload / whole.read if whole.read else 0.0

    withheld: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def windows_withheld(self) -> int:
        """Windows that an aggregate did not deliver because it has not seen them from their first row on: windows of
        event time, one for all groups."""
        return sum(self.withheld.values())

    unfit: Mapping[str, int] = field(default_factory=dict)
    """By operator: rows that it rejected, as one of its expressions failed on them."""
    missing: Mapping[str, MissingResults] = field(default_factory=dict)
    worth_in_time: float = 1.0
    """Worth delivered in time, as a share of what was offered: outputs weigh priority x rows offered."""
    uncertified_plans: int = 0
    """How many plans were refused, so that a safe one took their place (`plan.certify`)."""
    paused_batches: Mapping[str, int] = field(default_factory=dict)
    """By output: in how many batches it was paused, so that the minimum accuracies of others fit."""
    degraded_batches: Mapping[str, int] = field(default_factory=dict)
    """By output: in how many batches it was below its minimum accuracy together with all others."""

    @property
    def results_missing(self) -> float:
        """Results of estimated windows that did not come, as all rows of a group were dropped in a window: at least so
        many, as estimated from the results that came."""
        return sum(each.results for each in self.missing.values())

    @property
    def rows_unfit(self) -> int:
        """Rows that operators rejected, as an expression failed on them; a row may be among them on several arcs."""
        return sum(self.unfit.values())

    @property
    def windows_failed(self) -> int:
        """Windows of which an aggregate of the user's own could not be computed."""
        return sum(each.windows for each in self.failed.values())

    costs: Mapping[str, CostsReport] = field(default_factory=dict)
    """By operator that is timed: what was learned about its costs."""
    listener_failures: int = 0
    """How often a listener threw: the run goes on."""

    def __str__(self) -> str:
        from jettison.telemetry.report_text import report_text  # which knows reports

        return report_text(self)

    def _repr_html_(self) -> str:
        from jettison.telemetry.notebook import report_html  # which knows reports

        return report_html(self)


@dataclass
class Totals:
    """Adds up batches, in bounded memory. Threads other than the stream's may ask meanwhile: they see whole batches."""

    graph: Graph
    budget_ms: float
    deadline_ms: float = math.inf
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
    withheld: dict[str, int] = field(default_factory=dict)
    missing: dict[str, MissingResults] = field(default_factory=dict)
    notes: Sequence[str] = ()
    slowest_ms: float = 0.0
    over_budget: int = 0
    mispredicted: int = 0
    infeasible: int = 0
    uncertified: int = 0
    below_minimum: dict[tuple[str, str], int] = field(default_factory=dict)
    skipped: int = 0
    results_shed: int = 0
    accounts: dict[tuple[str, str], Account] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    latency: dict[str, LatencyHistogram] = field(default_factory=dict)
    _weighted: dict[str, float] = field(default_factory=dict)
    _priced: dict[str, float] = field(default_factory=dict)
    _in_time: dict[str, float] = field(default_factory=dict)
    _possible: dict[str, float] = field(default_factory=dict)
    _expected: dict[str, float] = field(default_factory=dict)
    _sic: dict[str, float] = field(default_factory=dict)
    _lowest_sic: dict[str, float] = field(default_factory=dict)
    _would_shed: int = 0
    _would_weighted: dict[str, float] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False, compare=False)

    def add(self, sample: BatchSample, plan: Plan, event: BatchEvent | None = None) -> None:
        found = event or batch_event(self.graph, sample, plan, budget_ms=self.budget_ms)
        with self._lock:
            self._add(sample, found)

    def _add(self, sample: BatchSample, found: BatchEvent) -> None:
        skipped = sum(sample.skipped.values())
        self.batches += 1
        self.rows_in += sum(sample.rows_in.values()) + skipped
        self.rows_shed += sum(found.dropped.values()) + skipped
        self.results_shed += sum(found.results_dropped.values())
        self.skipped += skipped
        self.mispredicted += found.mispredicted
        self.infeasible += found.infeasible is not None
        self.uncertified += found.uncertified is not None
        for name, how in found.plan.below_minimum.items():
            self.below_minimum[name, how] = self.below_minimum.get((name, how), 0) + 1
        for key, account in found.accounts.items():
            self.accounts[key] = self.accounts.get(key, Account()) + account
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
        for name, count in sample.withheld.items():
            self.withheld[name] = self.withheld.get(name, 0) + count
        for name, without in sample.missing.items():
            self.missing[name] = self.missing.get(name, MissingResults()) + without
        self.slowest_ms = max(self.slowest_ms, sample.duration_ms)
        self.over_budget += found.over_budget
        self._sic |= found.sic
        for name, sic in found.sic.items():
            self._lowest_sic[name] = min(sic, self._lowest_sic.get(name, 1.0))
        self._would_shed += sum(shed for _, shed in sample.would.values())
        for output in self.graph.outputs:
            seen = sample.outputs.get(output.name)
            if seen is None:
                continue
            self.rows[output.name] = self.rows.get(output.name, 0) + seen.rows
            got = found.delivered[output.name]
            self._weighted[output.name] = self._weighted.get(output.name, 0.0) + got.share * got.weight
            for sums, deadline_ms in ((self._priced, math.inf), (self._in_time, self.deadline_ms)):
                timely = timely_share(output.qos, seen.latency_ms, deadline_ms)
                sums[output.name] = sums.get(output.name, 0.0) + got.worth * timely * got.weight
            self._possible[output.name] = self._possible.get(output.name, 0.0) + got.weight
            self._expected[output.name] = self._expected.get(output.name, 0.0) + got.expected
            if sample.would_deliver:
                lost = (1.0 - sample.would_deliver.get(output.name, 1.0)) * got.weight
                self._would_weighted[output.name] = self._would_weighted.get(output.name, 0.0) + lost
            if seen.latency_ms is not None and seen.rows:
                self.latency.setdefault(output.name, LatencyHistogram()).add(seen.rows, seen.latency_ms)

    def delivered_share(self, output: str) -> float:
        """Share of an output's rows that was delivered, by what was counted on the way to it."""
        with self._lock:
            possible = self._possible.get(output, 0.0)
            return self._weighted[output] / possible if possible else 1.0

    def worth_share(self, output: str) -> float:
        """Share of what an output's rows are worth that was delivered, by what was counted on the way to it; of late
        rows what its latency graph leaves."""
        return self._share_of(self._priced, output)

    def in_time_share(self, output: str) -> float:
        """The same; an output without a latency graph has lost the rows that came after the deadline."""
        return self._share_of(self._in_time, output)

    def _share_of(self, sums: Mapping[str, float], output: str) -> float:
        with self._lock:
            possible = self._possible.get(output, 0.0)
            return sums[output] / possible if possible else 1.0

    def offered_rows(self, output: str) -> float:
        """Rows that would have come to an output if nothing had been dropped; results, where there are windows.

        Those that came over the share that was delivered; where nothing was delivered, by the profile.
        """
        with self._lock:
            share = self.delivered_share(output)
            return self.rows.get(output, 0) / share if share > 0 else self._expected.get(output, 0.0)

    def _worth_in_time(self) -> float:
        offered = {each.name: each.qos.priority * self.offered_rows(each.name) for each in self.graph.outputs}
        worth = (offered[each.name] * each.qos.utility(self.in_time_share(each.name)) for each in self.graph.outputs)
        whole = sum(offered.values())
        return sum(worth) / whole if whole > 0 else 1.0

    def latency_ms(self, output: str, share: float) -> float | None:
        with self._lock:
            return self.latency[output].quantile(share) if output in self.latency else None

    def report(self, seconds: float, plan: Plan, infeasible: str | None) -> Report:
        with self._lock:
            return self._report(seconds, plan, infeasible)

    def _report(self, seconds: float, plan: Plan, infeasible: str | None) -> Report:
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
            account = summed(each for (_, name), each in self.accounts.items() if name == output.name)
            in_time = self.in_time_share(output.name)
            sic, lowest = (each.get(output.name, 1.0) for each in (self._sic, self._lowest_sic))
            outputs[output.name] = OutputReport(
                rows, share, worth, latency, fresh, account.accuracy, account, in_time, sic, lowest
            )
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
            self._would_shed,
            {name: 1.0 - lost / max(1.0, self._possible[name]) for name, lost in self._would_weighted.items()},
            self.budget_ms,
            self.mispredicted,
            self.infeasible,
            self.skipped,
            self.results_shed,
            dict(self.accounts),
            dict(self.withheld),
            tuple(self.notes),
            dict(self.unfit),
            dict(self.missing),
            self._worth_in_time(),
            self.uncertified,
            paused_batches=self._below(PAUSED),
            degraded_batches=self._below(DEGRADED),
        )

    def _below(self, how: str) -> dict[str, int]:
        return {name: count for (name, each), count in self.below_minimum.items() if each == how}
