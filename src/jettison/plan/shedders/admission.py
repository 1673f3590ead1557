"""Admission control: shedders that drop at the inputs alone and ask no output what it is worth (thesis 3.8.2).

They are what load shedding by QoS is compared with. Each chooses how many microseconds every input gives; the share
that an input keeps follows: with load L (all the work that its tuples cause) and J for judging them,

    keep = 1 - (gives + J) / L

An input that would have to give more than L - J cannot keep anything: its drop keeps nothing and gives the whole L.

Of an input whose tuples become windows that must be right, windows go in place of tuples: a share of them as their gaps
allow, the same for all aggregates below, and if that is not enough all. With S the work that goes with all windows
but for what kept ones reach into, and B their gap:

    keep = 1 - (gives + J) / S    at least 1 / (B + 1), or none
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from jettison.plan.drops.kind import Drop
from jettison.plan.floors import floor_at
from jettison.plan.placement.join_keys import by_chance, droppable
from jettison.plan.plan import Infeasible, Plan
from jettison.plan.predictions import OVERLOAD, WITHIN_BUDGET, claimed, not_enough, over_budget_us
from jettison.plan.problem import Problem, Shedder
from jettison.plan.refine.floor_repair import with_floors
from jettison.plan.windows.decisions import decisions_of

_ROUNDING = 1e-9


@dataclass(frozen=True)
class _Input:
    """A source with the work that its tuples cause now, and what judging each of them would add.

    `windows` names the aggregates below whose windows go in place of tuples. Of those a share `most` may go, which
    saves that share of `slope_us`; `load_us` is what closing them saves. Sources whose tuples meet there are one input.
    `least` is the share that outputs below must get: with a floor nothing is closed.
    """

    source: str
    load_us: float
    judging_us: float
    slope_us: float
    most: float = 1.0
    windows: tuple[str, ...] = ()
    least: float = 0.0

    @property
    def most_us(self) -> float:
        """What it can give short of being closed."""
        return min(self.most, 1.0 - self.least) * self.slope_us - self.judging_us

    @property
    def all_us(self) -> float:
        """What it gives when it gives all that it has."""
        return self.load_us if self.least == 0 else self.most_us

    def gives_us(self, wanted_us: float) -> float:
        """What is asked for, or all that there is."""
        return wanted_us if wanted_us < self.most_us else self.all_us

    def keep(self, gives_us: float) -> float:
        if gives_us >= self.all_us:
            return 0.0 if self.least == 0 else 1.0 - min(self.most, 1.0 - self.least)
        return 1.0 - (gives_us + self.judging_us) / self.slope_us


@dataclass(frozen=True)
class InputRandom:
    """One input after another, in random order, gives all that it has until enough is shed.

    The order is drawn anew for every problem, from the seed and the problem: the same question, the same plan.
    """

    seed: int = 0

    def plan(self, problem: Problem) -> Plan | Infeasible:
        inputs = _inputs(problem)
        asked = [float(problem.budget_us), *(float(problem.rows.get(each.source, 0.0)) for each in inputs)]
        random.Random(f"{self.seed} {asked}").shuffle(inputs)
        return _answer(problem, _one_by_one(inputs, _excess_us(problem)))


@dataclass(frozen=True)
class InputTopCost:
    """One input after another, the one with the largest load first.

    >>> from jettison.network import Network
    >>> from jettison.statistics.profile import Profile
    >>> net = Network("two")
    >>> _ = net.source("s1", "x int").where("x > 0", name="w1").output("o1")
    >>> _ = net.source("s2", "x int").where("x > 0", name="w2").output("o2")
    >>> problem = Problem(net.graph, Profile({"w1": 10.0, "w2": 30.0}, {}), {"s1": 100, "s2": 100}, 2500.0)
    >>> InputTopCost().plan(problem).drops
    {'s2': Random(keep=0.5)}
    """

    def plan(self, problem: Problem) -> Plan | Infeasible:
        largest_first = sorted(_inputs(problem), key=lambda each: -each.load_us)
        return _answer(problem, _one_by_one(largest_first, _excess_us(problem)))


@dataclass(frozen=True)
class InputUniform:
    """Every input gives the same number of microseconds; what one does not have the others give, evenly.

    >>> from jettison.network import Network
    >>> from jettison.statistics.profile import Profile
    >>> net = Network("two")
    >>> _ = net.source("s1", "x int").where("x > 0", name="w1").output("o1")
    >>> _ = net.source("s2", "x int").where("x > 0", name="w2").output("o2")
    >>> problem = Problem(net.graph, Profile({"w1": 10.0, "w2": 30.0}, {}), {"s1": 100, "s2": 100}, 2500.0)
    >>> InputUniform().plan(problem).drops
    {'s1': Random(keep=0.25), 's2': Random(keep=0.75)}
    """

    def plan(self, problem: Problem) -> Plan | Infeasible:
        return _answer(problem, _spread(((each, 1.0) for each in _inputs(problem)), _excess_us(problem)))


@dataclass(frozen=True)
class InputUniformCost:
    """Every input gives in proportion to its load: where judging is free, all keep the same share."""

    def plan(self, problem: Problem) -> Plan | Infeasible:
        return _answer(problem, _spread(((each, each.load_us) for each in _inputs(problem)), _excess_us(problem)))


ADMISSION: Mapping[str, Shedder] = {
    "input-random": InputRandom(),
    "input-top-cost": InputTopCost(),
    "input-uniform": InputUniform(),
    "input-uniform-cost": InputUniformCost(),
}
"""The four baselines by the name that experiments and screens give them."""


def _inputs(problem: Problem) -> list[_Input]:
    """Inputs that cause work; nothing is gained at the others."""
    found: list[_Input] = []
    for source in problem.graph.sources:
        count = problem.rows.get(source.name, 0.0)
        load_us = problem.coefficients[source.name] * count
        if droppable(problem.graph, source.name):
            least = floor_at(problem.graph, source.name)
            each = _Input(source.name, load_us, problem.profile.drop_us * count, load_us, least=least)
        elif load_us > 0 and not any(source.name in _meeting(problem, other.windows) for other in found):
            each = _by_window(problem, source.name)
        else:
            continue
        if each.load_us > 0 and each.all_us > 0:
            found.append(each)
    return found


def _by_window(problem: Problem, source: str) -> _Input:
    """An input that gives windows, with all sources whose tuples meet its own in them."""
    decisions = decisions_of(problem.graph)
    names: tuple[str, ...] = ()
    sources: frozenset[str] = frozenset([source])
    while True:
        below = {each.name for name in sources for each in decisions.arcs.below(name)}
        more = tuple(name for name in decisions.by_aggregate if name in below)
        if more == names:
            break
        names, sources = more, _meeting(problem, more)
    if not names:
        return _Input(source, 0.0, 0.0, 0.0)  # none of its windows may ever go
    most = min(decisions.by_aggregate[name].most_drop_share for name in names)
    half_us, most_us, all_us = (_saves_us(problem, names, share) for share in (most / 2, most, 1.0))
    slope_us = 2 * (most_us - half_us) / most
    least = max(floor_at(problem.graph, arc) for name in names for arc in problem.graph.arcs_into(name))
    return _Input(source, all_us, max(0.0, most * slope_us - most_us), slope_us, most, names, least)


def _meeting(problem: Problem, names: Iterable[str]) -> frozenset[str]:
    """The sources whose tuples come to these aggregates."""
    return frozenset(source.name for name in names for source in problem.graph.sources_above(name))


def _saves_us(problem: Problem, names: Iterable[str], share: float) -> float:
    return claimed(problem, _window_drops(problem, dict.fromkeys(names, share)), OVERLOAD).saves_us


def _window_drops(problem: Problem, shares: Mapping[str, float]) -> Mapping[str, Drop]:
    decisions = decisions_of(problem.graph)
    return decisions.arcs.drops(decisions.fates(shares), decisions.keeps(shares))


def _excess_us(problem: Problem) -> float:
    return problem.load_us - problem.budget_us


def _one_by_one(inputs: Iterable[_Input], excess_us: float) -> dict[_Input, float]:
    gives_us: dict[_Input, float] = {}
    for each in inputs:
        left_us = excess_us - sum(gives_us.values())
        if left_us <= _ROUNDING * abs(excess_us):
            break
        gives_us[each] = each.gives_us(left_us)
    return gives_us


def _spread(weights: Iterable[tuple[_Input, float]], excess_us: float) -> dict[_Input, float]:
    """Water filling: inputs that cannot give their part are closed one at a time, the rest divide what is left.

    One at a time, for a closed input gives more than its part where judging costs something, and that may be enough.
    """
    gives_us: dict[_Input, float] = {}
    weight = dict(weights)
    while weight:
        left_us = excess_us - sum(gives_us.values())
        if left_us <= _ROUNDING * abs(excess_us):
            break
        level = left_us / sum(weight.values())
        poorest = min(weight, key=lambda each: each.most_us / weight[each])
        if level * weight[poorest] < poorest.most_us:
            gives_us |= {each: level * part for each, part in weight.items()}
            break
        gives_us[poorest] = poorest.all_us
        del weight[poorest]
    return gives_us


def _answer(problem: Problem, gives_us: Mapping[_Input, float]) -> Plan | Infeasible:
    keeps = {each.source: each.keep(gives) for each, gives in gives_us.items() if not each.windows}
    in_order = [source.name for source in problem.graph.sources if source.name in keeps]
    drops = {source: by_chance(problem.graph, source, keeps[source]) for source in in_order}
    shares = {name: 1.0 - each.keep(gives) for each, gives in gives_us.items() for name in each.windows}
    reason = OVERLOAD if _excess_us(problem) > 0 else WITHIN_BUDGET
    plan = claimed(problem, {**drops, **_window_drops(problem, shares)}, reason)
    return with_floors(problem, not_enough(problem, plan) if over_budget_us(problem, plan) else plan)
