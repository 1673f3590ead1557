"""The exact planner: the best plan that there is for a problem, found by solving it outright at run time.

The road map (thesis 3.5) is made in advance and is best where streams do not merge. Here the whole problem is solved
as a linear program (thesis 5.2.2, on one node): best wherever streams split and merge, with keep shares that are not
bound to a ladder, for some milliseconds per plan. Decision record 10 says what that gains.

A drop that keeps a part costs `drop_us` per tuple that it judges: a charge per drop, which no linear program knows. So
the best plan without the charge gives a pattern (which drops keep a part, which nothing), and the pattern is solved
again with its drops paid for; then once more from the plan for so much less capacity as those drops cost. The better
of the two is within budget always, and the best that there is where `drop_us` is 0; else it is near that.

Of windows a share goes up to what their gap allows, or all: no linear program knows that jump either. Networks some of
whose windows may go are planned by the road map, which does.
"""

from __future__ import annotations

from dataclasses import dataclass

from jettison.network.graph import Graph
from jettison.plan.drops.kind import Drop
from jettison.plan.floors import floors
from jettison.plan.placement.assemble import drops_by_value
from jettison.plan.placement.join_keys import by_chance
from jettison.plan.placement.ladder import LOWEST_KEEP_SHARE
from jettison.plan.placement.locations import Layout, layout
from jettison.plan.plan import Infeasible, Plan
from jettison.plan.predictions import OVERLOAD, WITHIN_BUDGET, claimed, everything, not_enough, over_budget_us
from jettison.plan.problem import Problem
from jettison.plan.refine.floor_repair import hold_floors, with_floors
from jettison.plan.shedders.linear_program import FREE, LinearProgram, Pattern, Vector, linear_program
from jettison.plan.shedders.road_map import RoadMap, RoadMapShedder, build_road_map
from jettison.plan.windows.decisions import decisions_of
from jettison.statistics.profile import Profile
from jettison.statistics.worth import utility_of

DROP_PAYS = 2.0
_GOOD_SHARE = 0.999
_DUST = 1e-9
_ROUNDS = 5
_ROUNDING = 1e-7


class ExactShedder:
    """Solves each problem anew; what depends on network and profile alone is kept from call to call.

    >>> from jettison.network import Network
    >>> net = Network("two")
    >>> _ = net.source("s1", "x int").where("x > 0", name="w1").output("o1")
    >>> _ = net.source("s2", "x int").where("x > 0", name="w2").output("o2")
    >>> problem = Problem(net.graph, Profile({"w1": 10.0, "w2": 30.0}, {}), {"s1": 100, "s2": 100}, 2500.0)
    >>> plan = ExactShedder().plan(problem)
    >>> {arc: round(drop.keep, 6) for arc, drop in plan.drops.items()}, round(plan.utility, 6)
    ({'s2': 0.5}, 1.5)
    """

    def __init__(self) -> None:
        self._last: tuple[Graph, Profile, LinearProgram] | None = None
        self._mapped: tuple[Profile, RoadMap] | None = None

    def plan(self, problem: Problem) -> Plan | Infeasible:
        return with_floors(problem, self._plan(problem))

    def _plan(self, problem: Problem) -> Plan | Infeasible:
        if problem.load_us <= problem.budget_us:
            return claimed(problem, {}, WITHIN_BUDGET)
        if decisions_of(problem.graph).by_aggregate:
            return self._by_window(problem)
        capacity_us = problem.budget_us - problem.unavoidable_us
        if capacity_us < 0:
            all_of_it = everything(problem)
            if over_budget_us(problem, all_of_it):
                return not_enough(problem, all_of_it)
            capacity_us = 0.0
        question = _Question(problem, self._program(problem), capacity_us)
        if question.program.layout.judged or floors(problem.graph):
            return _by_value(question)  # which closes nothing to make judging fit
        free = question.solved(capacity_us)
        if free is None:
            return not_enough(problem, claimed(problem, {}, OVERLOAD))
        if problem.profile.drop_us == 0:
            return _if_enough(problem, question.fitting(free).plan)
        found = [question.paid(free)]
        if found[0].plan.utility < _GOOD_SHARE * free.plan.utility:
            less_us = max(0.0, capacity_us - free.judging_us)
            starts = (question.solved(less_us), question.solved(less_us, question.without_dear_drops()))
            found += [question.paid(start) for start in starts if start is not None]
        return _if_enough(problem, max(found, key=lambda answer: answer.plan.utility).plan)

    def _by_window(self, problem: Problem) -> Plan | Infeasible:
        known = self._mapped
        if known is None or known[1].graph is not problem.graph or known[0] != problem.profile:
            known = self._mapped = (problem.profile, build_road_map(problem.graph, problem.profile, problem.rows))
        return RoadMapShedder(known[1]).plan(problem)

    def _program(self, problem: Problem) -> LinearProgram:
        if self._last is None or self._last[0] is not problem.graph or self._last[1] != problem.profile:
            places = layout(problem.graph, problem.profile, by_value=bool(problem.graph.tracks.all))
            made = linear_program(problem.graph, places)
            self._last = (problem.graph, problem.profile, made)
        return self._last[2]


def _if_enough(problem: Problem, plan: Plan) -> Plan | Infeasible:
    """The plan, unless what must not be closed leaves too much of it."""
    return not_enough(problem, plan) if over_budget_us(problem, plan) > 0 else plan


def _by_value(question: _Question) -> Plan | Infeasible:
    """The best plan by value; what judging costs is taken from the capacity until the plan with it fits."""
    problem, capacity_us = question.problem, question.capacity_us
    places = question.program.layout
    for _ in range(_ROUNDS):
        passing = question.program.solve(question.full, max(0.0, capacity_us))
        if passing is None:
            return _if_enough(problem, _least(question) if floors(problem.graph) else claimed(problem, {}, OVERLOAD))
        keeps = _keeps(places, question.full, passing)
        plan = claimed(problem, drops_by_value(problem.graph, places, keeps, question.full), OVERLOAD)
        over_us = over_budget_us(problem, plan)
        if not over_us:
            return plan
        capacity_us -= 1.01 * over_us
    return _if_enough(problem, everything(problem))


def _least(question: _Question) -> Plan:
    """Floors do not fit: the best of the plans that hold them with the least work."""
    problem, program = question.problem, question.program
    passing = program.solve(question.full, program.least_us(question.full) * (1.0 + _ROUNDING))
    if passing is None:
        return everything(problem)
    keeps = _keeps(program.layout, question.full, passing)
    plan = claimed(problem, drops_by_value(problem.graph, program.layout, keeps, question.full), OVERLOAD)
    held = [hold_floors(problem, each) for each in (plan, everything(problem))]
    return max(held, key=lambda each: each.saves_us)


@dataclass(frozen=True)
class _Answer:
    """Drops as what each location keeps of what reaches it, the plan that they are, and what judging takes in it."""

    keeps: list[float]
    plan: Plan
    judging_us: float


class _Question:
    """A problem with its program and the flows that nothing is dropped from."""

    def __init__(self, problem: Problem, program: LinearProgram, capacity_us: float) -> None:
        self.problem = problem
        self.program = program
        self.capacity_us = capacity_us
        self.full = program.undropped(problem.rows)

    def solved(self, capacity_us: float, pattern: Pattern = FREE) -> _Answer | None:
        """The best plan for this capacity; None when the pattern does not fit."""
        passing = self.program.solve(self.full, capacity_us, pattern)
        return None if passing is None else self._answer(_keeps(self.program.layout, self.full, passing))

    def paid(self, answer: _Answer) -> _Answer:
        """The best plan with drops of the same pattern, all paid for; some are closed where that cannot fit."""
        settled = self.solved(self.capacity_us, self._pattern(answer))
        if settled is None:
            answer = self.fitting(answer)
            settled = self.solved(self.capacity_us, self._pattern(answer))
        return self.fitting(settled or answer)

    def without_dear_drops(self) -> Pattern:
        """No drop where judging a tuple costs half of the work that it saves or more."""
        loads = self.problem.coefficients
        most_us = DROP_PAYS * self.problem.profile.drop_us
        return Pattern([index for index, arc in enumerate(self.program.layout.arcs) if loads[arc] <= most_us])

    def fitting(self, answer: _Answer) -> _Answer:
        """The answer with as many drops closed as it takes to fit: a closed drop judges nobody.

        A drop pays drop_us / keep for each tuple that it lets pass: those that keep least are closed first.
        """
        keeps = list(answer.keeps)
        for index in sorted(self._pattern(answer).paid, key=keeps.__getitem__):
            if not over_budget_us(self.problem, answer.plan):
                break
            keeps[index] = 0.0
            answer = self._answer(keeps)
        return answer

    def _pattern(self, answer: _Answer) -> Pattern:
        kinds: tuple[list[int], list[int], list[int]] = ([], [], [])
        for index, keep in enumerate(answer.keeps):
            kinds[0 if keep == 1 else 1 if keep == 0 else 2].append(index)
        return Pattern(*kinds, self.problem.profile.drop_us)

    def _answer(self, keeps: list[float]) -> _Answer:
        """Drops as a plan, with what it claims: the sums of `certify`, over locations instead of arcs."""
        places, drop_us = self.program.layout, self.problem.profile.drop_us
        drops: dict[str, Drop] = {}
        work_us = judging_us = 0.0
        kept = list(keeps)
        out, full_out = [0.0] * len(places.segments), [0.0] * len(places.segments)
        for number, segment in enumerate(places.segments):
            for entry in segment.entries:
                at, full = places.locations[entry], float(self.full[entry])
                reaches = full if at.leaves < 0 else at.takes * out[at.leaves]
                if reaches <= 0:
                    kept[entry] = 1.0  # where nothing arrives there is nothing to drop
                elif kept[entry] < 1:
                    if at.arc in places.never_closed:
                        kept[entry] = max(kept[entry], LOWEST_KEEP_SHARE)
                    left = reaches / full if full > 0 else 1.0  # of what comes here without drops
                    drops[at.arc] = by_chance(self.problem.graph, at.arc, kept[entry], min(1.0, left))
                    judging_us += drop_us * reaches * (kept[entry] > 0)
                work_us += reaches * kept[entry] * at.cost_us
                out[number] += reaches * kept[entry] * at.passes
                full_out[number] += full * at.passes
        delivered = {
            segment.output: out[number] / full_out[number] if full_out[number] > 0 else 1.0
            for number, segment in enumerate(places.segments)
            if segment.output is not None
        }
        saves_us = self.problem.load_us - self.problem.unavoidable_us - work_us - judging_us
        utility = utility_of(self.problem.graph, delivered)
        return _Answer(kept, Plan(drops, OVERLOAD, 0, delivered, utility, saves_us), judging_us)


def _keeps(places: Layout, full: Vector, passing: Vector) -> list[float]:
    """What the drop at each location keeps of what reaches it; what differs from 0 or 1 by rounding alone is 0 or 1."""
    keeps = [1.0] * len(places.locations)
    out = [0.0] * len(places.segments)
    for number, segment in enumerate(places.segments):
        reaching = {
            entry: float(full[entry])
            if places.locations[entry].leaves < 0
            else places.locations[entry].takes * out[places.locations[entry].leaves]
            for entry in segment.entries
        }
        for entry in segment.entries:
            at = places.locations[entry]
            # where cells run together the drop takes of all of them alike
            alike = (
                [entry] if entry not in places.apart else [each for each in reaching if each in places.by_arc[at.arc]]
            )
            reaches = sum(reaching[each] for each in alike)
            passes = float(passing[entry])
            keep = passes * sum(float(full[each]) for each in alike) / reaches if reaches > 0 else 1.0
            if reaches > 0 and min(keep, passes) < _DUST:
                keep = 0.0
            elif keep > 1.0 - _DUST:
                keep = 1.0
            keeps[entry] = keep
            out[number] += reaching[entry] * keep * at.passes
    return keeps
