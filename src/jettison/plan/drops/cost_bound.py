"""A drop by estimated cost, in front of an operator that is timed (LAS).

It refers to a cost sketch by the name of its content; the sketch itself is kept beside plans. Two rules:

- `LatencyRule`, the seed's: tuples in order of arrival, dropped when waiting would exceed a goal, whatever they cost.
- `WorthRule`: tuples are kept by worth per cost down to a threshold. Where all are worth the same, the dear ones are
  dropped, and many more are kept for the same work.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from jettison.errors import PlanError
from jettison.plan.drops.kind import Judges, PassShare, register
from jettison.plan.drops.latency_rule import LatencyRule
from jettison.statistics.cost_classes import CostClasses


@dataclass(frozen=True)
class WorthRule:
    """What is kept of every class of cost per worth: 1 up to a threshold, a part of one class, little or none above.

    `classes` are the tuples of late that it was made for. `value` names the column whose value says what a tuple is
    worth, `value_bounds` and `worths` as in a drop by value; without it all are worth the same. `goal_us` is the
    goal for latency that it was made for, where that and not the budget asks for it.
    """

    classes: CostClasses
    keeps: tuple[float, ...]
    value: str | None = None
    value_bounds: tuple[float, ...] = ()
    worths: tuple[float, ...] = ()
    goal_us: float | None = None

    def __post_init__(self) -> None:
        if len(self.keeps) != len(self.classes.rows):
            raise PlanError(f"cost bound: {len(self.keeps)} keep shares for {len(self.classes.rows)} classes of cost.")
        for share in self.keeps:
            if not 0.0 <= share <= 1.0:
                raise PlanError(f"cost bound keeps {share} of a class: a share must be within [0, 1].")
        if self.value is not None and not (len(self.worths) == len(self.value_bounds) >= 2):
            raise PlanError(
                f"cost bound by {self.value!r}: {len(self.worths)} worths for {len(self.value_bounds)} bounds: give "
                f"one for every cell and one for all other values."
            )

    def content(self) -> dict[str, Any]:
        """Classes in which there is a tuple, by their number: most are empty."""
        classes = self.classes
        held = [number for number, rows in enumerate(classes.rows) if rows]
        return {
            "rows": {str(number): classes.rows[number] for number in held},
            "totals_us": {str(number): classes.totals_us[number] for number in held},
            "keeps": list(_runs(self.keeps)),
            "bounds_us": list(classes.bounds_us),
            **({} if self.goal_us is None else {"goal_us": self.goal_us}),
            **({} if self.value is None else {"value": self.value}),
            **({} if self.value is None else {"value_bounds": list(self.value_bounds), "worths": list(self.worths)}),
        }

    @classmethod
    def from_content(cls, content: dict[str, Any]) -> WorthRule:
        count = len(content["bounds_us"]) + 1
        rows, totals_us = (
            tuple(float(content[word].get(str(number), 0.0)) for number in range(count))
            for word in ("rows", "totals_us")
        )
        keeps = tuple(keep for keep, times in content["keeps"] for _ in range(times))
        value = (content.get("value"), tuple(content.get("value_bounds", ())), tuple(content.get("worths", ())))
        classes = CostClasses(rows, totals_us, tuple(content["bounds_us"]))
        return cls(classes, keeps, *value, content.get("goal_us"))


@register
@dataclass(frozen=True)
class CostBound:
    """Drop tuples in front of `operator`, by the cost that its `columns` are estimated to cause.

    `sketch` is the name of the published pair; None before the first one, when every tuple costs `mean_us`. `expected`
    is the share that the latency rule is expected to keep; the worth rule's follows from its classes.

    >>> CostBound("score", ("entity",), 1200.0, LatencyRule(2e6), expected=0.9).keep
    0.9
    >>> rule = WorthRule(CostClasses((3.0, 1.0), (300.0, 2700.0), (200.0,)), keeps=(1.0, 0.0))
    >>> drop = CostBound("score", ("entity",), 750.0, rule, sketch="abc")
    >>> drop.keep, drop.work_share, drop.cost_factor
    (0.75, 0.1, 0.13333333333333333)
    """

    kind: ClassVar[str] = "cost_bound"
    judges: ClassVar[Judges] = "cost"

    operator: str
    columns: tuple[str, ...]
    mean_us: float
    rule: LatencyRule | WorthRule
    sketch: str | None = None
    expected: float = 1.0

    def __post_init__(self) -> None:
        if not self.columns:
            raise PlanError(f"cost bound of {self.operator!r}: name at least one key column.")
        if not 0.0 <= self.expected <= 1.0:
            raise PlanError(f"cost bound of {self.operator!r} keeps {self.expected}: a share must be within [0, 1].")
        if not 0.0 <= self.mean_us < float("inf"):
            raise PlanError(f"cost bound of {self.operator!r}: a mean cost of {self.mean_us} us is none.")

    @property
    def keep(self) -> float:
        return self.expected if isinstance(self.rule, LatencyRule) else self.rule.classes.kept_share(self.rule.keeps)

    @property
    def work_share(self) -> float:
        """The share of the operator's work that is left."""
        return self.expected if isinstance(self.rule, LatencyRule) else self.rule.classes.work_share(self.rule.keeps)

    @property
    def cost_factor(self) -> float:
        """What a tuple that passes costs, over the mean of all."""
        return self.work_share / self.keep if self.keep > 0 else 1.0

    def raised(self, part: float) -> CostBound:
        """The drop with this part of what it takes away given back, for certain.

        >>> CostBound("score", ("entity",), 1200.0, LatencyRule(2e6), expected=0.6).raised(0.5).rule.least_keep
        0.8
        """
        if isinstance(self.rule, WorthRule):
            keeps = tuple(share + part * (1.0 - share) for share in self.rule.keeps)
            return replace(self, rule=replace(self.rule, keeps=keeps))
        keep = self.expected + part * (1.0 - self.expected)
        rule = replace(self.rule, least_keep=max(self.rule.least_keep, keep))
        return replace(self, rule=rule, expected=keep)

    @property
    def passes(self) -> PassShare:
        return self.keep

    @property
    def reads(self) -> tuple[str, ...]:
        value = None if isinstance(self.rule, LatencyRule) else self.rule.value
        return self.columns if value is None or value in self.columns else (*self.columns, value)

    @property
    def named(self) -> str:
        return f" by what {', '.join(self.columns)} costs"

    @property
    def sketches(self) -> tuple[str, ...]:
        """Names of the sketches that the drop needs to be obeyed."""
        return () if self.sketch is None else (self.sketch,)

    def kept(
        self,
        costs_us: NDArray[np.float64],
        arrived_us: NDArray[np.float64],
        drawn: NDArray[np.float64],
        worth: NDArray[np.float64] | float = 1.0,
    ) -> NDArray[np.bool_]:
        """Which tuples pass, of one lane and in order of arrival: as the simulator and workers judge them.

        `drawn` are numbers from 0 to 1 by which tuples of a class that is kept in part are judged, `worth` is what
        each is worth, where that differs.
        """
        if isinstance(self.rule, LatencyRule):
            admits = self.rule.gate().admits
            judged = map(admits, arrived_us.tolist(), costs_us.tolist())
            return np.fromiter(judged, np.bool_, len(costs_us))
        at = np.searchsorted(self.rule.classes.bounds_us, costs_us / worth, side="left")
        found: NDArray[np.bool_] = drawn < np.asarray(self.rule.keeps)[at]
        return found

    def content(self) -> Any:
        kind = "latency" if isinstance(self.rule, LatencyRule) else "worth"
        content = {"operator": self.operator, "columns": list(self.columns), "mean_us": self.mean_us}
        content |= {} if self.sketch is None else {"sketch": self.sketch}
        return content | {"expected": self.expected, kind: self.rule.content()}

    @classmethod
    def from_content(cls, content: Any) -> CostBound:
        latency = content.get("latency")
        rule = WorthRule.from_content(content["worth"]) if latency is None else LatencyRule.from_content(latency)
        columns, sketch = tuple(content["columns"]), content.get("sketch")
        return cls(content["operator"], columns, content["mean_us"], rule, sketch, content["expected"])


def _runs(shares: tuple[float, ...]) -> Iterator[tuple[float, int]]:
    """Equal shares in a row, with their number."""
    first = 0
    for index in range(1, len(shares) + 1):
        if index == len(shares) or shares[index] != shares[first]:
            yield shares[first], index - first
            first = index
