"""Admission control: shedders that drop at the inputs alone and ask no output what it is worth (thesis 3.8.2).

They are what load shedding by QoS is compared with. Each chooses how many microseconds every input gives; the share
that an input keeps follows: with load L (all the work that its tuples cause) and J for judging them,

    keep = 1 - (gives + J) / L

An input that would have to give more than L - J cannot keep anything: its drop keeps nothing and gives the whole L.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from jettison.plan.claims import OVERLOAD, WITHIN_BUDGET, claimed, not_enough, over_budget_us
from jettison.plan.keys import by_chance, droppable
from jettison.plan.plan import Infeasible, Plan
from jettison.plan.problem import Problem, Shedder

_ROUNDING = 1e-9


@dataclass(frozen=True)
class _Input:
    """A source with the work that its tuples cause now, and what judging each of them would add."""

    source: str
    load_us: float
    judging_us: float

    @property
    def most_us(self) -> float:
        """What it can give short of being closed."""
        return self.load_us - self.judging_us

    def gives_us(self, wanted_us: float) -> float:
        """What is asked for, or all that there is."""
        return wanted_us if wanted_us < self.most_us else self.load_us

    def keep(self, gives_us: float) -> float:
        return 0.0 if gives_us >= self.load_us else 1.0 - (gives_us + self.judging_us) / self.load_us


@dataclass(frozen=True)
class InputRandom:
    """One input after another, in random order, gives all that it has until enough is shed.

    The order is drawn anew for every problem, from the seed and the problem: the same question, the same plan.
    """

    seed: int = 0

    def plan(self, problem: Problem, cursor: float = 0) -> Plan | Infeasible:
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
    >>> net.source("s1", "x int").where("x > 0", name="w1").output("o1")
    >>> net.source("s2", "x int").where("x > 0", name="w2").output("o2")
    >>> problem = Problem(net.graph, Profile({"w1": 10.0, "w2": 30.0}, {}), {"s1": 100, "s2": 100}, 2500.0)
    >>> InputTopCost().plan(problem).drops
    {'s2': Random(keep=0.5)}
    """

    def plan(self, problem: Problem, cursor: float = 0) -> Plan | Infeasible:
        largest_first = sorted(_inputs(problem), key=lambda each: -each.load_us)
        return _answer(problem, _one_by_one(largest_first, _excess_us(problem)))


@dataclass(frozen=True)
class InputUniform:
    """Every input gives the same number of microseconds; what one does not have the others give, evenly.

    >>> from jettison.network import Network
    >>> from jettison.statistics.profile import Profile
    >>> net = Network("two")
    >>> net.source("s1", "x int").where("x > 0", name="w1").output("o1")
    >>> net.source("s2", "x int").where("x > 0", name="w2").output("o2")
    >>> problem = Problem(net.graph, Profile({"w1": 10.0, "w2": 30.0}, {}), {"s1": 100, "s2": 100}, 2500.0)
    >>> InputUniform().plan(problem).drops
    {'s1': Random(keep=0.25), 's2': Random(keep=0.75)}
    """

    def plan(self, problem: Problem, cursor: float = 0) -> Plan | Infeasible:
        return _answer(problem, _spread(((each, 1.0) for each in _inputs(problem)), _excess_us(problem)))


@dataclass(frozen=True)
class InputUniformCost:
    """Every input gives in proportion to its load: where judging is free, all keep the same share."""

    def plan(self, problem: Problem, cursor: float = 0) -> Plan | Infeasible:
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
    found = []
    for source in problem.graph.sources:
        count = problem.rows.get(source.name, 0.0)
        each = _Input(source.name, problem.coefficients[source.name] * count, problem.profile.drop_us * count)
        if each.load_us > 0 and droppable(problem.graph, source.name):
            found.append(each)
    return found


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
        gives_us[poorest] = poorest.load_us
        del weight[poorest]
    return gives_us


def _answer(problem: Problem, gives_us: Mapping[_Input, float]) -> Plan | Infeasible:
    keeps = {each.source: each.keep(gives) for each, gives in gives_us.items()}
    in_order = [source.name for source in problem.graph.sources if source.name in keeps]
    drops = {source: by_chance(problem.graph, source, keeps[source]) for source in in_order}
    plan = claimed(problem, drops, OVERLOAD if _excess_us(problem) > 0 else WITHIN_BUDGET)
    return not_enough(problem, plan) if over_budget_us(problem, plan) else plan
