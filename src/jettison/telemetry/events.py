"""What happened in one batch, as docs/figures.md defines its figures: report, metrics, log and screens listen to it."""

from __future__ import annotations

import json
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


@dataclass(frozen=True)
class BatchEvent:
    """One batch as it was measured, and what follows from it. `to_json` is for other programs.

    `accounts` has, by (source, output), where source tuples went; `delivered`, by output, what it got. `load` is the
    work of the batch, nothing shed, over its budget, by the costs as they are known. `infeasible` says why no plan
    fits. While `calibrating`, costs have not been measured and nothing is shed.
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

    @property
    def over_budget(self) -> bool:
        """Whether the batch took longer than its budget, as measured."""
        return self.sample.duration_ms > self.budget_ms

    @property
    def mispredicted(self) -> bool:
        """Whether the batch was over budget although its plan predicted that it would fit, nothing more shed.

        While `calibrating` nothing is predicted: there are no costs to predict with.
        """
        if self.calibrating:
            return False
        return self.over_budget and kind_of_reason(self.plan.reason) in ("within_budget", "windows_decided_earlier")

    def to_dict(self) -> dict[str, Any]:
        """The event as plain data: what an operator of the run asks for, in a size that does not grow with the run."""
        sample, plan = self.sample, self.plan
        outputs = {
            name: {
                "rows": seen.rows,
                "latency_ms": None if seen.latency_ms is None else dict(zip(_LATENCIES, seen.latency_ms, strict=True)),
                **({} if name not in self.delivered else {"delivered": self.delivered[name].share}),
            }
            for name, seen in sample.outputs.items()
        }
        return {
            "network": self.network,
            "batch": sample.batch,
            "started_ms": sample.started_ms,
            "interval_ms": sample.interval_ms,
            "duration_ms": sample.duration_ms,
            "budget_ms": self.budget_ms,
            "over_budget": self.over_budget,
            "parts_ms": dict(sample.parts_ms),
            "load": self.load,
            "rows_in": dict(sample.rows_in),
            "skipped": dict(sample.skipped),
            "late": dict(sample.late),
            "rejected": {**sample.rejected, **sample.unfit},
            "missing_result_rows": {name: each.rows for name, each in sample.missing.items()},
            "arcs": {arc: {"came": came, "passed": passed} for arc, (came, passed) in sample.arcs.items()},
            "dropped": dict(self.dropped),
            "outputs": outputs,
            "accounts": [
                {"source": source, "output": output, **asdict(account)}
                for (source, output), account in self.accounts.items()
            ],
            "plan": plan.to_dict(),
            "reason": plan.reason,
            "infeasible": self.infeasible,
            "calibrating": self.calibrating,
        }

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(self.to_dict())


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
) -> BatchEvent:
    """The event of a batch that has run.

    `dropped` counts rows by the arc on which they were dropped; `results_dropped` does the same for results of windows,
    which are not source tuples.

    >>> from jettison.network import Network
    >>> net = Network("two"); s = net.source("s", "x int")
    >>> s.where("x > 0", name="a").output("left"); s.where("x > 5", name="b").output("right")
    >>> sample = BatchSample(0, 0.0, 1000.0, 1800.0, {"s": 100}, {"s": (100, 80), "s>b": (80, 60)})
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
        sample,
        plan,
        budget_ms,
        accounts_of(graph, sample, closed),
        delivered(graph, plan, sample, profile),
        {arc: count for arc, count in gone.items() if arc not in results},
        results,
        load,
        infeasible,
        calibrating,
        graph.name,
    )
