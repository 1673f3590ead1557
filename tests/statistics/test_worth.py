"""Worth delivered in time: shed, late and unread rows are the same loss, with and without a latency graph."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.networks import Case, dags, steady, worth_and_work

from jettison.network import Network, QoS
from jettison.plan.certify import delivered_shares
from jettison.plan.plan import Plan
from jettison.plan.problem import Problem
from jettison.plan.shedders.registry import shedder_named
from jettison.statistics.samples import BatchSample, OutputSample
from jettison.statistics.worth import (
    share_of_worth,
    share_of_worth_by_rows,
    shares_in_time,
    timely_share,
    worth_by_rows_per_s,
    worth_per_s,
)

pytestmark = pytest.mark.core

ages = st.lists(st.floats(0.0, 10_000.0), min_size=8, max_size=8).map(lambda found: tuple(sorted(found)))


def sample(read: int = 100, age_ms: float = 500.0, **others: object) -> BatchSample:
    outputs = {"o": OutputSample(read, (age_ms,) * 8)}
    return BatchSample(0, 0.0, 1000.0, 900.0, {"s": read}, outputs=outputs, **others)  # type: ignore[arg-type]


def network(**qos: object) -> Network:
    net = Network("one")
    net.source("s", "x int").output("o", qos=QoS(**qos))  # type: ignore[arg-type]
    return net


def test_shed_rows_of_an_output_without_values_are_lost() -> None:
    """They counted as delivered: only outputs with a `value` have a share of worth."""
    graph = network().graph
    assert shares_in_time(graph, [sample(delivered={"o": 0.25})], 100, 3000.0) == {"o": 0.25}
    assert shares_in_time(graph, [sample(delivered={"o": 0.25}, worth={"o": 0.5})], 100, 3000.0) == {"o": 0.5}


def test_late_and_unread_rows_are_lost() -> None:
    graph = network().graph
    batches = [sample(), sample(age_ms=3500.0)]
    assert shares_in_time(graph, batches, 200, 3000.0) == {"o": 0.5}
    assert shares_in_time(graph, batches, 400, 3000.0) == {"o": 0.25}


def test_an_output_with_a_latency_graph_has_no_other_deadline() -> None:
    patient, hasty = network(latency=[(0, 1.0), ("7 seconds", 0.0)]), network(stale="400 milliseconds")
    late = [sample(age_ms=3500.0)]
    assert shares_in_time(patient.graph, late, 100, 3000.0) == {"o": pytest.approx(0.5)}
    assert shares_in_time(hasty.graph, [sample(age_ms=500.0)], 100, 3000.0) == {"o": 0.0}


def test_windows_count_as_windows() -> None:
    """Ten windows closed in the second batch, of which four were kept; none closed in the first."""
    net = Network("windows")
    trips = net.source("s", "at timestamp", event_time="at")
    trips.window("5 seconds").agg(n="count(*)", name="busy").output("o")
    batches = [sample(read=900, windows={"busy": (0.0, 0.0)}), sample(windows={"busy": (10.0, 4.0)})]
    assert shares_in_time(net.graph, batches, 1000, 3000.0) == {"o": pytest.approx(0.4)}


def test_windows_of_rows_that_were_shed_are_lost() -> None:
    """Nobody numbers them by time; their results are counted where they are dropped: 2 of 10 counted as all."""
    net = Network("windows")
    net.source("s", "x int").window("10 rows").agg(n="count(*)", name="tens").output("o", qos=QoS(gap=4))
    shed = sample(arcs={"s": (100, 100), "tens>o": (10, 2)})
    assert shares_in_time(net.graph, [shed], 100, 3000.0) == {"o": pytest.approx(0.2)}
    assert shares_in_time(net.graph, [shed, sample()], 200, 3000.0) == {"o": pytest.approx(0.6)}


@steady(100)
@given(ages, st.floats(1.0, 10_000.0), st.floats(1.0, 10_000.0))
def test_a_later_deadline_never_loses_more(ages_ms: tuple[float, ...], one_ms: float, other_ms: float) -> None:
    early, late = sorted((one_ms, other_ms))
    assert 0.0 <= timely_share(QoS(), ages_ms, early) <= timely_share(QoS(), ages_ms, late) <= 1.0


@steady(100)
@given(ages, st.floats(0.1, 10.0))
def test_a_latency_graph_prices_as_the_mean_over_the_rows_does(ages_ms: tuple[float, ...], gone_s: float) -> None:
    qos = QoS(latency=[(0, 1.0), (gone_s, 0.0)])
    shares = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)
    rows = 20_000
    mean = 0.0
    for number in range(rows):
        at = (number + 0.5) / rows
        piece = max(index for index in range(7) if shares[index] <= at)
        inside = (at - shares[piece]) / (shares[piece + 1] - shares[piece])
        mean += max(0.0, 1.0 - (ages_ms[piece] + inside * (ages_ms[piece + 1] - ages_ms[piece])) / 1000 / gone_s) / rows
    assert timely_share(qos, ages_ms, 1.0) == pytest.approx(mean, abs=0.02)


@steady(60)
@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_worth_never_falls_when_more_comes_in_time(one: float, other: float) -> None:
    graph = network(loss=[(100, 1.0), (50, 0.8), (0, 0.0)]).graph
    less, more = sorted((one, other))
    found = [worth_per_s(graph, {"o": share}, 10.0) for share in (less, more)]
    assert found[0] <= found[1] <= 10.0
    assert found == [worth_by_rows_per_s(graph, {"o": share}, {"o": 10.0}) for share in (less, more)], "of one output"


@steady(60)
@given(dags(), st.sampled_from((0.9, 0.6, 0.3, 0.1)))
def test_worth_in_time_is_what_the_plan_promised(case: Case, budget_share: float) -> None:
    """Nothing is late: the measure says of a plan's shares what the planner maximised, over everything delivered."""
    problem = Problem(case.graph, case.profile, case.rows, 0.0)
    plan = shedder_named("semantic").plan(problem.with_budget(budget_share * problem.load_us))
    assume(isinstance(plan, Plan))
    assert isinstance(plan, Plan)
    keeps = {arc: drop.keep for arc, drop in plan.drops.items()}
    promised, everything = (float(worth_and_work(case, each)[0]) for each in (keeps, {}))
    rows = {name: int(count) for name, count in case.rows.items()}
    fresh = {output.name: OutputSample(1, (500.0,) * 8) for output in case.graph.outputs}
    batch = BatchSample(0, 0.0, 1e3, 9e2, rows, outputs=fresh, delivered=delivered_shares(problem, plan))
    shares = shares_in_time(case.graph, [batch], sum(rows.values()), 3000.0)
    assert plan.utility == pytest.approx(promised)
    assert share_of_worth(case.graph, shares) == pytest.approx(promised / everything)
    assert worth_per_s(case.graph, shares, 50.0) == pytest.approx(50.0 * promised)


def test_results_of_windows_weigh_as_their_priority_says_however_few_they_are() -> None:
    """A dashboard of four results a second, a filter of a thousand rows: by rows, the dashboard is worth nothing."""
    net = Network("board")
    trips = net.source("s", "at timestamp, zone int", event_time="at")
    trips.output("rows")
    trips.window("5 seconds", by="zone").agg(n="count(*)", name="busy").output("board", qos=QoS(priority=3))
    closed, offered = {"rows": 1.0, "board": 0.0}, {"rows": 1000.0, "board": 4.0}
    assert share_of_worth(net.graph, closed) == 0.25
    assert share_of_worth_by_rows(net.graph, closed, offered) == pytest.approx(1000 / 1012)
