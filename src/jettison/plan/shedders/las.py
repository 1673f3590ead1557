"""Load-aware shedding (LAS): drop by what tuples are estimated to cost in operators that are timed.

`observe` learns what keys cost (`statistics.sketches`), `plan` puts a `CostBound` in front of every timed operator
where one may stand (`cost_bounds`). The rest of the network is planned as before, by the road map, with the operator's
cost as it was learned. Of several ways to share out what must go, the one that loses the least utility is taken.

Two orders. "arrival" is the seed's rule: tuples are dropped, whatever they cost, while those before them take too long.
"worth" keeps the tuples with the most worth per cost, down to a threshold that fits the budget: where all are worth the
same, the dear ones are dropped, so that many more are kept.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from jettison.errors import StartError
from jettison.network.calls import checked_init
from jettison.network.durations import duration_ms
from jettison.network.graph import Graph
from jettison.network.operators import Map
from jettison.plan.drops.latency_rule import CHECKS
from jettison.plan.plan import Infeasible, Plan
from jettison.plan.predictions import claimed, not_enough, over_budget_us
from jettison.plan.problem import Problem, Shedder
from jettison.plan.shedders.cost_bounds import LATENCY_GOAL, CostBounds, least_cut, timed_operators
from jettison.plan.shedders.renewed_road_map import RenewedRoadMap
from jettison.plan.shedders.timed_costs import TimedCosts
from jettison.statistics.samples import BatchSample
from jettison.statistics.sic import SicWindow
from jettison.statistics.sketches.cost_learner import CostLearning
from jettison.statistics.sketches.cost_pair import CostPair
from jettison.statistics.sketches.universal import HashFunctions

_log = logging.getLogger("jettison")
ORDERS = ("arrival", "worth")
LEARNING = CostLearning()
_ASKING = (1.0, 1.5, 2.5, 5.0)
"""How many times as much the rest of the network is asked to save, until all fits: drops above a timed operator also
take tuples that the drop in front of it would take."""
_PARTS = (1.0, 0.75, 0.5, 0.25, 0.0)
"""Of the timed work that would have to be cut: the plan that loses the least utility is taken."""


@checked_init("jt.Las", StartError)
class Las:
    """The shedder "las". `tau` is the goal for queueing latency, such as "2 seconds"; by default the outputs' own.

    `check` says what must not exceed it: the "average" of all tuples kept so far, as in the seed, "each" tuple's own
    latency, or its "p99". `order` is "arrival" or "worth"; with "worth", `least_keep` of every class of cost is kept.
    `learning` says how costs are learned. With None every tuple costs the mean: the seed's Straw-Man. `rest` plans the
    rest of the network, by default the road map.

    >>> Las(tau="2 seconds", check="p99").tau_us
    2000000.0
    """

    by_value = True
    every_batch = True

    def __init__(
        self,
        tau: str | None = None,
        *,
        check: str = "average",
        order: str = "arrival",
        least_keep: float = 0.0,
        learning: CostLearning | None = LEARNING,
        rest: Shedder | None = None,
    ) -> None:
        if check not in CHECKS:
            raise StartError(f"las: check is {check!r}: say one of {', '.join(map(repr, CHECKS))}.")
        if order not in ORDERS:
            raise StartError(f"las: order is {order!r}: say one of {', '.join(map(repr, ORDERS))}.")
        if isinstance(least_keep, bool) or not isinstance(least_keep, int | float) or not 0 <= least_keep <= 1:
            raise StartError(f"las: least_keep is {least_keep!r}: give a share from 0 to 1, such as 0.05.")
        if order == "arrival" and least_keep:
            raise StartError(
                f"las: least_keep is {least_keep!r}, and order is 'arrival', which drops tuples whatever they cost: "
                f"say order='worth', or leave it out."
            )
        if rest is not None and not callable(getattr(rest, "plan", None)):
            raise StartError(f"las: rest is {rest!r}: give an object with a method plan(problem), or leave it out.")
        if learning is not None and not isinstance(learning, CostLearning):
            raise StartError(f"las: learning is {learning!r}: give jt.CostLearning(...), or None to use the mean cost.")
        self.tau_us = None if tau is None else 1000.0 * duration_ms(tau, "las: tau")
        self._check, self._order, self._least_keep = check, order, float(least_keep)
        self._learn = learning is not None
        self._first = replace((learning or LEARNING).begin(), notices_changes=order == "arrival")
        self._rest = RenewedRoadMap() if rest is None else rest
        self._interval_us = 0.0
        self._said: Graph | None = None
        self.costs: dict[str, TimedCosts] = {}
        """What is known, by timed operator."""

    def check_network(self, graph: Graph) -> None:
        if hasattr(self._rest, "check_network"):
            self._rest.check_network(graph)

    def observe(self, sample: BatchSample) -> None:
        """Learn what tuples cost."""
        self._interval_us = 1000.0 * sample.interval_ms
        for name, timed in sample.timed.items():
            self.costs[name] = self.known(name).after(timed, learn=self._learn)
        if hasattr(self._rest, "observe"):
            self._rest.observe(sample)

    def follow_sic(self, window: SicWindow) -> None:
        if hasattr(self._rest, "follow_sic"):
            self._rest.follow_sic(window)

    def prepare(self, problem: Problem) -> None:
        self._say_what_is_not_held(problem.graph)
        if hasattr(self._rest, "prepare"):
            self._rest.prepare(problem)

    def _say_what_is_not_held(self, graph: Graph) -> None:
        """Log, once for every network, which goals for latency no drop by cost can hold."""
        if self._said is graph:
            return
        self._said, standing = graph, {each.name for each in timed_operators(graph)}
        for operator in graph.operators:
            if (
                isinstance(operator, Map)
                and operator.name not in standing
                and self._bounds.goal_us(graph, operator.name)
            ):
                _log.warning(
                    "network %s: no drop by cost may stand in front of map %s, as windows below it must be right or "
                    "are estimated: its goal for latency is not held. Use QoS(on_loss='ignore') there, or leave the "
                    "goal out.",
                    graph.name,
                    operator.name,
                )

    @property
    def _bounds(self) -> CostBounds:
        return CostBounds(self._check, self._order, self._least_keep, self.tau_us, self._interval_us, self.known)

    @property
    def functions(self) -> HashFunctions:
        """The hash functions of sketches that tuples are timed into."""
        return self._first.sketch.functions

    def known(self, operator: str) -> TimedCosts:
        """What is known about a timed operator; nothing at first."""
        return self.costs.get(operator) or TimedCosts(self._first)

    def pair_named(self, name: str) -> CostPair | None:
        """The published pair that a plan names, while it is in use."""
        pairs = (known.pair for known in self.costs.values())
        return next((pair for pair in pairs if pair is not None and pair.name == name), None)

    def restore(self, operator: str, pair: CostPair, lanes: int = 1) -> None:
        """Go on, after a restart, with a pair that was published before; so many tasks share the work."""
        known = self.known(operator)
        self.costs[operator] = replace(known, learner=replace(known.learner, pair=pair), lanes=lanes)

    def plan(self, problem: Problem) -> Plan | Infeasible:
        bounds = self._bounds
        late_cut = bounds.late_cut_of(problem)
        plan = claimed(problem, bounds.drops(problem, 0.0, late_cut), LATENCY_GOAL)
        if not over_budget_us(problem, plan):
            return plan
        cut = least_cut(problem, lambda share: bounds.drops(problem, share, late_cut, sure=True))
        found: list[Plan] = []
        for part in self._parts(problem.graph, cut):
            tried = self._with_rest(problem, bounds, part * cut, late_cut)
            if isinstance(tried, Plan):
                found.append(tried)
            else:
                plan = max(plan, tried.best, key=lambda each: each.saves_us)
        return max(found, key=lambda each: each.utility) if found else not_enough(problem, plan)

    def _parts(self, graph: Graph, cut: float) -> tuple[float, ...]:
        """The parts of a cut to try: less of it where something else could be dropped instead."""
        timed = timed_operators(graph)
        behind = {output for each in timed for output in graph.outputs_below(each.name)}
        if cut < 1.0 and all(each.name in behind for each in graph.outputs):
            return (1.0,)
        return _PARTS

    def _with_rest(self, problem: Problem, bounds: CostBounds, cut: float, late_cut: float) -> Plan | Infeasible:
        """A plan that cuts so much timed work, and leaves what is still in excess to the rest of the network."""
        drops = bounds.drops(problem, cut, late_cut)
        best = claimed(problem, drops, LATENCY_GOAL)
        over_us = over_budget_us(problem, best)
        if not over_us:
            return best
        for times in _ASKING:
            answer = self._rest.plan(problem.with_budget(max(0.0, problem.load_us - times * over_us)))
            found = answer if isinstance(answer, Plan) else answer.best
            inner = bounds.drops(problem, cut, late_cut, found.drops)
            made = claimed(problem, {**found.drops, **inner}, LATENCY_GOAL)
            made = replace(made, below_minimum=found.below_minimum)
            best = max(best, made, key=lambda each: each.saves_us)
            if not over_budget_us(problem, best):
                return best
        return not_enough(problem, best)
