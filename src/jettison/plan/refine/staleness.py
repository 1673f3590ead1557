"""What nobody wants any more goes first: tuples so old that their latency utility has fallen to zero.

Dropping them loses no utility, so it comes before any other drop, as soon as there is an overload: after an outage the
old backlog makes way for the new. A tuple is stale on an arc when it is to every output that the arc leads to, by the
time at which it would be delivered: in an overload a batch takes its whole budget.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from jettison.network.arc import arc_head
from jettison.network.graph import Graph
from jettison.network.windows.slice_groups import meets_windows
from jettison.plan.floors import below_floor
from jettison.plan.placement.join_keys import joins_below
from jettison.plan.placement.locations import drop_arcs
from jettison.plan.plan import Plan
from jettison.plan.problem import Problem
from jettison.statistics.load import flows


@dataclass(frozen=True)
class Fresh:
    """What of a batch is still worth something: by arc, the event time (seconds since 1970) from which on tuples are,
    and the share of those that enter there."""

    since_s: Mapping[str, float]
    shares: Mapping[str, float]


def stale_limits(graph: Graph) -> dict[str, float]:
    """The age in seconds from which on tuples are stale, by arc; only where that is sooner than on all arcs above.

    >>> from jettison.network import Network, QoS
    >>> net = Network("taxi")
    >>> trips = net.source("trips", "trip long, at timestamp", event_time="at")
    >>> _ = trips.where("trip > 0", name="a").output("map", qos=QoS(stale="10 seconds"))
    >>> _ = trips.where("trip > 1", name="b").output("bill", qos=QoS(stale="1 hour"))
    >>> stale_limits(net.graph)
    {'trips': 3600.0, 'trips>a': 10.0}
    """
    limits: dict[str, float] = {}
    passed = {source.name: float("inf") for source in graph.sources}  # by operator: how old its tuples can be
    arcs = set(drop_arcs(graph))
    for operator in graph.operators:
        above = passed[operator.name] if not operator.inputs else 0.0
        for arc in graph.arcs_into(operator.name):
            tail = arc.tail
            reaching = above if tail is None else passed[tail]
            wanted = _limit(graph, arc)
            if arc in arcs and wanted is not None and wanted < reaching:
                limits[arc] = reaching = wanted
            passed[operator.name] = reaching if tail is None else max(passed.get(operator.name, 0.0), reaching)
    return limits


def _limit(graph: Graph, arc: str) -> float | None:
    if joins_below(graph, arc):
        return None  # a row that waits at a join is as fresh as the partner that is to come
    if meets_windows(graph, arc):
        return None  # without its stale rows a window would be another, and a result is no row
    head = arc_head(arc)
    names = graph.outputs_below(head) | {head}
    ages = [output.qos.stale_s for output in graph.outputs if output.name in names]
    return None if any(age is None for age in ages) else max((age for age in ages if age is not None), default=None)


def when_planned(limits: Mapping[str, float], batch_s: float) -> dict[str, float]:
    """How old tuples may be when a batch is planned that takes so long, to be within their limits when it is done.

    Of a limit that is not twice that long, half is left: with less, nothing at all would come through.

    >>> when_planned({"trips": 8.0, "trips>map": 5.0}, 3.5)
    {'trips': 4.5, 'trips>map': 2.5}
    """
    return {arc: limit - min(batch_s, limit / 2) for arc, limit in limits.items()}


def within_floors(graph: Graph, rows: Mapping[str, float], fresh: Fresh, read: Mapping[str, float]) -> Fresh:
    """What is stale, without the arcs where dropping it would take an output below its floor; `read` are the shares of
    sources that were read.

    >>> from jettison.network import Network, QoS
    >>> net = Network("taxi")
    >>> trips = net.source("trips", "at timestamp", event_time="at")
    >>> _ = trips.output("map", qos=QoS(stale="10 seconds", min_accuracy=0.5))
    >>> for part in (0.4, 0.6):
    ...     within_floors(net.graph, {"trips": 100}, Fresh({"trips": 9.0}, {"trips": part}), {}).shares
    {'trips': 1.0}
    {'trips': 0.6}
    """
    shares = dict(fresh.shares)
    while True:
        besides = {arc: shares.get(arc, 1.0) * read.get(arc, 1.0) for arc in {**shares, **read}}
        short = below_floor(graph, rows, Plan(), besides)
        heads = {arc: arc_head(arc) for arc, share in shares.items() if share < 1.0}
        leading = [arc for arc, head in heads.items() if short.keys() & (graph.outputs_below(head) | {head})]
        if not leading:
            return replace(fresh, shares=shares)
        shares[min(leading, key=lambda arc: shares[arc])] = 1.0


def saved_by_stale_us(problem: Problem, fresh: Mapping[str, float]) -> float:
    """The work that dropping stale tuples saves; `fresh` is the share on an arc that is not, of what enters there."""
    before = flows(problem.graph, problem.profile, problem.rows)
    after = flows(problem.graph, problem.profile, problem.rows, dict(fresh))
    saved = sum(
        (before[arc] - after[arc]) * problem.profile.cost(operator.name)
        for operator in problem.graph.operators
        for arc in problem.graph.arcs_into(operator.name)
    )
    look_us = problem.profile.look_us  # of a source: what it takes to see a row's time inside its payload
    judged = sum((problem.profile.drop_us + look_us.get(arc, 0.0)) * before[arc] for arc in fresh)
    return max(0.0, saved - judged)


def left_when_fresh(problem: Problem, fresh: Fresh) -> Problem:
    """The problem that is left when stale tuples are dropped: fewer rows, and what is still to be saved."""
    graph, profile = problem.graph, problem.profile
    after = flows(graph, profile, problem.rows, fresh.shares)
    left = Problem(graph, profile, {name: after[name] for name in problem.rows}, 0.0)
    saved_us = saved_by_stale_us(problem, fresh.shares)
    return left.with_budget(left.load_us - (problem.load_us - problem.budget_us - saved_us))


def fresh_shares(problem: Problem, fresh: Fresh) -> dict[str, float]:
    """The share of each output's tuples that is not stale."""
    before = flows(problem.graph, problem.profile, problem.rows)
    after = flows(problem.graph, problem.profile, problem.rows, fresh.shares)
    arcs = {output.name: problem.graph.arcs_into(output.name)[0] for output in problem.graph.outputs}
    return {name: after[arc] / before[arc] if before[arc] > 0 else 1.0 for name, arc in arcs.items()}


def with_stale(problem: Problem, fresh: Fresh, plan: Plan) -> Plan:
    """A plan for what is fresh (`left_when_fresh`), with stale tuples dropped beside it."""
    shares = fresh_shares(problem, fresh)
    delivered = {name: share * plan.delivered.get(name, 1.0) for name, share in shares.items()}
    stale = {arc: since_s for arc, since_s in fresh.since_s.items() if fresh.shares[arc] < 1.0}
    worth = {**plan.delivered, **plan.worth}  # with what is worth nothing any more nothing is lost
    saves_us = plan.saves_us + saved_by_stale_us(problem, fresh.shares)
    return replace(plan, delivered=delivered, worth=worth, stale=stale, saves_us=saves_us)
