"""Drops as Spark filters. Whether a row stays depends on its identity and the arc alone: read again, it fares alike.

A random drop keeps a row when `hash(identity, seed of the arc) < keep share`. Spark compiles a filter anew when a
number in it changes. So the share stands in an array, which compiled code gets as an object, and the index is no
constant. A semantic drop has a share for every cell of values in that array, and the index is the value's cell. A drop
by key hashes the key's columns, as text, so that an int and a long of the same value fare alike.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from jettison.network.schema import quoted
from jettison.plan.fate import BITS
from jettison.plan.plan import ByKey, Drop, Fate, Plan, Semantic, Window
from jettison.plan.window_bits import WORD_BITS

IDENTITY = "_jt_id"
TIME = "_jt_time"
HIDDEN = (IDENTITY, TIME)
KEY = "_jt_key"
LOOK = "_jt_look"
"""What a drop judges by (a value, a key, the time), where it had to be parsed for that; with a number."""
JUDGED = "_jt_judged"
"""Whether a row passes, where that is counted and then asked for."""
ALL = "true"
"""The condition that every row meets."""
RECORD = ("_jt_topic", "_jt_partition", "_jt_offset")
"""What identifies a record of Kafka, in the columns of a stream that is read from there."""

_BITS = 20


def arc_seed(arc: str) -> int:
    """A number that is the same for an arc in every run and on every machine."""
    return int.from_bytes(hashlib.blake2b(arc.encode(), digest_size=4).digest(), "big")


def keeps(arc: str, drop: Drop, column: Callable[[str], str] = quoted) -> str:
    """The condition, in SQL, under which a row passes the drop on an arc, never null; `column` is a column's SQL there.

    >>> from jettison.plan.plan import Random
    >>> keeps("trips", Random(0.25))
    'shiftrightunsigned(xxhash64(_jt_id, 4148347162L), 44) < array(262144)[int(_jt_id & 0)]'
    >>> from jettison.plan.plan import ByKey
    >>> keeps("trips", ByKey(("zone",), 0.25, "trips"))
    'shiftrightunsigned(xxhash64(string(`zone`), 4148347162L), 44) < array(262144)[int(_jt_id & 0)]'
    """
    if isinstance(drop, Window):
        return is_needed(drop)
    if drop.keep == 0 and not isinstance(drop, Semantic):
        return "false"
    seed, judged = arc_seed(arc), IDENTITY
    if isinstance(drop, ByKey):
        seed, judged = arc_seed(drop.seed), ", ".join(f"string({column(name)})" for name in drop.columns)
    drawn = f"shiftrightunsigned(xxhash64({judged}, {seed}L), {64 - _BITS})"
    if isinstance(drop, Semantic):
        shares = ", ".join(str(round(share * 2**_BITS)) for share in drop.keeps)
        return f"{drawn} < array({shares})[{cell(drop.bounds, f'try_cast({column(drop.column)} AS double)')}]"
    share = drop.keep * drop.of if isinstance(drop, ByKey) else drop.keep
    return f"{drawn} < array({round(share * 2**_BITS)})[int({IDENTITY} & 0)]"


def is_fresh(since_s: float, time: str = TIME) -> str:
    """The condition, in SQL, that is true for rows not older than this, and for those without a time.

    It asks for the time alone, so that of a backlog nothing else is parsed, not even what identifies a row.

    >>> is_fresh(12.5)
    'coalesce(unix_micros(_jt_time) >= array(12500000L)[int(unix_micros(_jt_time) & 0)], true)'
    """
    moment = f"unix_micros({time})"
    return f"coalesce({moment} >= array({round(1e6 * since_s)}L)[int({moment} & 0)], true)"


def is_needed(drop: Window, time: str = TIME) -> str:
    """The condition, in SQL, that is true for rows that kept windows need, for those without a time, and for times
    that are too far away to be judged; behind an aggregate, for the results that its fate keeps.

    Numbers that change from batch to batch stand in arrays, as in all drops.
    """
    moment = f"unix_micros(CAST({time} AS timestamp))"
    if drop.of is not None:
        return ALL if not drop.fates else _is_kept(drop.fates[drop.of], moment)
    if drop.needed is None:
        return ALL
    # `get`, as an index that is null is -1 where Spark shares a part of an expression
    edges = (drop.needed.low_us, drop.needed.high_us, *drop.needed.sure_us)
    low, high, sure, until = (f"get(array({edge}L), int({moment} & 0))" for edge in edges)
    granule = f"(({moment} - {low}) div {drop.needed.granule_us}L)"
    # one text, taken apart once, instead of many numbers that Spark looks at again in every step of its analysis
    words = f"CAST(split('{','.join(map(str, drop.needed.words))}', ',') AS array<bigint>)"
    bit = f"shiftright(get({words}, int({granule} div {WORD_BITS}L)), int({granule} % {WORD_BITS}L)) & 1L"
    judged = f"coalesce({moment} < {low} OR {moment} >= {high} OR ({bit}) = 1L, true)"
    # IF, as of OR Spark may work out parts of the right side for every row
    return f"IF({moment} >= {sure} AND {moment} < {until}, true, {judged})"


def _is_kept(fate: Fate, moment: str) -> str:
    """Whether a fate keeps the window that starts at a moment: the last segment that has begun there judges."""
    if not fate.schedule.segments:
        return ALL
    index = f"(({moment} - pmod({moment}, {fate.slide_us}L)) div {fate.slide_us}L)"
    segments = ", ".join(
        f"named_struct('first', {each.start}L, 'ahead', {each.into}L, 'block', {each.gap + 1}L, 'heads', "
        f"{str(not each.closed).lower()}, 'bound', {each.limit}L, 'seed', {literal(each.seed)})"
        for each in fate.schedule.segments
    )
    into = f"pmod({index} - s.first + s.ahead, s.block)"
    drawn = f"shiftrightunsigned(xxhash64(s.seed, '', {index} - {into}), {64 - BITS})"
    kept = f"(s.heads AND {into} = 0L) OR {drawn} >= s.bound"
    return f"coalesce(aggregate(array({segments}), true, (k, s) -> IF({index} < s.first, k, {kept})), true)"


def literal(text: str) -> str:
    """A text as a SQL literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def passes(arc: str, plan: Plan) -> str | None:
    """The condition, in SQL, under which a row passes all that a plan puts on an inner arc; None without anything."""
    parts = []
    if arc in plan.stale:
        parts.append(is_fresh(plan.stale[arc]))
    if arc in plan.drops:
        parts.append(keeps(arc, plan.drops[arc]))
    return " AND ".join(parts) or None


def cell(bounds: Sequence[float], value: str) -> str:
    """The number of the cell that a value is in, in SQL; the last for all other values, null and NaN.

    >>> cell((0.0, 50.0, 100.0), "x")
    'CASE WHEN x >= 0.0D AND x <= 100.0D THEN IF(x < 50.0D, 0, 1) ELSE 2 END'
    """
    inside = f"{value} >= {bounds[0]!r}D AND {value} <= {bounds[-1]!r}D"
    return f"CASE WHEN {inside} THEN {_halved(bounds, value, 0, len(bounds) - 1)} ELSE {len(bounds) - 1} END"


def _halved(bounds: Sequence[float], value: str, first: int, last: int) -> str:
    """A search by halves among the cells from `first` up to `last`."""
    if last - first == 1:
        return str(first)
    middle = (first + last) // 2
    lower, upper = _halved(bounds, value, first, middle), _halved(bounds, value, middle, last)
    return f"IF({value} < {bounds[middle]!r}D, {lower}, {upper})"


def identity_of(columns: Sequence[str]) -> str:
    """The hidden identity, in SQL: a hash of these columns.

    >>> identity_of(["trip", "zone"])
    'xxhash64(`trip`, `zone`) AS _jt_id'
    """
    return f"xxhash64({', '.join(map(quoted, columns))}) AS {IDENTITY}"
