"""What a simulation found: a row per batch, and per output how complete and how fresh it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from jettison.plan.plan import Plan

LATENCIES = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
"""Which quantiles of latency are told, by name."""

Latency = Mapping[str, float]


@dataclass(frozen=True)
class SimBatch:
    """One batch (of a round-robin scheduler: one control interval).

    `rows_in` arrived within `interval_ms`; the machine was busy for `duration_ms`. `load` is the work of these rows,
    nothing shed, over the capacity of that interval. `keeps` is the share that each drop has kept, `latency_ms` holds
    the outputs that got anything, `queues` what waits at the end.
    """

    batch: int
    started_ms: float
    interval_ms: float
    duration_ms: float
    rows_in: Mapping[str, int]
    load: float
    plan: Plan
    keeps: Mapping[str, float]
    delivered: Mapping[str, float]
    latency_ms: Mapping[str, Latency]
    queues: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        return {
            "batch": self.batch,
            "started_ms": self.started_ms,
            "interval_ms": self.interval_ms,
            "duration_ms": self.duration_ms,
            "rows_in": dict(self.rows_in),
            "load": self.load,
            "plan_row": self.plan.row,
            "reason": self.plan.reason,
            "keeps": dict(self.keeps),
            "delivered": dict(self.delivered),
            "latency_ms": {name: dict(latency) for name, latency in self.latency_ms.items()},
            "queues": dict(self.queues),
        }


@dataclass(frozen=True)
class OutputResult:
    """One output over the whole run.

    `rows` came out; `lost_rows` would have, had they not been shed. What still waits counts as neither. `cells` splits
    both by value: (rows, lost rows) of each cell. `worth_share` is the share delivered of what the rows are worth,
    that of rows where none is worth more than another; `utility` is that of the worth delivered, late rows counted
    with what the latency graph leaves of them. `in_time_share` is the share of the worth that came in time: by the
    latency graph, else within three triggers (`statistics.worth`).
    """

    rows: float
    lost_rows: float
    worth_share: float
    utility: float
    latency_ms: Latency
    cells: tuple[tuple[float, float], ...]
    in_time_share: float = 1.0

    @property
    def delivered_share(self) -> float:
        return share_of(self.rows, self.lost_rows)

    def to_dict(self) -> dict[str, Any]:
        return {
            "rows": self.rows,
            "lost_rows": self.lost_rows,
            "delivered_share": self.delivered_share,
            "worth_share": self.worth_share,
            "utility": self.utility,
            "latency_ms": dict(self.latency_ms),
        }


@dataclass(frozen=True)
class SimResult:
    """A whole run. `shed` and `queued` are by arc, `filtered` by operator: rows in less rows out.

    `utility` is the sum of priority x utility over the outputs, at the shares delivered over the whole run, and
    `infeasible` says why plans did not fit, if some did not; `uncertified` plans were replaced by safe ones. `sic` is
    the source information content of every output at the end, the lowest first.
    """

    network: str
    scheduler: str
    seconds: float
    seed: int
    batches: tuple[SimBatch, ...]
    arrived: Mapping[str, int]
    shed: Mapping[str, float]
    filtered: Mapping[str, float]
    queued: Mapping[str, float]
    outputs: Mapping[str, OutputResult]
    utility: float
    infeasible: str | None
    uncertified: int = 0
    sic: Mapping[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {
            "simulation": True,
            "network": self.network,
            "scheduler": self.scheduler,
            "seconds": self.seconds,
            "seed": self.seed,
            "arrived": dict(self.arrived),
            "shed": dict(self.shed),
            "filtered": dict(self.filtered),
            "queued": dict(self.queued),
            "outputs": {name: output.to_dict() for name, output in self.outputs.items()},
            "utility": self.utility,
            "infeasible": self.infeasible,
            "uncertified": self.uncertified,
            "sic": dict(self.sic),
            "batches": [batch.to_dict() for batch in self.batches],
        }


def share_of(rows: float, lost_rows: float) -> float:
    """The delivered share of an output; 1 where there was nothing to deliver."""
    whole = rows + lost_rows
    return rows / whole if whole > 0 else 1.0
