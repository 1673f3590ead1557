"""Drops as Spark filters. Whether a row stays depends on its identity and the arc alone: read again, it fares alike.

A random drop keeps a row when `hash(identity, seed of the arc) < keep share`. Spark compiles a filter anew when a
number in it changes. So the share stands in an array, which compiled code gets as an object, and the index is no
constant. A semantic drop has a share for every cell of values in that array, and the index is the value's cell. A drop
by key hashes the key's columns, as text, so that an int and a long of the same value fare alike.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar

from jettison.errors import PlanError
from jettison.network.columns.schema import literal, quoted
from jettison.network.windows.estimates import WEIGHT
from jettison.network.windows.time_windows import START
from jettison.plan.drops.buckets import SEED as BUCKETS_SEED
from jettison.plan.drops.buckets import Buckets
from jettison.plan.drops.by_key import ByKey
from jettison.plan.drops.cost_bound import CostBound
from jettison.plan.drops.kind import Drop
from jettison.plan.drops.random import Random
from jettison.plan.drops.semantic import Semantic
from jettison.plan.drops.stratified import Stratified
from jettison.plan.drops.window import Fate, GroupCells, Resolved, Window
from jettison.plan.plan import Plan
from jettison.plan.windows.even_spacing import UNIT
from jettison.plan.windows.fates import BEGINNING, BITS, Segment
from jettison.plan.windows.need_bits import WORD_BITS, Needed
from jettison.spark.maps.task_report import FAULT

IDENTITY = "_jt_id"
TIME = "_jt_time"
HIDDEN = (IDENTITY, TIME, WEIGHT, FAULT)
"""What rows carry along; the last one only rows that were rejected."""
KEY = "_jt_key"
LOOK = "_jt_look"
"""What a drop judges by (a value, a key, the time), where it had to be parsed for that; with a number."""
JUDGED = "_jt_judged"
"""Whether a row passes, where that is counted and then asked for."""
_EPOCH = datetime(1970, 1, 1)
FIRST_US, END_US = ((datetime(year, 1, 1) - _EPOCH) // timedelta(microseconds=1) for year in (2, 9999))
"""Event times before year 2, or from 9999 on, are in no window: they stand for "none" or "for ever", the end of a
window that they are in may be no time any more, and one that is believed would close all windows."""
ADMITTED = "_jt_admitted"
"""Whether a row passes a drop by cost, in frames that `spark.maps.cost_filter` has judged."""
ALL = "true"
"""The condition that every row meets."""
RECORD = ("_jt_topic", "_jt_partition", "_jt_offset")
"""What identifies a record of Kafka, in the columns of a stream that is read from there."""

NONE = "false"
"""The condition that no row meets."""

_BITS = 20
_WHOLE = 1 << _BITS

Column = Callable[[str], str]
"""A column's SQL, by its name."""
Kind = TypeVar("Kind", bound=Drop)
Filter = Callable[[str, Kind, Column], str]
"""The condition under which a row passes, of an arc, a drop of one kind, and the SQL of columns."""
_FILTERS: dict[type[Drop], Filter[Any]] = {}


def arc_seed(arc: str) -> int:
    """A number that is the same for an arc in every run and on every machine."""
    return int.from_bytes(hashlib.blake2b(arc.encode(), digest_size=4).digest(), "big")


def changing(value: object, beside: str) -> str:
    """A number that changes from batch to batch, in SQL, so that the code around it is not compiled anew.

    `beside` is a number that is at hand; where it is null, so is this. With `array[index]` Spark would throw there:
    a null index is -1 where Spark shares a part of an expression, and in ANSI mode such an index is an error.

    >>> changing("7L", "_jt_slice")
    'get(array(7L), int(_jt_slice & 0))'
    """
    return f"get(array({value}), int({beside} & 0))"


def placeable(time: str) -> str:
    """The condition, in SQL, under which an event time can be put into a window: it is in the years 2 to 9998.

    Rows whose time is not count as rows without one.
    """
    moment = f"unix_micros(CAST({time} AS timestamp))"
    return f"coalesce({moment} >= {FIRST_US}L AND {moment} < {END_US}L, false)"


def filters(kind: type[Kind]) -> Callable[[Filter[Kind]], Filter[Kind]]:
    """Register a kind's filter: the condition, in SQL, under which a row passes, never null. A decorator."""

    def registered(give: Filter[Kind]) -> Filter[Kind]:
        taken = _FILTERS.get(kind)
        if taken is not None and (taken.__module__, taken.__qualname__) != (give.__module__, give.__qualname__):
            raise PlanError(
                f"drops of kind {kind.kind!r} have a filter already, {taken.__module__}.{taken.__qualname__}: plans "
                f"that were logged rest on it. Give your kind a name of its own."
            )
        _FILTERS[kind] = give
        return give

    return registered


def keeps(arc: str, drop: Drop, column: Column = quoted) -> str:
    """The condition, in SQL, under which a row passes the drop on an arc, never null; `column` is a column's SQL there.

    >>> from jettison.plan.drops.random import Random
    >>> keeps("trips", Random(0.25))
    'shiftrightunsigned(xxhash64(_jt_id, 4148347162L), 44) < get(array(262144), int(_jt_id & 0))'
    >>> from jettison.plan.drops.by_key import ByKey
    >>> keeps("trips", ByKey(("zone",), 0.25, "trips"))
    'shiftrightunsigned(xxhash64(string(`zone`), 4148347162L), 44) < get(array(262144), int(_jt_id & 0))'
    """
    if type(drop) not in _FILTERS:
        raise PlanError(
            f"the drop on arc {arc!r} is of kind {drop.kind!r}, for which Spark has no filter: register one for "
            f"{type(drop).__qualname__} by jettison.spark.compile.drops.filters."
        )
    return _FILTERS[type(drop)](arc, drop, column)


def drawn(seed: str, judged: str = IDENTITY) -> str:
    """A number below 2^20, in SQL, drawn for what is judged: a hash of it and of the seed.

    >>> drawn("trips")
    'shiftrightunsigned(xxhash64(_jt_id, 4148347162L), 44)'
    """
    return f"shiftrightunsigned(xxhash64({judged}, {arc_seed(seed)}L), {64 - _BITS})"


def share(keep: float) -> str:
    """A share as the number that `drawn` is compared with, in SQL."""
    return changing(round(keep * _WHOLE), IDENTITY)


@filters(Random)
def _by_chance(arc: str, drop: Random, column: Column) -> str:
    return f"{drawn(arc)} < {share(drop.keep)}" if drop.keep > 0 else NONE


@filters(Buckets)
def _by_bucket(arc: str, drop: Buckets, column: Column) -> str:
    """The bucket of a row is `drawn * buckets / 2^20`: it is below `kept` where `drawn` is below this limit."""
    limit = -(-drop.kept * _WHOLE // drop.buckets)
    return f"{drawn(BUCKETS_SEED)} < {changing(limit, IDENTITY)}" if drop.kept > 0 else NONE


@filters(ByKey)
def _by_key(arc: str, drop: ByKey, column: Column) -> str:
    key = ", ".join(f"string({column(name)})" for name in drop.columns)
    return f"{drawn(drop.seed, key)} < {share(drop.keep * drop.of)}" if drop.keep > 0 else NONE


@filters(Stratified)
def _by_group(arc: str, drop: Stratified, column: Column) -> str:
    return f"{drawn(arc)} < {_share_of_group(drop, column)}"


@filters(Semantic)
def _by_value(arc: str, drop: Semantic, column: Column) -> str:
    shares = ", ".join(str(round(each * _WHOLE)) for each in drop.keeps)
    value = f"try_cast({column(drop.column)} AS double)"
    return f"{drawn(arc)} < get(array({shares}), {cell(drop.bounds, value)})"


@filters(Window)
def _by_window(arc: str, drop: Window, column: Column) -> str:
    return is_needed(drop, column=column)


@filters(CostBound)
def _by_cost(arc: str, drop: CostBound, column: Column) -> str:
    return ADMITTED


def weight(drop: Drop | None, before: str | None = None) -> str:
    """How many rows one stands for that has passed a drop, in SQL: one over the share that it was kept with.

    `before` is what it stood for above the drop; None where it stood for itself.

    >>> from jettison.plan.drops.random import Random
    >>> weight(Random(0.25)), weight(None)
    ('get(array(4.0D), int(_jt_id & 0))', '1D')
    """
    if drop is None or drop.judges not in ("chance", "group") or drop.keep == 0:
        return before or "1D"
    # the share as it is judged by, in whole parts of 2^20
    if isinstance(drop, Stratified):
        factor = f"({float(2**_BITS)}D / {_share_of_group(drop, quoted)})"
    else:
        factor = changing(f"{2**_BITS / round(drop.keep * 2**_BITS)}D", IDENTITY)
    return factor if before is None else f"{before} * {factor}"


def group_hash(columns: Sequence[str]) -> str:
    """A hash of a group, in SQL, of columns in SQL; as text, so that it is the same wherever they are looked at."""
    missing = [f"{column} IS NULL" for column in columns] if len(columns) > 1 else []  # a hash passes nulls over
    return f"xxhash64({', '.join([*(f'string({column})' for column in columns), *missing])})"


def _share_of_group(drop: Stratified, column: Callable[[str], str]) -> str:
    """The share of a row's group, in parts of 2^20, in SQL: found at the place that the last bits of its hash say."""
    rest = changing(_parts(drop.rest), IDENTITY)
    if not drop.groups:
        return rest
    slots = drop.slots
    keys, shares = ["0"] * slots, [str(_parts(drop.rest))] * slots
    for group, share in drop.groups:
        keys[group % slots], shares[group % slots] = str(group), str(_parts(share))
    hashed = group_hash([column(name) for name in drop.columns])
    place = f"int({hashed} & {changing(f'{slots - 1}L', IDENTITY)})"
    # one text that Spark takes apart once, instead of thousands of numbers in every step of its analysis
    keyed, shared = (
        f"get(CAST(split('{','.join(each)}', ',') AS array<{kind}>), {place})"
        for each, kind in ((keys, "bigint"), (shares, "int"))
    )
    return f"IF({keyed} = {hashed}, {shared}, {rest})"


def _parts(share: float) -> int:
    return max(1, round(share * _WHOLE))


def is_fresh(since_s: float, time: str = TIME) -> str:
    """The condition, in SQL, that is true for rows not older than this, and for those without a time.

    It asks for the time alone, so that of a backlog nothing else is parsed, not even what identifies a row.

    >>> is_fresh(12.5)
    'coalesce(unix_micros(_jt_time) >= get(array(12500000L), int(unix_micros(_jt_time) & 0)), true)'
    """
    moment = f"unix_micros({time})"
    return f"coalesce({moment} >= {changing(f'{round(1e6 * since_s)}L', moment)}, true)"


def is_needed(drop: Window, time: str = TIME, column: Callable[[str], str] = quoted) -> str:
    """The condition, in SQL, that is true for rows that kept windows need, for those without a time, and for times
    that are too far away to be judged; behind an aggregate, for the results that its fate keeps.

    Numbers that change from batch to batch stand in arrays, as in all drops. Where groups are told apart, there is an
    array for each kind of cell, and the number of the kind for every cell.
    """
    moment = f"unix_micros(CAST({time} AS timestamp))"
    resolved = drop.resolved or Resolved()
    if resolved.everything:
        return ALL
    value = None if resolved.column is None else column(resolved.column)
    if drop.of is not None:
        fate = drop.fates.get(drop.of)
        return ALL if fate is None else is_kept(fate, START if fate.counts_rows else moment, value)
    needed = resolved.needed
    if needed is None:
        return ALL
    edges = (needed.low_us, needed.high_us, *needed.sure_us)
    low, high, sure, until = (changing(f"{edge}L", moment) for edge in edges)
    # of times at the ends of their type neither the difference nor the word's number is there: they are needed
    granule = f"(try_subtract({moment}, {low}) div {needed.granule_us}L)"
    cells = next((each.apart for each in drop.fates.values() if each.apart is not None), None)
    if value is not None and cells is not None and resolved.parts:
        kinds, words = _kinds(cells, value, [_words(each) for each in resolved.parts])
        words = f"get({words}, {kinds})"
    else:
        words = _words(needed)
    word = f"get({words}, try_cast({granule} div {WORD_BITS}L AS int))"
    bit = f"shiftright({word}, int({granule} % {WORD_BITS}L)) & 1L"
    judged = f"coalesce({moment} < {low} OR {moment} >= {high} OR ({bit}) = 1L, true)"
    # IF, as of OR Spark may work out parts of the right side for every row
    return f"IF({moment} >= {sure} AND {moment} < {until}, true, {judged})"


def _words(needed: Needed) -> str:
    """Words as an array: one text, taken apart once; many numbers Spark would look at in every step of its analysis."""
    return f"CAST(split('{','.join(map(str, needed.words))}', ',') AS array<bigint>)"


def _kinds(cells: GroupCells, value: str, by_cell: Sequence[str]) -> tuple[str, str]:
    """The number of a value's kind, and an array of all kinds, where cells with the same text are of one kind."""
    kinds = list(dict.fromkeys(by_cell))
    numbers = ", ".join(str(kinds.index(each)) for each in by_cell)
    at = cell(cells.bounds, f"try_cast({value} AS double)") if cells.bounds else named_cell(cells.names, value)
    return f"get(array({numbers}), {at})", f"array({', '.join(kinds)})"


def named_cell(names: Sequence[str], value: str) -> str:
    """The number of the name that a value has, as text; that of all others, and of null, is the last.

    >>> named_cell(("airport",), "`zone`")
    "CASE string(`zone`) WHEN 'airport' THEN 0 ELSE 1 END"
    """
    cases = " ".join(f"WHEN {literal(name)} THEN {number}" for number, name in enumerate(names))
    return f"CASE string({value}) {cases} ELSE {len(names)} END"


def is_kept(fate: Fate, moment: str, value: str | None) -> str:
    """Whether a fate keeps the window that starts at a moment: the last segment that has begun there judges."""
    if not fate.schedule.segments and not fate.schedule.groups:
        return ALL
    index = f"(({moment} - pmod({moment}, {fate.slide_us}L)) div {fate.slide_us}L)"
    segments = _segments(fate.schedule.segments)
    if fate.apart is not None and value is not None:
        by_cell = [_segments(fate.schedule.of(str(number))) for number in range(len(fate.apart.shares))]
        kind, lists = _kinds(fate.apart, value, by_cell)
        segments = f"get({lists}, {kind})"
    into = f"pmod({index} - s.first + s.ahead, s.block)"
    drawn = f"shiftrightunsigned(xxhash64(s.seed, '', {index} - {into}), {64 - BITS})"
    blocks = f"(({index} - s.first + s.ahead) div s.block)"
    due = f"pmod(pmod({blocks}, {UNIT}L) * pmod(s.rate, {UNIT}L) + s.phase, {UNIT}L)"
    lost = f"(s.together * (({due} + s.rate) div {UNIT}L))"
    behind = f"(({into} * {lost} + s.block - 1L) div s.block)"
    before = f"((({into} - 1L) * {lost} + s.block - 1L) div s.block)"
    kept = f"(s.heads AND {into} = 0L) OR IF(s.together > 0L, s.heads AND {behind} <= {before}, {drawn} >= s.bound)"
    return f"coalesce(aggregate({segments}, true, (k, s) -> IF({index} < s.first, k, {kept})), true)"


def _segments(segments: Sequence[Segment]) -> str:
    """Segments as an array; where there are none, one by which all is kept."""
    structs = ", ".join(
        f"named_struct('first', {each.start}L, 'ahead', {each.into}L, 'block', {each.gap + 1}L, 'heads', "
        f"{str(not each.closed).lower()}, 'bound', {each.limit}L, 'seed', {literal(each.seed)}, "
        f"'together', {each.together}L, 'rate', {each.rate}L, 'phase', {each.phase}L)"
        for each in segments or (Segment(BEGINNING, 0.0, 0, ""),)
    )
    return f"array({structs})"


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
