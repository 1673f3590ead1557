"""The shedders fair and fair-exact: what they plan on networks, and what holds for every network."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks import Case, dags, steady, trees

import jettison as jt
from jettison.errors import StartError
from jettison.network import Graph, Network, QoS
from jettison.plan.certify import certify
from jettison.plan.drops.buckets import Buckets
from jettison.plan.drops.by_key import ByKey
from jettison.plan.drops.random import Random
from jettison.plan.drops.stratified import Stratified
from jettison.plan.floors import plan_accuracies
from jettison.plan.plan import Infeasible, Plan
from jettison.plan.problem import Problem
from jettison.plan.shedders.fair.shedder import Fair
from jettison.plan.shedders.registry import shedder_for, shedder_named
from jettison.statistics.profile import Profile
from jettison.statistics.samples import BatchSample
from jettison.statistics.sic import SicWindow

pytestmark = pytest.mark.core


def sic_by_bucket(graph: Graph, plan: Plan) -> dict[str, float]:
    """The SIC of every output when one tuple of every bucket enters at every source, followed tuple by tuple."""
    found = {}
    for output in graph.outputs:
        sources = graph.sources_above(output.name)
        shares = [_share(graph, plan, source.name, output.name) for source in sources]
        found[output.name] = sum(shares) / len(shares)
    return found


def _share(graph: Graph, plan: Plan, source: str, output: str) -> float:
    buckets = 64 * 64
    below = {each.name: graph.outputs_below(each.name) | {each.name} for each in graph.operators}
    passed = {source: _pass(plan, source, np.arange(buckets) / buckets, np.ones(buckets))}
    for operator in graph.operators:
        name = operator.name
        if name == source or output not in below[name]:
            continue
        coming = np.zeros(buckets)
        for tail in operator.inputs:
            if tail in passed:
                branches = sum(output in below[head] for head in graph.consumers[tail])
                coming += _pass(plan, f"{tail}>{name}", np.arange(buckets) / buckets, passed[tail] / branches)
        passed[name] = coming
    return float(passed[output].sum()) / buckets


def _pass(plan: Plan, arc: str, at: np.ndarray, amount: np.ndarray) -> np.ndarray:
    drop = plan.drops.get(arc)
    if drop is None:
        return amount
    if isinstance(drop, Buckets):
        return np.where(at < drop.kept / drop.buckets, amount, 0.0)
    assert isinstance(drop, Random)
    return amount * drop.keep


def _answer(shedder: Fair, case: Case, budget_share: float) -> tuple[Problem, Plan, bool]:
    problem = Problem(case.graph, case.profile, case.rows, 0.0)
    free_us = problem.load_us - problem.unavoidable_us
    problem = problem.with_budget(problem.unavoidable_us + budget_share * free_us)
    found = shedder.plan(problem)
    return problem, found if isinstance(found, Plan) else found.best, isinstance(found, Plan)


SHARES = st.sampled_from([0.05, 0.2, 0.4, 0.5, 0.75, 0.95])


@steady(60)
@given(st.one_of(trees(), dags()), SHARES)
def test_plans_are_feasible_deterministic_and_certified(case: Case, share: float) -> None:
    for exact in (False, True):
        problem, plan, fits = _answer(Fair(exact=exact), case, share)
        assert fits
        certify(problem, plan)
        assert _answer(Fair(exact=exact), case, share)[1] == plan


@steady(60)
@given(st.one_of(trees(), dags()), SHARES, SHARES)
def test_the_lowest_sic_rises_with_capacity_and_never_beats_exact_shares(case: Case, one: float, two: float) -> None:
    low, high = sorted((one, two))
    lowest = {share: min(sic_by_bucket(case.graph, _answer(Fair(), case, share)[1]).values()) for share in (low, high)}
    assert lowest[low] <= lowest[high] + 1e-9
    best = min(sic_by_bucket(case.graph, _answer(Fair(exact=True), case, high)[1]).values())
    assert lowest[high] <= best + 2 / 4096


@steady(40)
@given(st.one_of(trees(drops_us=(0.0, 0.1)), dags(drops_us=(0.0, 0.1))))
def test_nothing_is_dropped_below_capacity_and_drops_are_paid_for(case: Case) -> None:
    problem, plan, _ = _answer(Fair(), case, 1.0)
    assert not plan.drops
    problem, plan, fits = _answer(Fair(), case, 0.5)
    if fits:
        certify(problem, plan)


def _one_source() -> Graph:
    net = Network("users")
    s = net.source("s", "x int")
    s.where("x > 0", name="a").output("cheap")
    s.where("x > 5", name="b").output("dear", qos=QoS(priority=2.0))
    return net.graph


def _problem(graph: Graph, costs_us: Mapping[str, float], rows: Mapping[str, float], budget_us: float) -> Problem:
    return Problem(graph, Profile(dict(costs_us), {}), dict(rows), budget_us)


def test_queries_of_one_source_keep_nested_buckets() -> None:
    problem = _problem(_one_source(), {"s": 1.0, "a": 1.0, "b": 8.0}, {"s": 640.0}, 3200.0)
    plan = Fair(weights=True).plan(problem)
    assert isinstance(plan, Plan)
    certify(problem, plan)
    cheap, dear = plan.delivered["cheap"], plan.delivered["dear"]
    assert dear == pytest.approx(2 * cheap, abs=1 / 64)  # priority 2: twice the SIC
    assert plan.drops["s"].keep == dear
    assert isinstance(plan.drops["s>a"], Buckets)
    equal = Fair().plan(problem)
    assert equal.delivered == {"cheap": 0.5, "dear": 0.5}
    assert list(equal.drops) == ["s"]  # what nobody needs is dropped at the source


def test_the_slow_source_comes_first() -> None:
    """Of 10,000 and of 100 rows, each source is half of the query: all rows of the slow one, then of the fast one."""
    net = Network("one")
    fast, slow = net.source("fast", "x int"), net.source("slow", "x int")
    fast.union(slow, name="u").output("both")
    problem = _problem(net.graph, {"u": 1.0}, {"fast": 10_000.0, "slow": 100.0}, 2600.0)
    plan = Fair().plan(problem)
    assert isinstance(plan, Plan)
    assert plan.drops == {"fast": Buckets(16)}
    assert sic_by_bucket(net.graph, plan) == {"both": 0.625}


def test_who_has_lost_of_late_is_ahead() -> None:
    graph = _one_source()
    window = SicWindow(graph, 10_000.0)
    for number in range(5):
        counted = {"s": (640, 640), "s>b": (640, 320)}
        window = window.after(BatchSample(number, 0.0, 1000.0, 900.0, {"s": 640}, arcs=counted))
    problem = _problem(graph, {"a": 1.0, "b": 1.0}, {"s": 640.0}, 640.0)
    shedder = Fair()
    assert shedder.plan(problem).delivered == {"cheap": 0.5, "dear": 0.5}
    shedder.follow_sic(window)
    assert shedder.plan(problem).delivered == {"cheap": 0.0, "dear": 1.0}


def test_what_the_coming_batch_pushes_out_of_the_window_does_not_count() -> None:
    """A window of three batches: dear lost all of the first one, which has left when the coming one is in."""
    graph = _one_source()
    window = SicWindow(graph, 3_000.0)
    for number, kept in enumerate((0, 640, 640)):
        counted = {"s": (640, 640), "s>b": (640, kept)}
        window = window.after(BatchSample(number, 0.0, 1000.0, 900.0, {"s": 640}, arcs=counted))
    assert window.sic("dear") == pytest.approx(2 / 3)
    shedder = Fair()
    shedder.follow_sic(window)
    plan = shedder.plan(_problem(graph, {"a": 1.0, "b": 1.0}, {"s": 640.0}, 640.0))
    assert plan.delivered == {"cheap": 0.5, "dear": 0.5}


def test_a_stall_does_not_wipe_out_who_lost_in_it() -> None:
    """A batch longer than the window: the coming one was taken to be as long, so that nothing of it was left."""
    graph = _one_source()
    lost = BatchSample(0, 0.0, 12_000.0, 900.0, {"s": 640}, arcs={"s": (640, 640), "s>b": (640, 0)})
    shedder = Fair()
    shedder.follow_sic(SicWindow(graph, 10_000.0).after(lost))
    plan = shedder.plan(_problem(graph, {"a": 1.0, "b": 1.0}, {"s": 640.0}, 640.0))
    assert plan.delivered == {"cheap": 0.0, "dear": 1.0}


def test_what_a_query_has_elsewhere_counts() -> None:
    problem = _problem(_one_source(), {"a": 1.0, "b": 1.0}, {"s": 640.0}, 640.0)
    known = Fair(known_sic={"cheap": jt.Elsewhere(1.0, sources=1), "dear": 0.5}).plan(problem)
    assert known.delivered["dear"] == pytest.approx(0.75, abs=1 / 64)
    assert known.delivered["cheap"] == pytest.approx(0.25, abs=1 / 64)
    assert Fair(known_sic=lambda query: None).plan(problem).delivered == {"cheap": 0.5, "dear": 0.5}


def test_a_query_that_the_network_does_not_have_is_refused_at_the_start() -> None:
    fair = Fair(known_sic={"cheap": 0.9, "deer": 0.5})
    says = r"names 'deer', which is no output of network 'users' \(did you mean 'dear'\?\); there are: cheap, dear"
    for shedder in (fair, jt.Las(rest=fair)):
        with pytest.raises(StartError, match=says):
            shedder_for(shedder, _one_source())
    own = Fair(known_sic=lambda query: {"cheap": 0.9, "of another node": 0.5}.get(query))
    assert shedder_for(own, _one_source()) == (own, None)


def test_floors_are_held() -> None:
    net = Network("floors")
    s = net.source("s", "x int")
    s.where("x > 0", name="a").output("a_out", qos=QoS(min_accuracy=0.6))
    s.where("x > 5", name="b").output("b_out")
    problem = _problem(net.graph, {"a": 1.0, "b": 1.0}, {"s": 640.0}, 512.0)
    for exact in (False, True):
        plan = Fair(exact=exact).plan(problem)
        assert isinstance(plan, Plan)
        certify(problem, plan)
        accuracies = plan_accuracies(net.graph, problem.rows, plan)
        assert accuracies["a_out"] >= 0.6
        assert accuracies["b_out"] == pytest.approx(0.2, abs=0.02)
    tight = problem.with_budget(300.0)
    found = Fair().plan(tight)
    assert isinstance(found, Infeasible)
    assert plan_accuracies(net.graph, tight.rows, found.best)["a_out"] >= 0.6


def test_joins_lose_whole_keys_and_estimates_are_sampled() -> None:
    net = Network("shop")
    orders = net.source("orders", "id long, at timestamp", event_time="at", id=["id"])
    paid = net.source("paid", "id long, at timestamp, sum double", event_time="at", id=["id"]).select("id", "sum")
    orders.join(paid, on="id", within="1 minute", name="both").output("pairs")
    orders.where("id > 0", name="sound").output("plain")
    views = net.source("views", "id long, at timestamp", event_time="at", id=["id"])
    views.window("1 minute", by="id").agg(n="count(*)", name="n").output("seen", qos=QoS(on_loss="estimate"))
    views.where("id > 5", name="some").output("some_views")
    costs = {"both": 2.0, "sound": 5.0, "n": 3.0, "some": 4.0}
    problem = _problem(net.graph, costs, {"orders": 640.0, "paid": 640.0, "views": 6400.0}, 20_000.0)
    plan = Fair().plan(problem)
    assert isinstance(plan, Plan)
    certify(problem, plan)
    assert isinstance(plan.drops["orders"], ByKey)
    assert isinstance(plan.drops["paid"], ByKey)
    assert isinstance(plan.drops["views"], Stratified)
    shares = list(plan.delivered.values())
    assert max(shares) - min(shares) <= 2 / 64


def test_windows_that_must_be_right_are_dropped_whole() -> None:
    net = Network("taxi")
    trips = net.source("trips", "trip long, at timestamp, fare double", event_time="at", id=["trip"])
    trips.window("10 seconds").agg(n="count(*)", name="n").output("counts", qos=QoS(gap=9))
    rides = net.source("rides", "x int")
    rides.where("x > 0", name="w").output("rides_out")
    problem = _problem(net.graph, {"n": 1.0, "w": 1.0}, {"trips": 640.0, "rides": 640.0}, 640.0)
    plan = Fair().plan(problem)
    assert isinstance(plan, Plan)
    certify(problem, plan)
    assert plan.drops["trips"].judges == "window"
    assert plan.delivered["counts"] == pytest.approx(0.5, abs=0.02)
    assert plan.delivered["rides_out"] == pytest.approx(0.5, abs=0.02)


def test_the_seeds_cost_model_admits_by_tuples() -> None:
    graph = _one_source()
    shedder = Fair(costs="tuples")
    sample = BatchSample(0, 0.0, 300.0, 300.0, {"s": 2500})
    shedder.follow_sic(SicWindow(graph, 10_000.0).after(sample))
    shedder.observe(sample)  # each of two queries has processed 2,500 tuples in 300 ms
    assert shedder.tuple_costs.tuple_ms == pytest.approx(0.06)
    problem = _problem(graph, {"a": 50.0, "b": 50.0}, {"s": 6400.0}, 250_000.0)
    plan = shedder.plan(problem)
    assert isinstance(plan, Plan)
    certify(problem, plan)
    kept = 6400 * sum(plan.delivered.values())
    assert 4166 - 200 <= kept <= 4166


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"buckets": 1}, "buckets is 1: give a whole number from 2"),
        ({"costs": "tuple"}, r"costs is 'tuple' \(did you mean 'tuples'\?\)"),
        ({"weights": 2}, "weights is 2: say True or False"),
        ({"known_sic": {"o": 1.5}}, "known_sic of 'o' is 1.5: give a SIC from 0 to 1"),
        ({"known_sic": 0.5}, "give a mapping from outputs"),
        ({"exact": True, "costs": "tuples"}, "exact shares are by work"),
    ],
)
def test_bad_arguments_are_named(given: dict[str, object], says: str) -> None:
    with pytest.raises(StartError, match=says):
        Fair(**given)
    with pytest.raises(StartError, match=r"jt\.Elsewhere: sic is 2"):
        jt.Elsewhere(2)


def test_names() -> None:
    assert isinstance(shedder_named("fair"), jt.Fair)
    assert isinstance(shedder_named("fair-exact"), jt.Fair)
