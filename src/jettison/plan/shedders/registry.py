"""Who plans, by name or as an object of the user's own.

semantic   the road map, by value where outputs are valued (the default)
random     the road map, by chance alone
exact      the best plan outright, a linear program per batch
fair       the same SIC for all queries, by DISSP's algorithm; fair-exact: by linear programs
las        load-aware: in front of operators that are timed by what tuples cost, elsewhere by the road map
qod        quality of data: minimum accuracies for all, what is left by priority (a rank)
auto       the one of these that the network's declarations ask for (`choice`)
input-*    admission control: four rules that drop at inputs and ask no output what it is worth (thesis 3.8.2)

Where windows must be right all of them let windows go whole. The exact planner then plans as the road map does, and
admission control lets go the same share of the windows of all aggregates below an input, or closes them.
"""

from __future__ import annotations

from jettison.errors import StartError
from jettison.network.columns.words import meant
from jettison.network.graph import Graph
from jettison.plan.plan import Infeasible, Plan
from jettison.plan.problem import Problem, Shedder
from jettison.plan.shedders.admission import ADMISSION
from jettison.plan.shedders.choice import Choice, choose, timed_operators
from jettison.plan.shedders.exact import ExactShedder
from jettison.plan.shedders.fair.shedder import Fair
from jettison.plan.shedders.las import Las
from jettison.plan.shedders.qod import Qod
from jettison.plan.shedders.renewed_road_map import RenewedRoadMap
from jettison.plan.shedders.rest import Rest

SEMANTIC = "semantic"
RANDOM = "random"

EXACT = "exact"
LAS = "las"
FAIR = "fair"
FAIR_EXACT = "fair-exact"
QOD = "qod"
AUTO = "auto"

SHEDDERS = (SEMANTIC, RANDOM, EXACT, LAS, FAIR, FAIR_EXACT, QOD, *ADMISSION, AUTO)


def check_shedder(given: object) -> None:
    """Raise StartError unless this is the name of a shedder, or an object with a method `plan`.

    >>> check_shedder("semantik")
    Traceback (most recent call last):
    jettison.errors.StartError: shedder 'semantik' is not known (did you mean 'semantic'?): use one of semantic, ...
    >>> check_shedder(3)
    Traceback (most recent call last):
    jettison.errors.StartError: shedder is 3: give a name (semantic, ...) or an object with a method plan(problem).
    """
    if isinstance(given, str):
        if given not in SHEDDERS:
            near = meant(given, SHEDDERS)
            raise StartError(f"shedder {given!r} is not known{near}: use one of {', '.join(SHEDDERS)}.")
        return
    if isinstance(given, type):
        raise StartError(f"shedder is the class {given.__name__}: give an object, such as {given.__name__}().")
    if not callable(getattr(given, "plan", None)):
        raise StartError(
            f"shedder is {given!r}: give a name ({', '.join(SHEDDERS)}) or an object with a method plan(problem)."
        )


def shedder_named(name: str, rest: Rest | None = None) -> Shedder:
    """A new shedder of this name; `rest` paces those that build road maps."""
    check_shedder(name)
    if name in ADMISSION:
        return ADMISSION[name]
    if name in (FAIR, FAIR_EXACT):
        return Fair(exact=name == FAIR_EXACT)
    if name == AUTO:
        return Auto(rest)
    if name == QOD:
        return Qod()
    if name == LAS:
        return Las(rest=RenewedRoadMap(rest=rest))
    return ExactShedder() if name == EXACT else RenewedRoadMap(by_value=name == SEMANTIC, rest=rest)


def fitting_shedders(graph: Graph) -> tuple[str, ...]:
    """The shedders that have something to say about a network, "auto" left out: it is one of the others.

    "las" needs an operator that is timed.

    >>> from jettison.network import Network
    >>> net = Network("one"); _ = net.source("s", "x int").output("o")
    >>> "las" in fitting_shedders(net.graph), fitting_shedders(net.graph)[:3]
    (False, ('semantic', 'random', 'exact'))
    """
    without = {AUTO} if timed_operators(graph) else {AUTO, LAS}
    return tuple(name for name in SHEDDERS if name not in without)


def shedder_for(given: str | Shedder, graph: Graph, rest: Rest | None = None) -> tuple[Shedder, Choice | None]:
    """The shedder of a run: a user's own object, a new one by its name, or the one that "auto" takes, and why.

    >>> from jettison.network import Network
    >>> net = Network("one"); _ = net.source("s", "x int").output("o")
    >>> print(shedder_for("auto", net.graph)[1])
    shedder auto: takes semantic, because there is one output, and nothing is said about what it is worth
    """
    made = shedder_named(given, rest) if isinstance(given, str) else given
    if hasattr(made, "check_network"):
        made.check_network(graph)
    return made.taken(graph) if isinstance(made, Auto) else (made, None)


class Auto:
    """The shedder "auto", until it knows the network: then it is the one that `choice` takes."""

    def __init__(self, rest: Rest | None = None) -> None:
        self._rest = rest
        self._taken: Shedder | None = None

    def taken(self, graph: Graph) -> tuple[Shedder, Choice]:
        """A new shedder for this network, and why it is that one."""
        found = choose(graph, SHEDDERS)
        shedder = shedder_named(found.name, self._rest)
        return (Las(rest=shedder) if found.timed else shedder), found

    def plan(self, problem: Problem) -> Plan | Infeasible:
        if self._taken is None:
            self._taken, _ = self.taken(problem.graph)
        return self._taken.plan(problem)
