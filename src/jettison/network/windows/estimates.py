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
which true sums (T - true)^2 <= q^2 (V + b (true - T)) holds (Wilson's interval for a count). Downwards b is
V T^3 / A^4 with A = sum(w |x|): V / T for values of one sign, nearly nothing for values around 0. Upwards it is at
least (m + 1/2) c, where a row stands for m rows beside itself and c is the size of a value that may have been missed:
1 for a count, else what the whole stream tells (`estimate_context`). The half is for rows being whole; downwards half
of a row is taken off. Where values may be negative, the same holds downwards.

What the stream tells is of use to groups that are like it. If rows of size c were as frequent here as in the stream, n
rows would hold n s of them, s = E x^2 / c^2. A group whose own E x^2 is r times the stream's has a chance of about
exp(-D) to be like it, D = n s (1 - r + r ln r); from D = 5 on, c shrinks to sqrt(r) c. A group whose own sample varies
not at all keeps c: it cannot know.

q is 1.96 for a count; for sums and averages, whose variance is itself known from few rows only, it is Student's
quantile. Of fewer than two rows that stand for others no variance is known: then both ends of a sum and of an average
are null. They are null too where no value other than 0 was ever seen. Equal ends mean exact: where a batch may have
dropped all rows of a group (`thinning`), a count's upper end is that for rows of that weight, the ends of sums and
averages are null.

>>> how = estimate(Call("count", ("*",)), "", "bigint")
>>> how.partials[2].sql
'sum(_jt_weight * (_jt_weight - 1))'
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from jettison.network.windows.aggregates import Call, Partial, Recipe, summed
from jettison.network.windows.estimate_context import TOWARDS_LARGEST
from jettison.network.windows.user_aggregates import Own

WEIGHT = "_jt_weight"
"""The hidden column of a row that says how many rows it stands for."""
MISSED = "_jt_missed"
"""The hidden column of results, while they are made: the weight of rows that may have been missed although no row tells
of a drop; 1 where there are none."""
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
_ROUNDING = 1e-12
_UNLIKELY = 5
"""A group like the whole stream has a chance of exp(-5) to differ so much from it."""
_LIKELY = (
    f"IF(s.r <= 0, 1D, sqrt(s.r) + (1 - sqrt(s.r)) * least(1D, exp({_UNLIKELY} - s.p * (1 - s.r + s.r * ln(s.r)))))"
)
"""How much of the size that the stream tells is likely here: `r` is the own mean square over that of the stream, `p`
how many of its large values so many rows would hold."""
_BEND = "coalesce(try_divide(s.v, s.a) * pow(try_divide(s.t, s.a), 3), 0D)"
_BENDS = {"u": "greatest(s.b, s.up + least(s.b, 0D))", "d": "least(s.b, greatest(s.b, 0D) - s.down)"}
"""What V grows by upwards and downwards, from that of the own sample and the sizes of what may have been missed."""
_ENDS = {
    "low": "s.t + s.q * s.q * s.d / 2 - s.q * sqrt(s.v + pow(s.q * s.d / 2, 2)) - IF(s.t > 0, s.o / 2, 0D)",
    "high": "s.t + s.q * s.q * s.u / 2 + s.q * sqrt(s.v + pow(s.q * s.u / 2, 2)) + IF(s.t < 0, s.o / 2, 0D)",
}
"""t + q^2 b / 2 -+ q sqrt(V + q^2 b^2 / 4), with b = d downwards and u upwards, and half of a row of size o off."""


@dataclass(frozen=True)
class Estimate:
    """How one aggregate is estimated: its partials, its value, and the ends of its 95 % confidence interval, null where
    they are not known.

    In `low` and `high`, @name is a fact about the values of column `about`; `sums` says in SQL over partials what
    `estimate_context` observes of it.
    """

    partials: tuple[Partial, ...]
    final: str
    low: str
    high: str
    about: str = ""
    sums: Mapping[str, str] = field(default_factory=dict)
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
    most = f"max({WEIGHT})"
    if call.arguments == ("*",):
        sums = ["count(1)", MORE, f"sum({_A})"]
    else:
        there = " AND ".join(f"({each}) IS NOT NULL" for each in call.arguments)
        counted = call.arguments[0] if call.function == "count_if" else there
        plain = f"{call.function}({', '.join(call.arguments)})"
        sums = [plain, *(f"sum(IF({counted}, {each}, NULL))" for each in (f"{WEIGHT} - 1", _A))]
    rows, heaviest = "(#0 + coalesce(#1, 0D))", f"greatest(coalesce(#3, 1D), {MISSED})"
    given = {"t": rows, "v": "coalesce(#2, 0D)", "q": f"{_Q}D", "w": f"{heaviest} - 1"}
    bends = {"d": "coalesce(try_divide(s.v, s.t), 0D)", "u": "s.w + 0.5D", "o": "1D"}
    ends = _ends(given, bends, _ENDS, {"low": "greatest(s.low, double(#0))"})
    value = f"IF(coalesce(#1, 0D) = 0, #0, CAST(round({rows}) AS {gives}))"
    low, high = (f"IF({heaviest} > 1, {end}, double(#0))" for end in ends)
    return Estimate((*_summed(sums), Partial(most, "max(#3)")), value, low, high)


def _sum(of: str, kind: str, gives: str) -> Estimate:
    x, there = f"double({of})", f"({of}) IS NOT NULL"
    thinned = f"{WEIGHT} > 1 AND {there}"
    # what is kept whole adds nothing: 0 times an infinite value would not be 0
    partials = [
        f"sum({of})",
        f"sum(IF({WEIGHT} > 1, ({WEIGHT} - 1) * {x}, 0D))",
        f"sum(IF({WEIGHT} > 1, {_A} * {x} * {x}, 0D))",
        f"sum({WEIGHT} * abs({x}))",
        f"count_if({thinned})",
        MORE,
        f"sum(IF({there}, {WEIGHT} - 1, NULL))",
        f"count({of})",
        f"sum(IF({thinned}, {_A}, 0D))",
        f"sum({WEIGHT} * {x} * {x})",
    ]
    exact = summed(of, kind)
    rows, total = "(#7 + coalesce(#6, 0D))", f"(double({exact.final}) + coalesce(#1, 0D))"
    given = {
        "t": total,
        "v": "coalesce(#2, 0D)",
        "a": "#3",
        "q": _student("#4"),
        "w": "coalesce(try_divide(#8, #6 + #4), 0D)",
        "r": f"coalesce(least(1D, try_divide(try_divide(#9, {rows}), @square)), 0D)",
        "p": "#4 * @share",
        "o": "coalesce(try_divide(#9, #3), 0D)",
    }
    likely = {"c": f"@jump * {_LIKELY}"}
    most = {"up": "greatest(@most_up, #11)", "down": "greatest(@most_down, -#10)"}
    sizes = {way: f"(s.w + 0.5D) * coalesce(least({end}, s.c), 0D)" for way, end in most.items()}
    # of what is never negative the rows that were seen are a part
    positive = f"s.t >= s.a * (1 - {_ROUNDING}D) AND @most_down = 0 AND #10 >= 0"
    seen = {"low": f"IF({positive}, greatest(s.low, least(s.t, double({exact.final}))), s.low)"}
    ends = _ends(given, likely, {"b": _BEND, **sizes}, _BENDS, _ENDS, seen)
    near = f"round({total})" if kind in _WHOLE else total
    found = _of_thinned(partials, exact.final, near, gives, ends, thinned="#4", more="#5")
    return _about(
        _safe(found, exact), of, x, {"count": "#7", "rows": rows, "total": total, "squares": "#9", "sizes": "#3"}
    )


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
        f"sum({WEIGHT} * {x} * {x})",
    ]
    exact = summed(x, "double") if kind in _WHOLE or kind == "string" else summed(of, kind)
    rows, total = "(#1 + coalesce(#3, 0D))", f"(double({exact.final}) + coalesce(#2, 0D))"
    freedom = _freedom("#8")
    given = {
        "t": f"try_divide({total}, {rows})",
        "n": rows,
        "a": f"try_divide(#7, {rows})",
        "q": _student("#8"),
        "w": "coalesce(try_divide(#4, #3 + #8), 0D)",
        "x": f"try_divide(#10, {rows})",
    }
    spread = "#6 - 2 * s.t * #5 + s.t * s.t * #4"
    varied = {
        "v": f"IF({spread} > {_ROUNDING}D * #6, try_divide(({spread}) * #8 / {freedom}, s.n * s.n), 0D)",
        "y": f"IF(s.x - s.t * s.t > {_ROUNDING}D * s.x, s.x - s.t * s.t, 0D)",
        "p": "#8 * @variance_share",
    }
    like = {"r": "coalesce(least(1D, try_divide(s.y, @variance)), 0D)"}
    least, most = "#11", "#12"
    likely = {"c": _LIKELY, "gu": f"greatest(@high, {most}) - s.t", "gd": f"s.t - least(@low, {least})"}
    # each size is moved towards the largest that there is on its side
    moved = "s.c * @{0} * pow(greatest(1D, coalesce(try_divide(s.{1}, @{0}), 1D)), {2}D)"
    ways = {
        way: f"coalesce(least(s.{gap}, {moved.format(way, gap, TOWARDS_LARGEST)}), 0D)"
        for way, gap in (("up", "gu"), ("down", "gd"))
    }
    # where nothing has ever varied, a value that was missed may be off by as much as the value itself
    known = "s.v > 0 OR s.up > 0 OR s.down > 0"
    sizes = {way: f"try_divide(s.w + 0.5D, s.n) * IF({known}, s.{way}, abs(s.t))" for way in ways}
    bends = {"b": _BEND, **sizes, "o": "coalesce(try_divide(s.y, s.a * s.n), 0D)"}
    mean = f"try_divide({total}, {rows})"
    inside = {
        "low": f"IF(@variance > 0, greatest(s.low, least(@low, {least})), s.low)",
        "high": f"IF(@variance > 0, least(s.high, greatest(@high, {most})), s.high)",
    }
    ends = _ends(given, varied, like, likely, ways, bends, _BENDS, _ENDS, inside)
    found = _of_thinned(partials, f"try_divide({exact.final}, #1)", mean, gives, ends, thinned="#8", more="#9")
    return _about(
        _safe(found, exact), of, x, {"count": "#1", "rows": rows, "total": total, "squares": "#10", "sizes": "#7"}
    )


def _about(found: Estimate, of: str, x: str, sums: Mapping[str, str]) -> Estimate:
    """An estimate that says what is to be observed of its column: the range needs two partials more."""
    first = len(found.partials)
    both = [Partial(f"{name}({x})", f"{name}(#{first + place})") for place, name in enumerate(("min", "max"))]
    sums = {**sums, "low": f"#{first}", "high": f"#{first + 1}"}
    return replace(found, partials=(*found.partials, *both), about=of, sums=sums)


def _safe(found: Estimate, exact: Recipe) -> Estimate:
    """An estimate whose first partial is a sum that does not end the batch where it exceeds its type."""
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
    known = f"IF({MISSED} > 1, NULL, double({exact}))"
    low, high = (f"CASE WHEN {whole} THEN {known} WHEN {thinned} > 1 THEN {end} END" for end in ends)
    # a double may be NaN, or more than the type holds: then there is no value
    return Estimate(_summed(partials), f"IF({whole}, {exact}, try_cast({estimated} AS {gives}))", low, high)


def _ends(*steps: Mapping[str, str]) -> tuple[str, str]:
    """Both ends of an interval, the fields `low` and `high` of the last step; null where they are the same, for that
    means exact, or where one is not a number.

    Step by step, in functions of a struct `s`, so that no part of it stands in the SQL many times: each step may use
    the fields of those before it, and those that no later one uses are left out.
    """
    made, fields = "", dict[str, str]()
    for number, step in enumerate(steps, start=1):
        used = _used([sql for later in steps[number:] for sql in later.values()]) | {"low", "high"}
        fields = {name: f"s.{name}" for name in fields} | dict(step)
        fields = {name: sql for name, sql in fields.items() if name in used}
        struct = "named_struct(" + ", ".join(f"'{name}', {sql}" for name, sql in fields.items()) + ")"
        made = f"transform({made}, s -> {struct})" if made else f"array({struct})"
    low, high = (
        f"element_at(transform({made}, s -> IF(s.high > s.low, nanvl({end}, CAST(NULL AS double)), NULL)), 1)"
        for end in ("s.low", "s.high")
    )
    return low, high


def _used(texts: Sequence[str]) -> set[str]:
    return {name for text in texts for name in re.findall(r"\bs\.(\w+)", text)}
