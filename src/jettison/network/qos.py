"""Quality of service: what an output is worth, as a function of how much of it is delivered, which of it, and when.

Three graphs (thesis 2.1.4). The loss-tolerance graph maps the percent of rows delivered to a utility in [0, 1]. It is
piecewise linear, starts at (100, 1), never rises as less is delivered, and is concave: each further percent lost hurts
at least as much as the one before. Concavity is what makes the greedy road map optimal. Value utility says which rows
matter; what a loss costs follows from it. The latency graph maps a row's age to what is left of its utility.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from jettison.errors import NetworkError
from jettison.network.calls import checked_init
from jettison.network.durations import duration_ms
from jettison.network.value import Value

Point = tuple[float, float]

ON_LOSS = ("subset", "estimate", "ignore")
"""What becomes of windows in an overload: some go whole, or all come, estimated from a part of their rows or not."""

_TOLERANCE = 1e-9
_ROUNDING = 1e-6
"""So far may a share that was computed be outside of 0 to 1."""
_EVEN: tuple[Point, ...] = ((100.0, 1.0), (0.0, 0.0))


@checked_init("jt.QoS")
@dataclass(frozen=True)
class QoS:
    """What an output wants.

    `loss` holds points (percent delivered, utility) from (100, 1) down to percent 0; `priority` multiplies the
    utility when outputs are compared. `value` says which values of a column matter, in place of `loss`, which then
    follows from it. `latency` holds points (age, utility), ages as seconds or durations; `stale` is its short form: the
    age from which on a row is worth nothing. What is worth nothing any more is shed first.

    For results of windows: `gap` is how many windows in a row may be missing (0: none may, ever), by default a few.
    Those that come are right: `on_loss="subset"`. A `value` on a column that windows are grouped by lets those of the
    groups that are worth least go first, if need be all of them: to such groups `gap` promises nothing. `gaps` has gaps
    of their own for some groups: with gap=4 and gaps={"zone": {"airport": 0}} no window of the zone airport is ever
    missing. With "estimate" rows go by chance before they are aggregated instead: all windows come, with counts, sums
    and averages that are estimated, and an interval around each in two more columns (`network.windows.estimates`). With
    "ignore" they go too, and results are of what is left: counts and sums are too low.

    `min_accuracy` is a floor: the share of source rows (0 to 1) that must be processed for this output, however large
    an overload is. Of windows it is the share that must come. A floor wins over the budget (`plan.floors`).

    `latency_goal` is how long a tuple may wait for operators that are timed (`stream.map`), such as "2 seconds": the
    shedder "las" drops tuples while that is exceeded, also where a batch fits its budget.

    >>> qos = QoS(loss=[(100, 1.0), (50, 0.8), (0, 0.0)], priority=2)
    >>> qos.utility(1.0), qos.utility(0.75), qos.utility(0.25)
    (1.0, 0.9, 0.4)
    >>> QoS(latency=[("0 seconds", 1.0), ("10 seconds", 1.0), ("1 minute", 0.0)]).latency_utility(35.0)
    0.5
    >>> QoS(stale="1 minute").stale_s
    60.0
    """

    loss: Sequence[Point] = _EVEN
    priority: float = 1.0
    value: Value | None = None
    latency: Sequence[tuple[float | str, float]] = ()
    stale: str | None = None
    gap: int | None = None
    on_loss: str = "subset"
    gaps: Mapping[str, Mapping[Any, int]] | None = None
    min_accuracy: float = 0.0
    latency_goal: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "loss", _points(self.loss))
        if self.value is not None and not isinstance(self.value, Value):
            raise NetworkError(f"QoS value is {self.value!r}: give jt.Value(column, intervals).")
        if self.value is not None and self.loss != _EVEN:
            raise NetworkError(
                f"QoS has a loss graph and a value utility of {self.value.column!r}, from which one follows: "
                f"leave one of them out."
            )
        if self.stale is not None and self.latency:
            raise NetworkError("QoS has both latency and stale: stale is the short form, leave one of them out.")
        if self.gap is not None and (isinstance(self.gap, bool) or not isinstance(self.gap, int) or self.gap < 0):
            raise NetworkError(f"QoS gap is {self.gap!r}: give a whole number of windows, 0 or more, such as 4.")
        if self.on_loss not in ON_LOSS:
            raise NetworkError(f"QoS on_loss is {self.on_loss!r}: say one of {', '.join(map(repr, ON_LOSS))}.")
        if self.gap is not None and self.on_loss != "subset":
            raise NetworkError(
                f"QoS has a gap of {self.gap} and on_loss={self.on_loss!r}: windows are either dropped whole or "
                f"thinned out, leave one of them out."
            )
        if self.value is not None and self.on_loss == "estimate":
            raise NetworkError(
                f"QoS values {self.value.column!r} and has on_loss='estimate': what goes by value cannot be estimated "
                f"from what stays, leave one of them out."
            )
        if self.gaps is not None:
            object.__setattr__(self, "gaps", _gaps(self.gaps))
            if self.on_loss != "subset" or self.value is not None:
                other = "a value utility" if self.on_loss == "subset" else f"on_loss={self.on_loss!r}"
                raise NetworkError(
                    f"QoS has gaps and {other}: windows of groups go by one rule, leave one of them out."
                )
        object.__setattr__(self, "latency", _ages(self.latency))
        if self.stale is not None:
            duration_ms(self.stale, "QoS stale")
        if self.latency_goal is not None:
            duration_ms(self.latency_goal, "QoS latency_goal")
        number = isinstance(self.priority, int | float) and not isinstance(self.priority, bool)
        if not (number and math.isfinite(self.priority) and self.priority > 0):
            raise NetworkError(f"QoS priority is {self.priority!r}: give a number above 0 (1 is the usual weight).")
        object.__setattr__(self, "priority", float(self.priority))
        floor = self.min_accuracy
        if isinstance(floor, bool) or not isinstance(floor, int | float) or not 0 <= floor <= 1:
            raise NetworkError(
                f"QoS min_accuracy is {floor!r}: give the share of source rows that must be processed, from 0 to 1, "
                f"such as 0.2."
            )
        object.__setattr__(self, "min_accuracy", float(floor))
        _check(self.loss)

    def utility(self, delivered_share: float) -> float:
        """Utility when `delivered_share` (0 to 1) of the output's rows are delivered, priority left out."""
        if not isinstance(delivered_share, int | float) or not -_ROUNDING <= delivered_share <= 1.0 + _ROUNDING:
            raise NetworkError(
                f"QoS.utility: delivered_share is {delivered_share!r}: give a share from 0 to 1, such as 0.75 for 75 "
                f"percent."
            )
        percent = min(100.0, max(0.0, 100.0 * delivered_share))
        for (right, high), (left, low) in pairwise(self.loss):
            if percent >= left:
                weight = (percent - left) / (right - left)
                return weight * high + (1.0 - weight) * low
        return self.loss[-1][1]

    @property
    def stale_s(self) -> float | None:
        """The age in seconds from which on a row is worth nothing; None when it always is worth something."""
        if self.stale is not None:
            return duration_ms(self.stale, "QoS stale") / 1000
        return next((float(age) for age, utility in self.latency if utility <= 0.0), None)

    @property
    def latency_goal_us(self) -> float | None:
        """The goal in microseconds.

        >>> QoS(latency_goal="2 seconds").latency_goal_us
        2000000.0
        """
        return None if self.latency_goal is None else 1000.0 * duration_ms(self.latency_goal, "QoS latency_goal")

    def latency_utility(self, age_s: float) -> float:
        """What is left of a row's utility at this age."""
        if self.stale is not None:
            return 1.0 if age_s < (self.stale_s or 0.0) else 0.0
        points = [(float(age), utility) for age, utility in self.latency]
        if not points or age_s <= points[0][0]:
            return 1.0
        for (left, high), (right, low) in pairwise(points):
            if age_s <= right:
                weight = (age_s - left) / (right - left)
                return (1.0 - weight) * high + weight * low
        return points[-1][1]


def _gaps(given: Mapping[str, Mapping[Any, int]]) -> dict[str, dict[str, int]]:
    """Gaps of groups, by the text of the column's value, checked."""
    example = 'such as {"zone": {"airport": 0}}'
    if not isinstance(given, Mapping) or len(given) != 1 or not all(isinstance(e, Mapping) for e in given.values()):
        raise NetworkError(f"QoS gaps are {given!r}: name one column with gaps by its value, {example}.")
    ((column, by_value),) = given.items()
    if not isinstance(column, str) or not column.strip():
        raise NetworkError(f"QoS gaps name the column {column!r}: give a text, {example}.")
    for value, gap in by_value.items():
        if isinstance(gap, bool) or not isinstance(gap, int) or gap < 0:
            raise NetworkError(
                f"QoS gaps of {column!r}: {value!r} has {gap!r}: give a whole number of windows, {example}."
            )
        if value is None:
            raise NetworkError(f"QoS gaps of {column!r}: the group of nulls cannot have one of its own: leave it out.")
    return {column: {_as_text(value): gap for value, gap in by_value.items()}}


def _as_text(value: Any) -> str:
    """A value as Spark writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _points(points: Iterable[Iterable[float]]) -> tuple[Point, ...]:
    try:
        return tuple((float(percent), float(utility)) for percent, utility in points)
    except (TypeError, ValueError) as error:
        raise NetworkError(
            f"QoS loss is {points!r}: give points (percent delivered, utility), such as [(100, 1.0), (0, 0.0)]."
        ) from error


def _ages(points: Iterable[tuple[float | str, float]]) -> tuple[Point, ...]:
    """The latency graph in seconds, checked: from utility 1 at age 0 on, never rising."""
    found: list[Point] = []
    given: Any = points
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise NetworkError(f"QoS latency is {points!r}: give points (age, utility), such as [('10 seconds', 1.0)].")
    for point in points:
        try:
            age, utility = point
            seconds = duration_ms(age, "QoS latency", zero=True) / 1000 if isinstance(age, str) else float(age)
            found.append((seconds, float(utility)))
        except (TypeError, ValueError) as error:
            raise NetworkError(
                f"QoS latency: {point!r} is no point (age, utility), such as ('10 seconds', 1.0)."
            ) from error
    for point in found:
        if not (math.isfinite(point[0]) and point[0] >= 0 and 0 <= point[1] <= 1):
            raise NetworkError(f"QoS latency: point {point} needs an age from 0 on and a utility within [0, 1].")
    if found and found[0] != (0.0, 1.0):
        raise NetworkError(f"QoS latency: the first point is {found[0]}: a fresh row is worth 1, start at (0, 1.0).")
    for before, after in pairwise(found):
        if after[0] <= before[0] or after[1] > before[1]:
            raise NetworkError(f"QoS latency: from {before} to {after}: let ages rise and utility never rise.")
    return tuple(found)


def _check(loss: Sequence[Point]) -> None:
    if len(loss) < 2:
        raise NetworkError(f"QoS loss has {len(loss)} point(s): at least (100, 1.0) and (0, utility) are needed.")
    for point in loss:
        percent, utility = point
        if not 0 <= percent <= 100:
            raise NetworkError(f"QoS loss: the percent of point {point} is outside [0, 100].")
        if not 0 <= utility <= 1:
            raise NetworkError(f"QoS loss: the utility of point {point} is outside [0, 1].")
    if loss[0] != (100.0, 1.0):
        raise NetworkError(
            f"QoS loss: the first point is {loss[0]}, but full delivery is worth 1: start at (100, 1.0)."
        )
    if loss[-1][0] != 0.0:
        raise NetworkError(f"QoS loss: the last point is {loss[-1]}: end at percent 0, such as (0, 0.0).")
    steepness = 0.0
    for before, after in pairwise(loss):
        if after[0] >= before[0]:
            raise NetworkError(f"QoS loss: the percent of point {after} does not fall below that of {before}.")
        if after[1] > before[1] + _TOLERANCE:
            raise NetworkError(f"QoS loss is not monotone: the utility rises from {before} to {after}.")
        slope = (before[1] - after[1]) / (before[0] - after[0])
        if slope < steepness - _TOLERANCE:
            raise NetworkError(
                f"QoS loss is not concave at point {before}: utility falls by {steepness:.4g} per percent before it "
                f"and by only {slope:.4g} after it. Raise the utility of {before} or lower that of {after}."
            )
        steepness = slope
