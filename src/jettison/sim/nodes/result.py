"""What a simulation of several nodes found: a row per batch and node, and what outputs got in time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jettison.sim.result import SimBatch


@dataclass(frozen=True)
class NodeBatch:
    """One batch of one node: work over capacity before and after drops, rows in, dropped and given on.

    `dropped` are rows that would have been given on, had the node dropped nothing: `given + dropped` is all of them,
    whether they were dropped at an input or on a branch.
    """

    node: str
    started_ms: float
    load: float
    busy: float
    rows_in: float
    dropped: float
    given: float
    reason: str
    """Why its plan drops rows."""

    def to_dict(self) -> dict[str, Any]:
        return dict(self.__dict__)


def node_batch(node: str, batch: SimBatch, dropped: float) -> NodeBatch:
    """What a batch of a node comes to; `dropped` are the rows that its drops take from its outputs."""
    rows, interval_ms = float(sum(batch.rows_in.values())), max(batch.interval_ms, 1e-9)
    given = float(sum(batch.delivered.values()))
    return NodeBatch(
        node, batch.started_ms, batch.load, batch.duration_ms / interval_ms, rows, dropped, given, batch.plan.reason
    )


@dataclass(frozen=True)
class NodesResult:
    """A whole run. `worth` is the mean over seconds of priority x utility of what came within the deadline, summed
    over outputs; `share` and `in_time` are shares of rows; `waiting` are rows on links at the end.
    """

    network: str
    mode: str
    seconds: float
    seed: int
    batches: tuple[NodeBatch, ...]
    share: Mapping[str, float]
    in_time: Mapping[str, float]
    worth: float
    worth_of_all: float
    messages: int
    lost_messages: int
    waiting: float
    unshed_batches: int
    """Batches that took more than twice their interval though nothing was dropped: there must be none."""

    @property
    def nodes(self) -> tuple[str, ...]:
        """All nodes that ran a batch, in the order of their first one."""
        return tuple(dict.fromkeys(batch.node for batch in self.batches))

    def to_dict(self) -> dict[str, Any]:
        content = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {"simulation": True, **content, "batches": [batch.to_dict() for batch in self.batches]}
