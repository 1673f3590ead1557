"""Which batches are worth a line in the log: shedding begins, changes markedly, ends; a run that cannot keep up.

One line when something changes, not one per batch: what goes back and forth is said at most every `QUIET_MS`, as it
then is. Pure: plans and samples in, lines out; `spark/batch/views.py` gives them to `logging`.

    batch     7     8     9    10    11    12
    keeps   100 %  40 %  38 %  41 %  20 %  100 %
    line           begins            changes ends
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from jettison.plan.plan import DEGRADED, PAUSED, Plan
from jettison.statistics.samples import BatchSample

QUIET_MS = 10_000.0
"""How long nothing is said of what was just said, unless shedding begins for the first time."""
_HOW = {
    PAUSED: "paused, so that the minimum accuracies of others fit",
    DEGRADED: "below its minimum accuracy, as not all minima fit",
}
_MARKED = 0.15
"""A change of the share delivered that is worth a line."""


@dataclass(frozen=True)
class Line:
    """One line for the log, with its level as `logging` has it."""

    level: int
    text: str


@dataclass
class Narrator:
    """Remembers what was said last.

    >>> from jettison.plan.drops.random import Random
    >>> narrator = Narrator(budget_ms=900.0)
    >>> full, half = Plan(delivered={"fares": 1.0}), Plan({"trips": Random(0.5)}, "overload", 3.0, {"fares": 0.5})
    >>> [line.text for line in narrator.after(BatchSample(1, 0.0, 1000.0, 500.0, {"trips": 100}), full, None)]
    ['batch 1: 100 rows in 500 of 900 ms, plan row 0.0 (no plan)']
    >>> narrator.after(BatchSample(2, 1000.0, 1000.0, 950.0, {"trips": 900}), half, None)[0].text
    'batch 2: shedding begins (overload): outputs get 50 % by the plan, 900 rows came'
    """

    budget_ms: float
    _share: float | None = field(default=None, init=False)
    _said_ms: float | None = field(default=None, init=False)
    _infeasible: str | None = field(default=None, init=False)
    _infeasible_ms: float | None = field(default=None, init=False)
    _below: dict[str, str] = field(default_factory=dict, init=False)
    _counts: dict[str, int] = field(default_factory=dict, init=False)
    _counts_ms: float | None = field(default=None, init=False)

    def after(self, sample: BatchSample, plan: Plan, infeasible: str | None) -> list[Line]:
        """What a batch that has run is worth saying."""
        lines = [
            *self._shedding(sample, plan),
            *self._below_minimum(sample, plan),
            *self._keeping_up(sample, infeasible),
            *self._bad_rows(sample),
        ]
        return [*lines, Line(logging.DEBUG, self._batch(sample, plan))]

    def _shedding(self, sample: BatchSample, plan: Plan) -> list[Line]:
        sheds = bool(plan.drops or plan.stale) or any(sample.skipped.values())
        now = min(plan.delivered.values(), default=1.0) if sheds else None
        before, rows = self._share, sum(sample.rows_in.values()) + sum(sample.skipped.values())
        if now is None and before is None:
            return []
        if now is not None and before is not None and abs(now - before) < _MARKED:
            return []
        if not _is_due(self._said_ms, sample.started_ms):
            return []
        self._share, self._said_ms = now, sample.started_ms
        if now is None:
            return [Line(logging.INFO, f"batch {sample.batch}: shedding ends: all rows are processed again")]
        word = "begins" if before is None else "changes"
        text = f"batch {sample.batch}: shedding {word} ({plan.reason}): outputs get {_shares(plan)} by the plan"
        return [Line(logging.INFO, f"{text}, {rows:,} rows came")]

    def _below_minimum(self, sample: BatchSample, plan: Plan) -> list[Line]:
        """Outputs that are paused, or below their minimum accuracy, and those that go on."""
        now = dict(plan.below_minimum)
        if now == self._below:
            return []
        begun = [f"output {name} is {_HOW[how]}" for name, how in now.items() if self._below.get(name) != how]
        ended = [f"output {name} gets its minimum accuracy again" for name in self._below if name not in now]
        self._below = now
        return [
            *(Line(logging.WARNING, f"batch {sample.batch}: {text}") for text in begun),
            *(Line(logging.INFO, f"batch {sample.batch}: {text}") for text in ended),
        ]

    def _keeping_up(self, sample: BatchSample, infeasible: str | None) -> list[Line]:
        if (infeasible is None) == (self._infeasible is None) or not _is_due(self._infeasible_ms, sample.started_ms):
            return []
        self._infeasible, self._infeasible_ms = infeasible, sample.started_ms
        if infeasible is None:
            return [Line(logging.INFO, f"batch {sample.batch}: batches can fit into their budget again")]
        return [Line(logging.WARNING, f"batch {sample.batch}: cannot keep up: {infeasible}")]

    def _bad_rows(self, sample: BatchSample) -> list[Line]:
        """Rows that do not parse, on which expressions fail, and windows that fail, added up while nothing is said."""
        for what, count in (
            ("rows do not parse", sum(sample.rejected.values())),
            ("rows make an expression fail", sum(sample.unfit.values())),
            ("windows could not be computed", sum(each.windows for each in sample.failed.values())),
        ):
            if count:
                self._counts[what] = self._counts.get(what, 0) + count
        if not self._counts or not _is_due(self._counts_ms, sample.started_ms):
            return []
        text = ", ".join(f"{count:,} {what}" for what, count in self._counts.items())
        self._counts, self._counts_ms = {}, sample.started_ms
        return [Line(logging.WARNING, f"up to batch {sample.batch}: {text}")]

    def _batch(self, sample: BatchSample, plan: Plan) -> str:
        rows = sum(sample.rows_in.values())
        spent = f"{sample.duration_ms:.0f} of {self.budget_ms:.0f} ms"
        return f"batch {sample.batch}: {rows:,} rows in {spent}, plan row {plan.row:.1f} ({plan.reason or 'no plan'})"


def _is_due(said_ms: float | None, now_ms: float) -> bool:
    """Whether enough time has passed; a clock that was set back does not keep us silent."""
    return said_ms is None or not 0 <= now_ms - said_ms < QUIET_MS


def _shares(plan: Plan) -> str:
    """What outputs get, in words.

    >>> _shares(Plan(delivered={"a": 0.4, "b": 1.0})), _shares(Plan())
    ('40 % to 100 %', 'a part')
    """
    if not plan.delivered:
        return "a part"
    low, high = min(plan.delivered.values()), max(plan.delivered.values())
    return f"{low:.0%}".replace("%", " %") + ("" if low == high else f" to {high:.0%}".replace("%", " %"))
