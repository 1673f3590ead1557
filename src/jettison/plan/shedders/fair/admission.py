"""DISSP's algorithm 1: fair shedding, one batch of tuples at a time.

Everything is first taken as discarded. Then the query with the lowest projected SIC gets its batch of tuples with the
highest SIC, until what the node can process is reached. With costs by work, a query prefers the batch with the most
SIC per work: of two sources that are worth the same to it, it takes the slow one first.

The seed keeps queries in a priority queue. The order in which they take their turns is the order of the SIC that each
has before its turn, which only grows from turn to turn: so all turns of all queries, sorted once by that, are the
algorithm's turns, and a cumulative sum says how many of them fit. That takes milliseconds for 10,000 batches.

A batch that does not fit ends admission in the seed, where all batches cost alike. Here costs differ. A batch is
*coarse* if it takes more than 1/16 of what floors leave. A query whose next batch is coarse and does not fit is
finished, and all others go on. If one that is not coarse does not fit, admission ends: queries are equal to within a
batch, and at least 15/16 are used as long as anyone has a use for them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jettison.plan.shedders.fair.competition import Competition, Numbers, Vector

Mask = npt.NDArray[np.bool_]
BY_WORK, BY_TUPLES = "work", "tuples"
_ROUNDING = 1e-9
_COARSE = 1 / 16
"""A batch that takes more than this share of what is given out does not end admission for others."""


@dataclass(frozen=True)
class Admission:
    """The level of every part, the SIC that queries get by it, and what it costs; `fits` unless floors alone do not."""

    levels: Numbers
    sic: Vector
    work_us: float
    tuples: float
    fits: bool = True


@dataclass(frozen=True)
class _Turns:
    """All turns in order: the part whose level rises, the level that it gets, and the level that it has before."""

    part: Numbers
    level: Numbers
    before: Numbers

    @property
    def many(self) -> Mask:
        """Whether a turn raises its part by many levels at once."""
        found: Mask = self.level - self.before > 1
        return found

    def only(self, chosen: Mask | slice) -> _Turns:
        return _Turns(self.part[chosen], self.level[chosen], self.before[chosen])


@dataclass(frozen=True)
class _Room:
    """What is left of the two limits at some levels."""

    work_us: float
    tuples: float


def admit(
    competition: Competition, budget_us: float, most_tuples: float = np.inf, *, costs: str = BY_WORK
) -> Admission:
    """Algorithm 1 for one batch: levels that take no more than `budget_us` and admit no more than `most_tuples`.

    `costs` is by what a query chooses among its own batches: "work" takes the most SIC per work first, "tuples" the
    highest SIC, as in the seed (of two alike, the one with fewer tuples).

    Query 0 costs 64 us in all, query 1 costs 640 us, and there is half of the time: both get half of their rows.

    >>> two = Competition.of(np.zeros(2), np.array([0, 1]), np.ones(2), np.array([64.0, 640.0]))
    >>> admit(two, 352.0).levels.tolist()
    [32, 32]

    Query 1 has lost more of late, so it is ahead now:

    >>> two = Competition.of(np.array([0.4, 0.0]), np.array([0, 1]), np.ones(2), np.array([64.0, 640.0]))
    >>> admit(two, 352.0).levels.tolist()
    [9, 34]

    A bucket of query 1 costs more than there is, so query 1 gets nothing. Query 0 gets all that it can use:

    >>> two = Competition.of(np.zeros(2), np.array([0, 1]), np.ones(2), np.array([64.0, 409_600.0]))
    >>> admit(two, 100.0).levels.tolist()
    [64, 0]
    """
    levels = competition.floor.copy()
    work_us, tuples = competition.work_us(levels), _tuples(competition, levels)
    most = _Room(budget_us + _ROUNDING * max(1.0, abs(budget_us)), most_tuples + _ROUNDING * max(1.0, tuples))
    fits = work_us <= most.work_us
    if fits:
        levels = _without_useless_drops(competition, _served(competition, levels, most, costs))
    return Admission(
        levels, competition.query_sic(levels), competition.work_us(levels), _tuples(competition, levels), fits
    )


def _served(competition: Competition, levels: Numbers, most: _Room, costs: str) -> Numbers:
    """The levels after all turns that fit into both limits, one after the other."""
    turns, room = _turns(competition, costs), _room(competition, levels, most)
    skippable = _coarse(competition, room)[turns.part] | turns.many
    while len(turns.part):
        taken = int(np.searchsorted(_marginal_us(competition, turns, levels).cumsum(), room.work_us, side="right"))
        if np.isfinite(room.tuples):
            gained = _gained(competition, turns, turns.before).cumsum()
            taken = min(taken, int(np.searchsorted(gained, room.tuples, side="right")))
        np.maximum.at(levels, turns.part[:taken], turns.level[:taken])
        if taken == len(turns.part) or not skippable[taken]:
            break
        turns, skippable, room = turns.only(slice(taken, None)), skippable[taken:], _room(competition, levels, most)
        left = _still_open(competition, turns, skippable, levels, room)
        turns, skippable = turns.only(left), skippable[left]
    return levels


def _room(competition: Competition, levels: Numbers, most: _Room) -> _Room:
    return _Room(most.work_us - competition.work_us(levels), most.tuples - _tuples(competition, levels))


def _coarse(competition: Competition, room: _Room) -> Mask:
    """The parts of which one bucket takes much of what is given out."""
    bucket_us = competition.own_us.copy()
    np.add.at(bucket_us, competition.on_part, competition.shared_us[competition.on_arc])
    most_us, most = _COARSE * room.work_us * competition.buckets, _COARSE * room.tuples * competition.buckets
    found: Mask = (bucket_us > most_us) | (competition.tuples > most)
    return found


def _still_open(competition: Competition, turns: _Turns, skippable: Mask, levels: Numbers, room: _Room) -> Mask:
    """The turns that are left when the first one does not fit and is skipped.

    Work only grows: a turn that does not fit alone, on top of what is admitted, never fits later, even if others pay
    for what they share. It ends its query, unless it would raise its part by many levels at once (windows, as their
    gap allows): then the part alone stays as it is.
    """
    never = _alone_us(competition, turns, levels) > room.work_us
    never |= _gained(competition, turns, levels[turns.part]) > room.tuples
    never[0] = True
    never &= skippable
    stays = np.zeros(len(levels), np.bool_)
    stays[turns.part[never & turns.many]] = True
    never &= ~stays[turns.part]
    number, query = np.arange(len(never)), competition.query[turns.part]
    ends = np.full(len(competition.had), len(never))
    np.minimum.at(ends, query[never], number[never])
    found: Mask = ~stays[turns.part] & (number < ends[query])
    return found


def _alone_us(competition: Competition, turns: _Turns, levels: Numbers) -> Vector:
    """What it costs to raise each turn's part to the turn's level, everything else being as it is."""
    rises = np.maximum(0, turns.level - levels[turns.part])
    found: Vector = competition.own_us[turns.part] * rises
    if len(competition.on_arc):
        turn, arc = _arcs_of(competition, turns)
        rises = np.maximum(0, turns.level[turn] - competition.arc_levels(levels)[arc])
        found += np.bincount(turn, rises * competition.shared_us[arc], minlength=len(found))
    return found / competition.buckets


def _gained(competition: Competition, turns: _Turns, before: Numbers) -> Vector:
    """The tuples that each turn admits."""
    found: Vector = competition.tuples[turns.part] * (turns.level - before) / competition.buckets
    return found


def _tuples(competition: Competition, levels: Numbers) -> float:
    return float(competition.tuples @ levels) / competition.buckets


def _turns(competition: Competition, costs: str) -> _Turns:
    """Every query's turns, all together in the order of the SIC that the query has before each."""
    steps = _steps(competition)
    if costs == BY_TUPLES:
        in_query = np.lexsort((competition.tuples, -competition.sic, competition.query))
    else:
        with np.errstate(divide="ignore", invalid="ignore"):
            density = np.where(competition.price_us > 0, competition.sic / competition.price_us, np.inf)
        in_query = np.lexsort((-density, competition.query))
    counts = steps[in_query]
    part = np.repeat(in_query, counts)
    first = np.repeat(np.cumsum(counts) - counts, counts)
    number = np.arange(len(part)) - first
    floor, least = competition.floor[part], competition.least[part]
    start = np.where(floor < least, least - 1, floor)
    level = start + number + 1
    before = np.where(number == 0, floor, level - 1)
    gain = competition.sic[part] * (level - before) / competition.buckets
    query = competition.query[part]
    total = np.cumsum(gain) - gain
    opens = np.ones(len(part), np.bool_)
    opens[1:] = query[1:] != query[:-1]
    began = np.maximum.accumulate(np.where(opens, np.arange(len(part)), 0)) if len(part) else np.zeros(0, np.int64)
    base = competition.query_sic(competition.floor)
    projected = (base[query] + total - total[began]) / competition.weights[query]
    order = np.argsort(projected, kind="stable")
    return _Turns(part[order], level[order], before[order])


def _steps(competition: Competition) -> Numbers:
    """How many turns each part has: one per bucket, the first up to its least level."""
    start = np.where(competition.floor < competition.least, competition.least - 1, competition.floor)
    found: Numbers = np.maximum(0, competition.buckets - start)
    return found


def _marginal_us(competition: Competition, turns: _Turns, levels: Numbers) -> Vector:
    """What each turn costs: its own work, and that of shared arcs as far as nobody before has paid for it."""
    per_bucket = competition.own_us / competition.buckets
    marginal: Vector = per_bucket[turns.part] * (turns.level - turns.before)
    if not len(competition.on_arc):
        return marginal
    arcs = len(competition.shared_us)
    turn, arc = _arcs_of(competition, turns)
    # arc by arc, in order of turns, each beginning with the level that it has: a running maximum is what is paid for
    paid = np.concatenate([np.arange(arcs), arc])
    span = competition.buckets + 1
    reached = paid * span + np.concatenate([competition.arc_levels(levels), turns.level[turn]])
    order = np.argsort(paid.astype(np.uint16) if arcs < 65536 else paid, kind="stable")  # 16 bits: a radix sort
    running = np.maximum.accumulate(reached[order])
    rises = np.diff(running, prepend=running[:1])
    arc_in_order = paid[order]
    rises[1:][arc_in_order[1:] != arc_in_order[:-1]] = 0
    cost = rises * (competition.shared_us / competition.buckets)[arc_in_order]
    by_turn = order - arcs
    is_turn = by_turn >= 0
    marginal += np.bincount(turn[by_turn[is_turn]], cost[is_turn], minlength=len(turns.part))
    return marginal


def _arcs_of(competition: Competition, turns: _Turns) -> tuple[Numbers, Numbers]:
    """Pairs of a turn and a shared arc that it needs, in the order of turns."""
    by_part = np.argsort(competition.on_part, kind="stable")
    needs = np.bincount(competition.on_part, minlength=len(competition.query))
    first, times = np.cumsum(needs) - needs, needs[turns.part]
    turn = np.repeat(np.arange(len(turns.part)), times)
    within = np.arange(len(turn)) - np.repeat(np.cumsum(times) - times, times)
    return turn, competition.on_arc[by_part][first[turns.part][turn] + within]


def _without_useless_drops(competition: Competition, levels: Numbers) -> Numbers:
    """Levels of parts without work of their own, raised to what is carried anyway: a drop there would save nothing."""
    free = competition.own_us <= 0
    if not free.any():
        return levels
    carried = np.full(len(levels), competition.buckets, np.int64)
    costly = competition.shared_us[competition.on_arc] > 0
    at = competition.arc_levels(levels)[competition.on_arc[costly]]
    np.minimum.at(carried, competition.on_part[costly], at)
    raised = np.maximum(levels, np.where(carried >= competition.least, carried, 0))
    return np.where(free, raised, levels)
