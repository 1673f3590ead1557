"""The competition of one batch, read off a network: rows, costs, and what every query has had of late."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from numbers import Real

import numpy as np

from jettison.errors import StartError
from jettison.network.arc import arc_head
from jettison.plan.placement.ladder import LOWEST_KEEP_SHARE
from jettison.plan.placement.strata import estimates_below
from jettison.plan.problem import Problem
from jettison.plan.shedders.fair.competition import Competition, Vector
from jettison.plan.shedders.fair.parts import Part, Parts, parts_of
from jettison.plan.windows.decisions import decisions_of
from jettison.statistics.profile import Profile
from jettison.statistics.sic import SicWindow


@dataclass(frozen=True)
class Elsewhere:
    """What a query gets on other nodes: the SIC of its parts there, from 0 to 1, and how many sources they have.

    The query has one source here and three there, which have a SIC of .8. Without the one here it would have .6:

    >>> here, there = Elsewhere(0.8, sources=3).beside(1)
    >>> here, round(there, 6)
    (0.25, 0.6)
    """

    sic: float
    sources: int = 1

    def __post_init__(self) -> None:
        sic: object = self.sic
        if isinstance(sic, bool) or not isinstance(sic, Real) or not 0 <= float(sic) <= 1:
            raise StartError(f"jt.Elsewhere: sic is {sic!r}: give a SIC from 0 to 1.")
        sources: object = self.sources
        if isinstance(sources, bool) or not isinstance(sources, int) or sources < 0:
            raise StartError(f"jt.Elsewhere: sources is {sources!r}: give the number of sources there, such as 2.")

    def beside(self, here: int) -> tuple[float, float]:
        """The share of the query's sources that is here, and the SIC that it has from elsewhere."""
        every = here + self.sources
        return here / every, self.sic * self.sources / every


KnownSic = Callable[[str], "Elsewhere | float | None"]


@dataclass(frozen=True)
class Asked:
    """A competition with what it was read off; `fixed_us` is work that no drop saves."""

    parts: Parts
    competition: Competition
    fixed_us: float


@dataclass(frozen=True)
class Views:
    """How queries are seen: `window` is what they had of late, `weights` whether priorities count, `known` what they
    have elsewhere."""

    window: SicWindow | None = None
    weights: bool = False
    known: KnownSic = field(default=lambda query: None)


def compete(problem: Problem, views: Views, buckets: int) -> Asked:
    """The competition for a problem's rows.

    >>> from jettison.network import Network
    >>> net = Network("two"); s, t = net.source("s", "x int"), net.source("t", "x int")
    >>> _ = s.where("x > 0", name="a").output("one"); _ = s.union(t, name="u").output("both")
    >>> profile = Profile({"s": 1.0, "a": 2.0, "u": 3.0}, {})
    >>> asked = compete(Problem(net.graph, profile, {"s": 100.0, "t": 10.0}, 300.0), Views(), 64)
    >>> asked.competition.sic.tolist(), asked.competition.own_us.tolist(), asked.competition.shared_us.tolist()
    ([1.0, 0.5, 0.5], [200.0, 300.0, 30.0], [100.0])
    """
    parts = parts_of(problem.graph)
    numbers = {output.name: number for number, output in enumerate(problem.graph.outputs)}
    had, gains = _sic(problem, parts, views)
    own_us, shared, fixed_us = _work(problem, parts)
    least = [_least(parts, part, buckets) for part in parts.all]
    floor = [_floor(problem, part, buckets, at_least) for part, at_least in zip(parts.all, least, strict=True)]
    on = [(number, arc) for arc, together in enumerate(shared) for number in together]
    return Asked(
        parts,
        Competition(
            had,
            np.array([output.qos.priority if views.weights else 1.0 for output in problem.graph.outputs]),
            np.array([numbers[part.query] for part in parts.all], np.int64),
            gains,
            np.array([sum(problem.rows.get(name, 0.0) for name in part.sources) for part in parts.all]),
            own_us,
            np.array(least, np.int64),
            np.array(floor, np.int64),
            np.array(list(shared.values())),
            np.array([number for number, _ in on], np.int64),
            np.array([arc for _, arc in on], np.int64),
            buckets,
        ),
        fixed_us,
    )


def _sic(problem: Problem, parts: Parts, views: Views) -> tuple[Vector, Vector]:
    """What every query has if nothing of these rows is kept, and what all rows of every part would add.

    What is decided about windows shows only when they close. So of windows a whole source time window is looked ahead:
    a query that has lost is made up for over that time, not in one batch.
    """
    read = {
        source.name: 0.0 if views.window is None else views.window.read(source.name) for source in problem.graph.sources
    }
    had, gains = np.zeros(len(problem.graph.outputs)), np.zeros(len(parts.all))
    for at, output in enumerate(problem.graph.outputs):
        mine = [(number, parts.all[number]) for number in parts.by_query[output.name]]
        names = [name for _, part in mine for name in part.sources]
        active = sum(read[name] + problem.rows.get(name, 0.0) > 0 for name in names)
        known = views.known(output.name)
        beside = known if isinstance(known, Elsewhere) or known is None else Elsewhere(float(known))
        here, had[at] = (1.0, 0.0) if beside is None else beside.beside(max(1, active))
        each = here / max(1, active)
        for number, part in mine:
            for name in part.sources:
                coming = problem.rows.get(name, 0.0)
                coming = max(coming, read[name]) if part.windows and coming else coming
                brought = read[name] + coming
                if brought > 0:
                    kept = 0.0 if views.window is None else views.window.processed(name, output.name)
                    had[at] += each * kept / brought
                    gains[number] += each * coming / brought
    return had, gains


def _work(problem: Problem, parts: Parts) -> tuple[Vector, dict[tuple[int, ...], float], float]:
    """The work that each part alone causes, that several cause together, and that no drop saves."""
    decisions, together, fixed_us = decisions_of(problem.graph), dict[tuple[int, ...], float](), 0.0
    for (arc, source), rows in _flows(problem, parts).items():
        cost_us = rows * problem.profile.cost(arc_head(arc))
        deciding = parts.needed_by[arc, source]
        if deciding and cost_us and all(parts.all[number].windows for number in deciding):
            saved = decisions.weight(arc)  # windows reach over one another: some tuples are needed in any case
            fixed_us += cost_us * (1.0 - saved)
            cost_us *= saved
        if deciding:
            together[deciding] = together.get(deciding, 0.0) + cost_us
        else:
            fixed_us += cost_us
    own_us = np.zeros(len(parts.all))
    for deciding, cost_us in together.items():
        if len(deciding) == 1:
            own_us[deciding[0]] += cost_us
    return own_us, {each: cost_us for each, cost_us in together.items() if len(each) > 1 and cost_us > 0}, fixed_us


def _flows(problem: Problem, parts: Parts) -> dict[tuple[str, str], float]:
    """Tuples on every arc, by the source that they come from, nothing dropped."""
    found: dict[tuple[str, str], float] = {}
    profile: Profile = problem.profile
    for operator, into, out_of in problem.graph.wiring:
        given: dict[str, float] = {}
        if not operator.inputs:
            found[into[0], operator.name] = given[operator.name] = problem.rows.get(operator.name, 0.0)
        else:
            for arc in into:
                for source in parts.above[arc.tail or ""]:
                    given[source] = given.get(source, 0.0) + found[arc, source]
        passes = profile.passes(operator.name)
        for source, rows in given.items():
            for arc in out_of:
                found[arc, source] = rows * passes
    return found


def _least(parts: Parts, part: Part, buckets: int) -> int:
    """The smallest level above 0: of windows, one after every gap."""
    if not part.windows:
        return 1
    decisions = decisions_of(parts.graph).by_aggregate
    return max(1, math.ceil(buckets * (1.0 - min(decisions[name].most_drop_share for name in part.windows)) - 1e-9))


def _floor(problem: Problem, part: Part, buckets: int, least: int) -> int:
    """What is kept in any case: the output's minimum accuracy, a little where rows are to be estimated, or all."""
    if part.fixed:
        return buckets
    output = next(each for each in problem.graph.outputs if each.name == part.query)
    share = output.qos.min_accuracy
    if any(estimates_below(problem.graph, source) for source in part.sources):
        share = max(share, LOWEST_KEEP_SHARE)
    level = math.ceil(buckets * share - 1e-9)
    return max(level, least) if level else 0


def known_from(given: object) -> KnownSic:
    """What `known_sic` says of a query: a mapping is looked up, a function is called."""
    if given is None:
        return lambda query: None
    if isinstance(given, Mapping):
        return given.get
    assert callable(given)
    return given
