"""The shedders "fair" and "fair-exact" (DISSP 5.3): equal SIC for all queries, as far as the budget goes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Real

from jettison.errors import StartError
from jettison.network.columns.words import meant
from jettison.network.graph import Graph
from jettison.plan.drops.buckets import BUCKETS, MOST_BUCKETS
from jettison.plan.plan import Infeasible, Plan
from jettison.plan.predictions import OVERLOAD, WITHIN_BUDGET, claimed, not_enough, nothing_shed, over_budget_us
from jettison.plan.problem import Problem
from jettison.plan.refine.floor_repair import with_floors
from jettison.plan.shedders.fair.admission import BY_TUPLES, BY_WORK, admit
from jettison.plan.shedders.fair.competition import Competition
from jettison.plan.shedders.fair.levels import drops_for
from jettison.plan.shedders.fair.max_min import max_min_shares
from jettison.plan.shedders.fair.network_competition import Asked, Elsewhere, Views, compete, known_from
from jettison.plan.shedders.fair.tuple_costs import TupleCosts
from jettison.statistics.samples import BatchSample
from jettison.statistics.sic import SicWindow

COSTS = (BY_WORK, BY_TUPLES)
EXACT_BUCKETS = 4096
"""So finely are the exact shares divided."""
_TRIES = 12
_MORE = 1.001
_ROUNDING = 1e-9


class Fair:
    """The shedder "fair": every query gets the same SIC, as far as the budget goes, whatever it costs.

    `buckets` is how many buckets a source's rows of one batch are divided into. `costs` is "work" (work per arc, a
    shared operator is paid once) or "tuples" (DISSP's: one average cost for every tuple of every query). With
    `weights`, an output with `QoS(priority=2)` gets twice the SIC. `known_sic` is what queries have on other nodes: a
    mapping from outputs, or a function of an output, to the SIC there, or to `jt.Elsewhere(sic, sources)`. `exact`
    solves linear programs in place of the seed's algorithm: the shedder "fair-exact".

    >>> from jettison.network import Network
    >>> from jettison.statistics.profile import Profile
    >>> net = Network("two"); s = net.source("s", "x int")
    >>> _ = s.where("x > 0", name="a").output("cheap"); _ = s.where("x > 5", name="b").output("dear")
    >>> plan = Fair().plan(Problem(net.graph, Profile({"a": 1.0, "b": 9.0}, {}), {"s": 640.0}, 3200.0))
    >>> plan.drops, plan.delivered
    ({'s': Buckets(kept=32, buckets=64, of=1.0)}, {'cheap': 0.5, 'dear': 0.5})
    """

    by_value = False
    every_batch = True

    def __init__(
        self,
        *,
        buckets: int = BUCKETS,
        costs: str = BY_WORK,
        weights: bool = False,
        known_sic: Mapping[str, Elsewhere | float] | Callable[[str], Elsewhere | float | None] | None = None,
        exact: bool = False,
    ) -> None:
        if isinstance(buckets, bool) or not isinstance(buckets, int) or not 2 <= buckets <= MOST_BUCKETS:
            raise StartError(f"fair: buckets is {buckets!r}: give a whole number from 2 to {MOST_BUCKETS}, such as 64.")
        if costs not in COSTS:
            near = meant(str(costs), COSTS)
            raise StartError(f"fair: costs is {costs!r}{near}: say one of {', '.join(map(repr, COSTS))}.")
        for name, given in (("weights", weights), ("exact", exact)):
            if not isinstance(given, bool):
                raise StartError(f"fair: {name} is {given!r}: say True or False.")
        if exact and costs == BY_TUPLES:
            raise StartError("fair: exact shares are by work: leave out costs='tuples', or exact.")
        _check_known(known_sic)
        self._buckets = EXACT_BUCKETS if exact else buckets
        self._costs, self._weights, self._exact = costs, weights, exact
        self._known = known_from(known_sic)
        self._named = tuple(known_sic) if isinstance(known_sic, Mapping) else ()
        self._window: SicWindow | None = None
        self._history: SicWindow | None = None
        self.tuple_costs = TupleCosts()
        """DISSP's cost model: what a tuple took of late."""

    def check_network(self, graph: Graph) -> None:
        """Raise StartError where `known_sic` names a query that the network does not have."""
        queries = [output.name for output in graph.outputs]
        for name in self._named:
            if name not in queries:
                raise StartError(
                    f"fair: known_sic names {name!r}, which is no output of network {graph.name!r}"
                    f"{meant(name, queries)}; there are: {', '.join(queries)}. Leave it out; a function of an output "
                    f"is asked for those that are here."
                )

    def follow_sic(self, window: SicWindow) -> None:
        """Take over what every query has had in its source time window: who has lost is ahead in the next batch."""
        self._window = window
        # The coming batch pushes out what is oldest. It is taken to last as long as the one before; but a stall does
        # not push out who lost in it.
        coming_ms = 0.0 if window.latest is None else min(window.latest.interval_ms, window.stw_ms / 2)
        self._history = window.left_after(coming_ms)

    def observe(self, sample: BatchSample) -> None:
        """Learn what a tuple takes, on average."""
        if self._costs == BY_TUPLES and self._window is not None and self._window.latest is not None:
            self.tuple_costs = self.tuple_costs.after(sample.duration_ms, processed_tuples(self._window))

    def plan(self, problem: Problem) -> Plan | Infeasible:
        if problem.load_us <= problem.budget_us:
            return nothing_shed(problem.graph, WITHIN_BUDGET)
        asked = compete(problem, Views(self._history, self._weights, self._checked_sic), self._buckets)
        budget_us = problem.budget_us - problem.unavoidable_us - asked.fixed_us
        plan, fits = self._planned(problem, asked, budget_us)
        for _ in range(_TRIES):
            over_us = over_budget_us(problem, plan)
            if not over_us or not fits:
                break
            budget_us -= _MORE * over_us  # judging tuples costs as well
            plan, fits = self._planned(problem, asked, budget_us)
        return with_floors(problem, not_enough(problem, plan) if over_budget_us(problem, plan) else plan)

    def _planned(self, problem: Problem, asked: Asked, budget_us: float) -> tuple[Plan, bool]:
        """A plan for so much work, and whether there was anything to choose."""
        levels, fits = self._levels(problem, asked.competition, budget_us)
        return claimed(problem, drops_for(problem, asked.parts, levels, self._buckets), OVERLOAD), fits

    def _levels(self, problem: Problem, competition: Competition, budget_us: float) -> tuple[Sequence[int], bool]:
        if self._exact:
            shares = max_min_shares(competition, budget_us)
            if shares is None:
                return competition.floor.tolist(), False
            levels = (shares * self._buckets + _ROUNDING).astype("int64")
            short = (levels < competition.least) & (levels > competition.floor)
            levels[short] = competition.floor[short]
            levels[competition.tuples == 0] = self._buckets  # a source that is silent is not closed in advance
            return levels.tolist(), True
        most = None
        if self._costs == BY_TUPLES:
            most = self.tuple_costs.tuples_in(problem.budget_us / 1000)
        found = admit(competition, budget_us, math.inf if most is None else float(most), costs=self._costs)
        return found.levels.tolist(), found.fits

    def _checked_sic(self, query: str) -> Elsewhere | float | None:
        found = self._known(query)
        _check_sic(query, found)
        return found


def processed_tuples(window: SicWindow) -> float:
    """The tuples that were processed in the newest batch, each once for every query that it is for."""
    latest = window.latest
    if latest is None:
        return 0.0
    alone = SicWindow(window.graph, window.stw_ms).plus(latest)
    graph = window.graph
    return sum(alone.processed(source.name, output.name) for output in graph.outputs for source in graph.sources)


def _check_known(given: object) -> None:
    if given is None or callable(given):
        return
    if not isinstance(given, Mapping):
        raise StartError(
            f"fair: known_sic is {given!r}: give a mapping from outputs to the SIC that they have elsewhere, such as "
            f"{{'fares': 0.8}}, or a function of an output."
        )
    for query, sic in given.items():
        _check_sic(query, sic)


def _check_sic(query: object, given: object) -> None:
    sic = given.sic if isinstance(given, Elsewhere) else given
    if sic is None:
        return
    if isinstance(sic, bool) or not isinstance(sic, Real) or not 0 <= float(sic) <= 1:
        raise StartError(
            f"fair: known_sic of {query!r} is {sic!r}: give a SIC from 0 to 1, or jt.Elsewhere(sic, sources)."
        )
