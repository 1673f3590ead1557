"""What was measured of one batch. The shell fills it in, the estimators read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from jettison.statistics.arrival import TopicSample
from jettison.statistics.missing_results import MissingResults
from jettison.statistics.records import Records
from jettison.statistics.timed import TimedSample


@dataclass(frozen=True)
class OutputSample:
    """What one output received in a batch: rows, and quantiles of their latency in milliseconds (None: no time)."""

    rows: int
    latency_ms: tuple[float, ...] | None = None


@dataclass(frozen=True)
class ValueSample:
    """How values are spread, in a sample of `rows` rows: evenly spaced quantiles, and how many were null or NaN."""

    rows: int
    points: tuple[float, ...]
    others: int = 0


@dataclass(frozen=True)
class GroupSample:
    """The rows that came to an aggregate, those that were dropped included as far as can be told, and of its large
    groups how many each has, by a hash of the group; of groups that `QoS(gaps=...)` names, by the number of the name,
    and as counted behind drops. `span_us` is the event time that these rows cover, stragglers left out; None where
    nobody looked."""

    rows: float
    sizes: Mapping[int, float]
    span_us: float | None = None


@dataclass(frozen=True)
class FailedWindows:
    """Windows of which an aggregate of the user's own could not be computed, and why in one of them."""

    windows: int
    reason: str


LATENCY_QUANTILES = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
"""Which quantiles `OutputSample.latency_ms` holds, from the freshest row to the stalest."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What the jobs of a batch and the state of its operators counted.

    `arcs` counts what reached an arc and passed its drop, where that was counted; `late` the rows that came behind the
    watermark: by join of streams those whose partners may have gone, by aggregate those whose windows were closed,
    which are left out; `failed`, by aggregate, the windows on which a function of the user's own threw; `withheld`
    those that it has not seen from their first row on; `missing`, by estimated aggregate, the results of which every
    row was dropped. `unfit` counts, by operator (or by arc into a union), rows that it rejected. `groups` tells, by
    estimated aggregate, which groups are large, and how large those are that have gaps of their own. `values` tells,
    by "operator.column", how values that outputs are valued by are spread behind the drops, `before`, by arc, how they
    are spread before a drop there. By aggregate, `timeless_in` counts the rows without an event time that came to it,
    `unneeded` those of which no window is kept, `cut` what others lose, in rows: each the share of its windows that is
    not kept. `arrived` counts all rows that came to an aggregate, where slices tell, `windows` the windows that closed
    in this batch and how many of them were kept, `watermark_us` the watermark of this batch. `parts_ms` splits the
    batch's time: deciding, each output's job, and the trigger's own bookkeeping. `timed` has, by operator that is
    timed, what its tuples took.
    """

    arcs: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    outputs: Mapping[str, OutputSample] = field(default_factory=dict)
    rejected: Mapping[str, int] = field(default_factory=dict)
    unfit: Mapping[str, int] = field(default_factory=dict)
    timeless: Mapping[str, int] = field(default_factory=dict)
    values: Mapping[str, ValueSample] = field(default_factory=dict)
    before: Mapping[str, ValueSample] = field(default_factory=dict)
    late: Mapping[str, int] = field(default_factory=dict)
    failed: Mapping[str, FailedWindows] = field(default_factory=dict)
    withheld: Mapping[str, int] = field(default_factory=dict)
    missing: Mapping[str, MissingResults] = field(default_factory=dict)
    groups: Mapping[str, GroupSample] = field(default_factory=dict)
    timeless_in: Mapping[str, int] = field(default_factory=dict)
    unneeded: Mapping[str, int] = field(default_factory=dict)
    cut: Mapping[str, float] = field(default_factory=dict)
    arrived: Mapping[str, int] = field(default_factory=dict)
    windows: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    watermark_us: Mapping[str, int] = field(default_factory=dict)
    parts_ms: Mapping[str, float] = field(default_factory=dict)
    timed: Mapping[str, TimedSample] = field(default_factory=dict)

    def plus(self, other: Measured) -> Measured:
        """Both together; where both name an element, the other one counts.

        >>> Measured(late={"busy": 1, "calm": 2}).plus(Measured(late={"busy": 5})).late
        {'busy': 5, 'calm': 2}
        """
        added = {name: {**getattr(self, name), **found} for name, found in vars(other).items() if found}
        return replace(self, **added) if added else self


@dataclass(frozen=True)
class BatchSample(Measured):
    """What was measured of one batch, with its times and with what became of its records.

    `rows_in` counts what arrived at each source and was read, `skipped` the records that were passed over unread,
    `stale` those of them that were too old, `gone` those that a source had lost before. `delivered` and `worth` are, by
    output, the share of rows and of what they are worth that passed the drops, as counted (see `plan.delivered`); an
    output is missing where only the plan's word is known. In a dry run `would` tells, by arc, how many rows would have
    reached a drop and how many it would have taken, `would_deliver` the share of each output that would have come
    through.
    """

    batch: int
    started_ms: float
    interval_ms: float
    duration_ms: float
    rows_in: Mapping[str, int]
    gone: Mapping[str, int] = field(default_factory=dict)
    skipped: Mapping[str, int] = field(default_factory=dict)
    stale: Mapping[str, int] = field(default_factory=dict)
    topics: Mapping[str, TopicSample] = field(default_factory=dict)
    plan_row: float = 0
    would: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    would_deliver: Mapping[str, float] = field(default_factory=dict)
    delivered: Mapping[str, float] = field(default_factory=dict)
    worth: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(
        cls, batch: int, started_ms: float, interval_ms: float, records: Records, measured: Measured | None = None
    ) -> BatchSample:
        """The sample of a batch that read these records, and of which this was measured; other fields are set by
        `replace`.

        >>> BatchSample.of(7, 0.0, 1000.0, Records({"s": 5}, skipped={"s": 2}), Measured(late={"w": 1})).skipped
        {'s': 2}
        """
        return cls(
            batch,
            started_ms,
            interval_ms,
            0.0,
            records.rows,
            gone=records.gone,
            skipped=records.skipped,
            stale=records.stale,
            **vars(measured or Measured()),
        )
