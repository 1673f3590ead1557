"""What happened in one batch, as docs/figures.md defines its figures: report, metrics, log and screens listen to it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from jettison.network.graph import Graph
from jettison.plan.delivered import Delivered, delivered
from jettison.plan.plan import Plan
from jettison.plan.problem import Problem
from jettison.plan.reasons import kind_of_reason
from jettison.plan.windows.decisions import decisions_of
from jettison.statistics.account import Account, accounts_of
from jettison.statistics.profile import Profile
from jettison.statistics.samples import LATENCY_QUANTILES, BatchSample
from jettison.telemetry.read_only import read_only


@dataclass(frozen=True)
class BatchEvent:
    """One batch as it was measured, and what follows from it. `to_json` is for other programs.

    Nobody can change it: its mappings, and those of `sample` and `plan`, are read-only. Its size depends on the
    network, not on how long it runs or how many rows come.

    `accounts` has, by (source, output), where source rows went; `delivered`, by output, what it got. `load` is the
    work of the batch, nothing shed, over its budget, by the costs as they are known. `infeasible` says why no plan
    fits. `uncertified` says why a plan was refused, where a safe one took its place. While `calibrating`, costs have
    not been measured and nothing is shed. `sic` has, by output, the lowest first, how much of what its sources
    brought in the source time window is in its results.
    """

    sample: BatchSample
    plan: Plan
    budget_ms: float
    accounts: Mapping[tuple[str, str], Account]
    delivered: Mapping[str, Delivered]
    dropped: Mapping[str, int] = field(default_factory=dict)
    results_dropped: Mapping[str, int] = field(default_factory=dict)
    load: float = 0.0
    infeasible: str | None = None
    calibrating: bool = False
    network: str = ""
    uncertified: str | None = None
    sic: Mapping[str, float] = field(default_factory=dict)

    @property
    def over_budget(self) -> bool:
        """Whether the batch took longer than its budget, as measured."""
        return self.sample.duration_ms > self.budget_ms

    @property
    def paused(self) -> frozenset[str]:
        """The outputs that got nothing, so that the minimum accuracies of others fit."""
        return self.plan.paused

    @property
    def mispredicted(self) -> bool:
        """Whether the batch was over budget although its plan predicted that it would fit, nothing more shed.

        While `calibrating` nothing is predicted: there are no costs to predict with.
        """
        if self.calibrating:
            return False
        return self.over_budget and kind_of_reason(self.plan.reason) in ("within_budget", "windows_decided_earlier")

    def to_dict(self) -> dict[str, Any]:
        """The event as plain data: all that was measured, but the samples that only the planner uses."""
        sample, plan = self.sample, self.plan
        content: dict[str, Any] = {
            "network": self.network,
            **{name: getattr(sample, name) for name in ("batch", "started_ms", "interval_ms", "duration_ms")},
            "budget_ms": self.budget_ms,
            "over_budget": self.over_budget,
            "mispredicted": self.mispredicted,
            "parts_ms": dict(sample.parts_ms),
            "load": self.load,
            **{name: dict(getattr(sample, name)) for name in _COUNTS},
            "topics": {name: asdict(topic) for name, topic in sample.topics.items()},
            "failed": {name: asdict(each) for name, each in sample.failed.items()},
            "windows": {name: {"closed": all_, "kept": kept} for name, (all_, kept) in sample.windows.items()},
            "missing": {name: {"rows": each.rows, "results": each.results} for name, each in sample.missing.items()},
            "arcs": {arc: {"came": came, "passed": passed} for arc, (came, passed) in sample.arcs.items()},
            "dropped": dict(self.dropped),
            "results_dropped": dict(self.results_dropped),
            "would": {arc: {"came": came, "dropped": gone} for arc, (came, gone) in sample.would.items()},
            "would_deliver": dict(sample.would_deliver),
            "outputs": {name: self._output(name) for name in sample.outputs},
            "accounts": [
                {"source": source, "output": output, **asdict(account)}
                for (source, output), account in self.accounts.items()
            ],
            "plan": plan.to_dict(),
            "reason": plan.reason,
            "below_minimum": dict(plan.below_minimum),
            "infeasible": self.infeasible,
            "uncertified": self.uncertified,
            "calibrating": self.calibrating,
        }
        return content

    def _output(self, name: str) -> dict[str, Any]:
        seen, got = self.sample.outputs[name], self.delivered.get(name)
        latency = None if seen.latency_ms is None else dict(zip(_LATENCIES, seen.latency_ms, strict=True))
        share = {} if got is None else {"delivered": got.share}
        sic = {"sic": self.sic[name]} if name in self.sic else {}
        return {"rows": seen.rows, "latency_ms": latency, **share, **sic}

    def queries(self) -> dict[str, dict[str, float]]:
        """By output, the lowest SIC first, what a list of queries shows of a batch: its SIC, source tuples that were
        processed and lost, rows delivered, and the median and 95th percentile of their latency in milliseconds, where
        rows have a time."""
        by_output: dict[str, Account] = {}
        for (source, output), account in self.accounts.items():
            gone = Account(read=float(self.sample.gone.get(source, 0)))
            by_output[output] = by_output.get(output, Account()) + account + gone
        found = {}
        for name, sic in self.sic.items():
            whole = by_output.get(name, Account())
            seen = self.sample.outputs.get(name)
            late = (
                {} if seen is None or seen.latency_ms is None else dict(zip(_LATENCIES, seen.latency_ms, strict=True))
            )
            found[name] = {
                "sic": round(sic, 6),
                "processed": round(whole.processed, 1),
                "lost": round(whole.read - whole.processed, 1),
                "rows": 0 if seen is None else seen.rows,
                **{f"{each}_ms": round(late[each], 1) for each in ("p50", "p95") if each in late},
            }
        return found

    def to_json(self) -> str:
        """One line of JSON, as its standard has it: a number that is not finite is null."""
        return json.dumps(_finite(self.to_dict()), allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


_COUNTS = (
    "rows_in",
    "skipped",
    "stale",
    "gone",
    "rejected",
    "unfit",
    "late",
    "timeless",
    "timeless_in",
    "unneeded",
    "cut",
    "arrived",
    "withheld",
    "watermark_us",
)
"""Counts of a sample, by source, operator or aggregate, that an event has under the same names."""

_LATENCIES = tuple("min" if q == 0 else "max" if q == 1 else f"p{100 * q:.0f}" for q in LATENCY_QUANTILES)


def batch_event(
    graph: Graph,
    sample: BatchSample,
    plan: Plan,
    *,
    budget_ms: float,
    profile: Profile | None = None,
    infeasible: str | None = None,
    calibrating: bool = False,
    uncertified: str | None = None,
    sic: Mapping[str, float] | None = None,
) -> BatchEvent:
    """The event of a batch that has run.

    `dropped` counts rows by the arc on which they were dropped; `results_dropped` does the same for results of windows,
    which are not source rows.

    >>> from jettison.network import Network
    >>> net = Network("two"); s = net.source("s", "x int")
    >>> _ = s.where("x > 0", name="a").output("left"); _ = s.where("x > 5", name="b").output("right")
    >>> sample = BatchSample(0, 0.0, 1000.0, 1800.0, {"s": 100}, arcs={"s": (100, 80), "s>b": (80, 60)})
    >>> found = batch_event(net.graph, sample, Plan(reason="predicted within budget"), budget_ms=900.0)
    >>> found.dropped, found.over_budget, found.mispredicted
    ({'s': 20, 's>b': 20}, True, True)
    """
    arcs = decisions_of(graph).arcs
    closed = [arc for arc in plan.drops if plan.closes(arc)]
    gone = {arc: rows - kept for arc, (rows, kept) in sample.arcs.items() if rows > kept}
    results = {arc: count for arc, count in gone.items() if arcs.results_on(arc)}
    load = 0.0
    if profile is not None:
        load = Problem(graph, profile, sample.rows_in, 1000 * budget_ms).load_us / (1000 * budget_ms)
    return BatchEvent(
        read_only(sample),
        read_only(plan),
        budget_ms,
        read_only(accounts_of(graph, sample, closed)),
        read_only(delivered(graph, plan, sample, profile)),
        read_only({arc: count for arc, count in gone.items() if arc not in results}),
        read_only(results),
        load,
        infeasible,
        calibrating,
        graph.name,
        uncertified,
        read_only(dict(sic or {})),
    )
