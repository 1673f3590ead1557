"""Counts, sums and averages estimated from the rows that a random drop has left, with an interval around each.

A row that was kept with probability p stands for w = 1 / p rows (Horvitz and Thompson): it carries its weight w. Then

    estimate of a sum    T = sum(w x), with x = 1 for a count
    its variance         V = sum(w (w - 1) x^2)
    of an average        R = T / N, with V = sum(w (w - 1) (x - R)^2) / N^2, the linearised ratio

All of these are sums, so they lie in slices beside other partials, and windows over batches with different keep shares
stay right. T is kept as sum(x) + sum((w - 1) x). Where nothing was dropped the result is Spark's own, of the same type
bit by bit, and both ends are that, as doubles.

The interval is not T +- 1.96 sqrt(V): with few rows that is too short on the side where the truth mostly lies, because
a sample that has missed large values gives both T and V too low. V grows with T, so as for a Poisson count we ask for
which true sums (T - true)^2 <= q^2 (V + b (true - T)) holds, b = V T^3 / A^4 with A = sum(w |x|): for a count b = V / N
(Wilson's interval), for values of either sign around 0 nearly nothing. q is 1.96 for a count; for sums and averages,
whose variance is itself known from few rows only, it is Student's quantile. Of fewer than two rows that stand for
others no variance is known: then both ends of a sum and of an average are null. A count of which no such row is counted
has V = 0, and b as large as any weight makes it.

>>> how = estimate(Call("count", ("*",)), "", "bigint")
>>> how.partials[2].sql
'sum(_jt_weight * (_jt_weight - 1))'
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from jettison.network.aggregates import Call, Partial, summed
from jettison.network.user_aggregates import Own

WEIGHT = "_jt_weight"
"""The hidden column of a row that says how many rows it stands for."""
LOW, HIGH = "_low", "_high"
ESTIMABLE = ("count", "count_if", "sum", "avg", "mean")

_Q = 1.959963985
"""The normal distribution lies within so many standard deviations with 95 %."""
_STUDENT = (12.706204736175, 4.302652729749, 3.182446305284)
"""Student's quantiles for 1, 2 and 3 degrees of freedom, where the expansion below is too low."""
MORE = f"sum({WEIGHT} - 1)"
"""How many rows the rows stand for beside themselves: 0 where nothing was dropped."""
_A = f"{WEIGHT} * ({WEIGHT} - 1)"
_WHOLE = ("tinyint", "smallint", "int", "bigint")


@dataclass(frozen=True)
class Estimate:
    """How one aggregate is estimated: its partials, its value, and the ends of its 95 % confidence interval, null where
    they are not known."""

    partials: tuple[Partial, ...]
    final: str
    low: str
    high: str
    failed: str | None = None
    """As of a `Recipe`."""


def interval_names(aggregates: Sequence[tuple[str, str | Own]]) -> tuple[str, ...]:
    """The columns of the intervals of aggregates.

    >>> interval_names([("n", "count(*)")])
    ('n_low', 'n_high')
    """
    return tuple(f"{name}{end}" for name, _ in aggregates for end in (LOW, HIGH))


def estimate(call: Call, kind: str, gives: str) -> Estimate:
    """How a call of one of the functions that can be estimated is; of types, `kind` is that of its argument, `gives`
    that of Spark's own result."""
    if call.function in ("count", "count_if"):
        return _count(call, gives)
    return (_sum if call.function == "sum" else _avg)(call.arguments[0], kind, gives)


def _count(call: Call, gives: str) -> Estimate:
    if call.arguments == ("*",):
        partials = _summed(["count(1)", MORE, f"sum({_A})"])
    else:
        there = " AND ".join(f"({each}) IS NOT NULL" for each in call.arguments)
        counted = call.arguments[0] if call.function == "count_if" else there
        plain = f"{call.function}({', '.join(call.arguments)})"
        sums = [plain, *(f"sum(IF({counted}, {each}, NULL))" for each in (f"{WEIGHT} - 1", _A))]
        partials = (*_summed(sums), Partial(f"max({WEIGHT})", "max(#3)"))
    rows = "(#0 + coalesce(#1, 0D))"
    low, high = _ends(rows, "coalesce(#2, 0D)", rows, f"{_Q}D")
    if len(partials) > 3:
        high = f"IF(coalesce(#2, 0D) > 0, {high}, {rows} + {_Q**2}D * (#3 - 1))"
    value = f"IF(coalesce(#1, 0D) = 0, #0, CAST(round({rows}) AS {gives}))"
    return Estimate(partials, value, f"greatest({low}, double(#0))", high)


def _sum(of: str, kind: str, gives: str) -> Estimate:
    x = f"double({of})"
    # what is kept whole adds nothing: 0 times an infinite value would not be 0
    partials = [
        f"sum({of})",
        f"sum(IF({WEIGHT} > 1, ({WEIGHT} - 1) * {x}, 0D))",
        f"sum(IF({WEIGHT} > 1, {_A} * {x} * {x}, 0D))",
        f"sum({WEIGHT} * abs({x}))",
        f"count_if({WEIGHT} > 1 AND ({of}) IS NOT NULL)",
        MORE,
    ]
    exact = summed(of, kind)
    total = f"(double({exact.final}) + coalesce(#1, 0D))"
    ends = _ends(total, "coalesce(#2, 0D)", "#3", _student("#4"))
    near = f"round({total})" if kind in _WHOLE else total
    found = _of_thinned(partials, exact.final, near, gives, ends, thinned="#4", more="#5")
    return replace(found, partials=(*exact.partials, *found.partials[1:]), failed=exact.failed)


def _avg(of: str, kind: str, gives: str) -> Estimate:
    x, there = f"double({of})", f"({of}) IS NOT NULL"
    thinned = f"{WEIGHT} > 1 AND {there}"
    partials = [
        f"sum({x if kind in _WHOLE or kind == 'string' else of})",
        f"count({of})",
        f"sum(IF({WEIGHT} > 1, ({WEIGHT} - 1) * {x}, 0D))",
        f"sum(IF({there}, {WEIGHT} - 1, NULL))",
        f"sum(IF({thinned}, {_A}, 0D))",
        f"sum(IF({thinned}, {_A} * {x}, 0D))",
        f"sum(IF({thinned}, {_A} * {x} * {x}, 0D))",
        f"sum({WEIGHT} * abs({x}))",
        f"count_if({thinned})",
        MORE,
    ]
    rows = "(#1 + coalesce(#3, 0D))"
    exact = summed(x, "double") if kind in _WHOLE or kind == "string" else summed(of, kind)
    mean = f"try_divide(double({exact.final}) + coalesce(#2, 0D), {rows})"
    freedom = _freedom("#8")
    spread = f"greatest(0D, #6 - 2 * s.t * #5 + s.t * s.t * #4) * #8 / {freedom}"
    variance = f"try_divide({spread}, {rows} * {rows})"
    ends = _ends(mean, variance, f"try_divide(#7, {rows})", _student("#8"))
    plain = f"try_divide({exact.final}, #1)"
    found = _of_thinned(partials, plain, mean, gives, ends, thinned="#8", more="#9")
    return replace(found, partials=(*exact.partials, *found.partials[1:]), failed=exact.failed)


def _freedom(thinned: str) -> str:
    return f"greatest({thinned} - 1, 1)"


def _student(thinned: str) -> str:
    """Student's quantile: of few rows as it is, then by its expansion around the normal one (Abramowitz and Stegun
    26.7.5), which is at most 0.3 % too low."""
    freedom = _freedom(thinned)
    first, second = (_Q**3 + _Q) / 4, (5 * _Q**5 + 16 * _Q**3 + 3 * _Q) / 96
    third = (3 * _Q**7 + 19 * _Q**5 + 17 * _Q**3 - 15 * _Q) / 384
    around = f"{_Q}D + ({first}D + ({second}D + {third}D / {freedom}) / {freedom}) / {freedom}"
    few = " ".join(f"WHEN {number} THEN {value}D" for number, value in enumerate(_STUDENT, start=1))
    return f"CASE {freedom} {few} ELSE {around} END"


def _summed(partials: Sequence[str]) -> tuple[Partial, ...]:
    return tuple(Partial(sql, f"sum(#{number})") for number, sql in enumerate(partials))


def _of_thinned(
    partials: Sequence[str], plain: str, estimated: str, gives: str, ends: tuple[str, str], *, thinned: str, more: str
) -> Estimate:
    """The plain aggregate where every row stands for itself alone, else its estimate, with ends if two rows or more
    tell them. Both are cast before one is chosen: a double would not hold all that the plain one does."""
    whole, exact = f"coalesce({more}, 0D) = 0", f"try_cast({plain} AS {gives})"
    low, high = (f"CASE WHEN {whole} THEN double({exact}) WHEN {thinned} > 1 THEN {end} END" for end in ends)
    # a double may be NaN, or more than the type holds: then there is no value
    return Estimate(_summed(partials), f"IF({whole}, {exact}, try_cast({estimated} AS {gives}))", low, high)


def _ends(value: str, variance: str, size: str, q: str) -> tuple[str, str]:
    """Both ends of an interval: value + q^2 b / 2 -+ q sqrt(V + q^2 b^2 / 4), b = V value^3 / size^4.

    Step by step, in functions of a struct `s`, so that no part of it stands in the SQL many times; `variance` may use
    the value as `s.t`.
    """
    first = f"array(named_struct('t', {value}, 'a', {size}, 'q', {q}))"
    second = f"transform({first}, s -> named_struct('t', s.t, 'a', s.a, 'q', s.q, 'v', {variance}))"
    bend = "coalesce(try_divide(s.v, s.a) * pow(try_divide(s.t, s.a), 3), 0D)"
    third = f"transform({second}, s -> named_struct('t', s.t, 'v', s.v, 'q', s.q, 'h', s.q * {bend} / 2))"
    reach = "s.q * sqrt(s.v + s.h * s.h)"
    low, high = (
        f"element_at(transform({third}, s -> IF(s.v > 0, s.t + s.q * s.h {sign} {reach}, s.t)), 1)" for sign in "-+"
    )
    return low, high
