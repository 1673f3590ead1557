"""Aggregate functions as partial results that can be merged, in Spark SQL.

A recipe has partials (aggregates over rows), for each how several of them become one, and the final value of those:
avg(fare) is sum(fare) and count(fare), merged by sum and sum, finally divided. In `merge` and `final`, #0, #1, ...
are the columns of the recipe's own partials. Partials of the same SQL are kept once, whoever asks for them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from jettison.errors import NetworkError
from jettison.network.columns.words import an

_PIECE = re.compile(r"`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|.", re.DOTALL)
_CALL = re.compile(r"\s*(\w+)\s*\((.*)\)\s*", re.DOTALL)
_DISTINCT = re.compile(r"\s*distinct\b(.*)", re.DOTALL | re.IGNORECASE)

_NUMBER = re.compile(r"\d+(\.\d*)?|\.\d+")
_SETTINGS = {"approx_count_distinct": (1,), "percentile_approx": (2,), "approx_percentile": (2,)}
"""By function, the arguments that say how exact it is."""
_DEFAULT_RSD = 0.05
_DEFAULT_ACCURACY = 1000
_SKETCHED = ("int", "bigint")
_NOT_HASHED = re.compile(r"\b(map<|variant\b)")
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_WIDE_DIGITS = 28
"""A sum of decimals has ten digits more than they have, and 38 at most."""
_NUMBERS = re.compile(r"(?:tinyint|smallint|int|bigint|float|double|decimal|string|timestamp|void)\b")
"""Types that have a number of type double."""


@dataclass(frozen=True)
class Call:
    """One aggregate as it was written: a function of some arguments."""

    function: str
    arguments: tuple[str, ...]
    distinct: bool = False


@dataclass(frozen=True)
class Partial:
    """What is kept per slice: an aggregate over rows, and over partials of its own kind."""

    sql: str
    merge: str


@dataclass(frozen=True)
class Recipe:
    """How one aggregate is computed: its partials, and its value."""

    partials: tuple[Partial, ...]
    final: str = "#0"
    failed: str | None = None
    """Why there is no value though there were rows to compute it of, null otherwise; None where that cannot be."""


def parse_call(element: str, text: object) -> Call:
    """The function and the arguments of an aggregate; `element` is named in errors.

    >>> parse_call("aggregate 'a'", "percentile_approx(fare, array(0.5, 0.9))")
    Call(function='percentile_approx', arguments=('fare', 'array(0.5, 0.9)'), distinct=False)
    """
    found = _CALL.fullmatch(text) if isinstance(text, str) else None
    parts = None if found is None else _arguments(found[2])
    if found is None or parts is None:
        raise NetworkError(
            f"{element}: {text!r} is not one call of an aggregate function, such as 'avg(fare)': write a condition as "
            f"count_if(...) or CASE WHEN inside of it, compute further with .with_columns(), and give functions of "
            f"your own as jettison.aggregate(...) or jettison.whole_window(...)."
        )
    function = found[1].lower()
    if function not in _RECIPES:
        raise NetworkError(
            f"{element}: unknown aggregate function {function!r} in {text!r}. Known: {', '.join(KNOWN)}."
        )
    unique = _DISTINCT.fullmatch(parts[0])
    if unique is not None:
        parts = [unique[1].strip(), *parts[1:]]
    least, most, _ = _RECIPES[function]
    if not least <= len(parts) <= most or not all(parts):
        counts = f"{least}" if least == most else f"{least} to {most}"
        raise NetworkError(f"{element}: {text!r} has not {counts} argument{'' if counts == '1' else 's'}.")
    if unique is not None and (function not in ("count", "collect_set") or len(parts) != 1):
        raise NetworkError(f"{element}: {text!r}: DISTINCT goes with count of one column alone.")
    for place in _SETTINGS.get(function, ()):
        if len(parts) > place and not (_NUMBER.fullmatch(parts[place]) and float(parts[place]) > 0):
            raise NetworkError(f"{element}: {text!r}: {parts[place]!r} is not a number above 0.")
    return Call(function, tuple(parts), unique is not None and function == "count")


def recipe(call: Call, kind: str, order: str) -> Recipe:
    """How a call is computed. `kind` is the type of its first argument, `order` what rows are first and last by.

    >>> recipe(parse_call("aggregate 'a'", "avg(fare)"), "double", "t").final
    'try_divide(#0, #1)'
    """
    return _RECIPES[call.function][2](call, kind, order)


def _arguments(text: str) -> list[str] | None:
    """Parts between commas in no brackets and no quotes; None when a bracket closes that was opened before."""
    parts, depth = [""], 0
    for piece in _PIECE.findall(text):
        depth += (piece in "([{") - (piece in ")]}")
        if depth < 0:
            return None
        if piece == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += piece
    return [part.strip() for part in parts] if depth == 0 else None


# --- the functions ----------------------------------------------------------------------------------------------------

_Make = Callable[[Call, str, str], Recipe]


def _same(name: str, merge: str) -> _Make:
    """A function whose partials are merged by one aggregate."""
    return lambda call, kind, order: Recipe((Partial(f"{name}({', '.join(call.arguments)})", merge),))


def summed(of: str, kind: str) -> Recipe:
    """A sum. Where rows that are there can exceed its type it is null, and so is that of every window they are in.

    Spark's own `sum` would end the batch, and every repeat of it. `try_sum` alone is null too when there was nothing to
    add, so that what is merged with it would pass as the sum of all: so values are counted.

    >>> summed("fare", "double").partials[0].sql, summed("cents", "bigint").partials[0].sql
    ('sum(fare)', "named_struct('s', try_sum(cents), 'n', count(cents))")
    """
    if not _overflows(kind):
        return Recipe((Partial(f"sum({of})", "sum(#0)"),))
    lost = "#0.s IS NULL AND #0.n > 0"
    merge = f"named_struct('s', IF(bool_or({lost}), NULL, try_sum(#0.s)), 'n', sum(#0.n))"
    reason = f"sum({of}) is beyond what {an(kind)} holds".replace("\\", "\\\\").replace("'", "\\'")
    partial = Partial(f"named_struct('s', try_sum({of}), 'n', count({of}))", merge)
    return Recipe((partial,), "#0.s", f"IF({lost}, '{reason}', NULL)")


def _overflows(kind: str) -> bool:
    """Whether a sum of values of this type may exceed its own: not of doubles, nor, for rows that fit into a slice, of
    types whose sum is ten digits wider."""
    digits = re.match(r"decimal\((\d+)", kind)
    return int(digits[1]) > _WIDE_DIGITS if digits else kind == "bigint" or kind.startswith("interval")


def _sum(call: Call, kind: str, order: str) -> Recipe:
    return summed(call.arguments[0], kind)


def _count(call: Call, kind: str, order: str) -> Recipe:
    if call.distinct:
        return Recipe((_set(call),), "bigint(size(#0))")
    arguments = "1" if call.arguments == ("*",) else ", ".join(call.arguments)
    return Recipe((Partial(f"count({arguments})", "sum(#0)"),))


def _avg(call: Call, kind: str, order: str) -> Recipe:
    """Whole numbers are added as doubles, as Spark does: their sum may be larger than a long, their mean is not."""
    of = call.arguments[0]
    total = summed(f"double({of})", "double") if kind in _WHOLE or kind == "string" else summed(of, kind)
    return Recipe((*total.partials, Partial(f"count({of})", "sum(#1)")), f"try_divide({total.final}, #1)", total.failed)


def _moments(final: str) -> _Make:
    """Count, mean and squared distance from it, merged pair by pair: sums of squares would cancel out."""

    def made(call: Call, kind: str, order: str) -> Recipe:
        of = f"double({call.arguments[0]})"
        sql = f"named_struct('n', count({of}), 'mean', avg({of}), 'm2', var_pop({of}) * count({of}))"
        return Recipe((Partial(sql, _MERGED_MOMENTS),), final)

    return made


_MERGED_MOMENTS = (
    "aggregate(filter(collect_list(#0), b -> b.n > 0), named_struct('n', 0L, 'mean', 0D, 'm2', 0D), "
    "(a, b) -> IF(a.n = 0, b, "
    "named_struct('n', a.n + b.n, 'mean', a.mean + (b.mean - a.mean) * (b.n / (a.n + b.n)), "
    "'m2', a.m2 + b.m2 + (b.mean - a.mean) * (b.mean - a.mean) * (double(a.n) * b.n / (a.n + b.n)))))"
)
"""Begins with the first one as it is: the square of a large mean would be infinite, and NaN times no rows."""
_POP = "IF(#0.n > 0, #0.m2 / #0.n, NULL)"
_SAMP = "IF(#0.n > 1, #0.m2 / (#0.n - 1), NULL)"


def _distinct_count(call: Call, kind: str, order: str) -> Recipe:
    """A HyperLogLog sketch, whose relative error is about 1.04 / sqrt(2^k).

    It passes empty texts over, and takes few types: so it gets hashes, the very ones that Spark's own function uses.
    """
    rsd = float(call.arguments[1]) if len(call.arguments) > 1 else _DEFAULT_RSD
    bits = min(21, max(4, math.ceil(2 * math.log2(1.04 / rsd))))
    of = call.arguments[0]
    if kind not in _SKETCHED:
        hashed = f"string({of})" if _NOT_HASHED.search(kind) else of
        of = f"IF(({of}) IS NULL, NULL, xxhash64({hashed}))"
    return Recipe((Partial(f"hll_sketch_agg({of}, {bits})", "hll_union_agg(#0)"),), "hll_sketch_estimate(#0)")


def _percentile(call: Call, kind: str, order: str) -> Recipe:
    """A KLL sketch, whose error in rank is about 2.3 / k^0.9; with up to k values it is exact.

    With Spark's own default accuracy, 10,000, a sketch would be seven times as large. It passes NaN over.
    """
    if not _NUMBERS.match(kind):
        raise NetworkError(
            f"a percentile of {an(kind)} is not known: take a number, such as {call.function}(unix_date(day), 0.5)."
        )
    accuracy = float(call.arguments[2]) if len(call.arguments) > 2 else _DEFAULT_ACCURACY
    k = min(65535, max(8, math.ceil((2.296 * accuracy) ** (1 / 0.9021))))
    whole = kind in _WHOLE
    of = f"{'bigint' if whole else 'double'}({call.arguments[0]})"
    name = "bigint" if whole else "double"
    wanted = f"CAST({call.arguments[1]} AS {'array<double>' if 'array' in call.arguments[1].lower() else 'double'})"
    final = f"kll_sketch_get_quantile_{name}(#0, {wanted})"
    partial = Partial(f"kll_sketch_agg_{name}({of}, {k})", f"kll_merge_agg_{name}(#0)")
    return Recipe((partial,), f"IF(kll_sketch_get_n_{name}(#0) > 0, {final}, NULL)")


def _end(name: str) -> _Make:
    """The first or last value by event time; with a second argument `true`, nulls are passed over."""
    best = {"first": "min", "last": "max"}[name]

    def made(call: Call, kind: str, order: str) -> Recipe:
        of = call.arguments[0]
        skips = len(call.arguments) > 1 and call.arguments[1].lower() == "true"
        by = f"IF(({of}) IS NULL, NULL, {order})" if skips else order
        return Recipe(
            (Partial(f"{best}_by({of}, {by})", f"{best}_by(#0, #1)"), Partial(f"{best}({by})", f"{best}(#1)"))
        )

    return made


def _extreme_by(best: str) -> _Make:
    """The value where another is least or largest."""

    def made(call: Call, kind: str, order: str) -> Recipe:
        of, by = call.arguments
        return Recipe(
            (Partial(f"{best}_by({of}, {by})", f"{best}_by(#0, #1)"), Partial(f"{best}({by})", f"{best}(#1)"))
        )

    return made


def _set(call: Call) -> Partial:
    return Partial(f"collect_set({call.arguments[0]})", "array_distinct(flatten(collect_list(#0)))")


_RECIPES: dict[str, tuple[int, int, _Make]] = {
    "count": (1, 99, _count),
    "count_if": (1, 1, _same("count_if", "sum(#0)")),
    "sum": (1, 1, _sum),
    "avg": (1, 1, _avg),
    "mean": (1, 1, _avg),
    "min": (1, 1, _same("min", "min(#0)")),
    "max": (1, 1, _same("max", "max(#0)")),
    "min_by": (2, 2, _extreme_by("min")),
    "max_by": (2, 2, _extreme_by("max")),
    "bool_and": (1, 1, _same("bool_and", "bool_and(#0)")),
    "bool_or": (1, 1, _same("bool_or", "bool_or(#0)")),
    "stddev": (1, 1, _moments(f"sqrt({_SAMP})")),
    "stddev_samp": (1, 1, _moments(f"sqrt({_SAMP})")),
    "stddev_pop": (1, 1, _moments(f"sqrt({_POP})")),
    "variance": (1, 1, _moments(_SAMP)),
    "var_samp": (1, 1, _moments(_SAMP)),
    "var_pop": (1, 1, _moments(_POP)),
    "approx_count_distinct": (1, 2, _distinct_count),
    "percentile_approx": (2, 3, _percentile),
    "approx_percentile": (2, 3, _percentile),
    "first": (1, 2, _end("first")),
    "last": (1, 2, _end("last")),
    "collect_list": (1, 1, _same("collect_list", "flatten(collect_list(#0))")),
    "collect_set": (1, 1, lambda call, kind, order: Recipe((_set(call),))),
}
KNOWN = tuple(_RECIPES)
"""Functions that windows can compute."""
