"""DISSP's algorithm 1: fair shedding, one batch of tuples at a time.

Everything is first taken as discarded. Then the query with the lowest projected SIC gets its batch of tuples with the
highest SIC, until what the node can process is reached. With costs by work, a query prefers the batch with the most
SIC per work: of two sources that are worth the same to it, it takes the slow one first.

The seed keeps queries in a priority queue. The order in which they take their turns is the order of the SIC that each
has before its turn, which only grows from turn to turn: so all turns of all queries, sorted once by that, are the
algorithm's turns, and a cumulative sum says how many of them fit. That takes milliseconds for 10,000 batches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jettison.plan.shedders.fair.competition import Competition, Numbers, Vector

BY_WORK, BY_TUPLES = "work", "tuples"
_ROUNDING = 1e-9


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
    """
    levels = competition.floor.copy()
    work_us, tuples = competition.work_us(levels), _tuples(competition, levels)
    slack_us, slack = _ROUNDING * max(1.0, abs(budget_us)), _ROUNDING * max(1.0, tuples)
    fits = work_us <= budget_us + slack_us
    turns = _turns(competition, costs)
    while fits and len(turns.part):
        spent_us = work_us + _marginal_us(competition, turns, levels).cumsum()
        taken = int(np.searchsorted(spent_us, budget_us + slack_us, side="right"))
        if np.isfinite(most_tuples):
            gained = competition.tuples[turns.part] * (turns.level - turns.before) / competition.buckets
            taken = min(taken, int(np.searchsorted(tuples + gained.cumsum(), most_tuples + slack, side="right")))
        np.maximum.at(levels, turns.part[:taken], turns.level[:taken])
        if taken == len(turns.part) or turns.level[taken] - turns.before[taken] == 1:
            break
        # many levels at once do not fit (windows, as their gap allows): the part stays as it is, others go on
        left = turns.part[taken:] != turns.part[taken]
        turns = _Turns(turns.part[taken:][left], turns.level[taken:][left], turns.before[taken:][left])
        work_us, tuples = competition.work_us(levels), _tuples(competition, levels)
    if fits:
        levels = _without_useless_drops(competition, levels)
    return Admission(
        levels, competition.query_sic(levels), competition.work_us(levels), _tuples(competition, levels), fits
    )


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
    by_part = np.argsort(competition.on_part, kind="stable")
    needs, arc_of = np.bincount(competition.on_part, minlength=len(levels)), competition.on_arc[by_part]
    first = np.cumsum(needs) - needs
    times = needs[turns.part]
    turn = np.repeat(np.arange(len(turns.part)), times)
    within = np.arange(len(turn)) - np.repeat(np.cumsum(times) - times, times)
    arc = arc_of[first[turns.part][turn] + within]
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
