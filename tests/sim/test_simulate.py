"""The simulator: every tuple is accounted for, and the loop does on a virtual clock what it does on Spark."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks import Case, dags, steady, trees

from jettison.errors import JettisonError
from jettison.network import Graph, Network, Output, QoS
from jettison.plan.problem import Problem
from jettison.sim import SimResult, simulate
from jettison.sim.engine import SCHEDULERS
from jettison.statistics.load import flows
from jettison.statistics.profile import Profile
from jettison.synthetic.rates import Burst, Constant, Step

pytestmark = pytest.mark.core

TRIGGER_MS = 1000.0
schedulers = pytest.mark.parametrize("scheduler", SCHEDULERS)


def taxi() -> Graph:
    net = Network("taxi")
    paid = net.source("trips", "fare double").where("fare > 0", name="paid")
    paid.select("fare", name="columns").output("fares", qos=QoS(((100, 1.0), (50, 0.8), (0, 0.0))))
    paid.where("fare > 200", name="dear").output("alerts", qos=QoS(priority=2))
    return net.graph


# per trip: 1 read + 1 trips + 2 paid + .9 columns + .9 fares + .9 dear = 6.7 us, so 134,000 trips/s fill 900 ms
PROFILE = Profile(
    {"trips": 1.0, "paid": 2.0, "columns": 1.0, "fares": 1.0, "dear": 1.0},
    {"paid": 0.9, "dear": 0.05},
    fixed_ms=100.0,
    read_us={"trips": 1.0},
)
CAPACITY = 134_000


def run(rate: float | Burst | Step, seconds: float = 30, **settings: object) -> SimResult:
    options = {"trigger_ms": TRIGGER_MS, "seconds": seconds, **settings}
    return simulate(taxi(), PROFILE, {"trips": rate}, **options)  # type: ignore[arg-type]


def worst(result: SimResult, name: str = "p99") -> float:
    return max(output.latency_ms[name] for output in result.outputs.values() if output.rows)


def at_load(case: Case, load: float) -> Profile:
    """The case's profile, dearer or cheaper, so that its rows cause so much load in a trigger interval."""
    now_us = Problem(case.graph, case.profile, case.rows, 0.0).load_us
    factor = 1000 * TRIGGER_MS * load / now_us if now_us else 1.0
    old = case.profile
    return replace(
        old,
        cost_us={name: factor * cost for name, cost in old.cost_us.items()},
        read_us={name: factor * cost for name, cost in old.read_us.items()},
        fixed_ms=factor * old.fixed_ms,
        drop_us=factor * old.drop_us,
    )


# --- every tuple is accounted for ---------------------------------------------------------------------------------


def balance(case: Case, result: SimResult) -> tuple[float, float]:
    """What came in, copies for every further reader of an operator included; and what became of it."""
    graph = case.graph
    gave: dict[str, float] = {}
    came = sum(result.arrived.values())
    for operator in graph.operators:
        if isinstance(operator, Output):
            continue
        arcs = graph.arcs_into(operator.name)
        entered = sum(gave[tail] for tail in operator.inputs) if operator.inputs else result.arrived[operator.name]
        taken = entered - sum(result.shed.get(arc, 0.0) + result.queued.get(arc, 0.0) for arc in arcs)
        gave[operator.name] = taken - result.filtered[operator.name]
        came += (len(graph.consumers[operator.name]) - 1) * gave[operator.name]
    delivered = sum(output.rows for output in result.outputs.values())
    parts = (result.shed, result.filtered, result.queued)
    return came, delivered + sum(sum(part.values()) for part in parts)


@schedulers
@steady(25)
@given(
    case=st.one_of(trees(4, drops_us=(0.0, 0.1)), dags(4)),
    load=st.sampled_from((0.5, 1.5, 4.0)),
    shedding=st.booleans(),
)
def test_every_tuple_is_accounted_for(scheduler: str, case: Case, load: float, shedding: bool) -> None:
    result = simulate(
        case.graph,
        at_load(case, load),
        case.rows,
        trigger_ms=TRIGGER_MS,
        seconds=4.5,
        shedding=shedding,
        scheduler=scheduler,
        noise_share=0.2,
        seed=3,
    )
    assert result.arrived == {name: Constant(rate).rows_until(4.5) for name, rate in case.rows.items()}
    came, became = balance(case, result)
    assert came == pytest.approx(became)
    assert all(count >= 0 for count in (*result.shed.values(), *result.queued.values()))
    for operator in case.graph.operators:
        if case.profile.passes(operator.name) <= 1 and not isinstance(operator, Output):
            assert result.filtered[operator.name] >= 0
    if not shedding:
        assert not result.shed


@steady(30)
@given(case=st.one_of(trees(), dags()))
def test_without_noise_flows_are_the_expected_ones(case: Case) -> None:
    result = simulate(
        case.graph, at_load(case, 3.0), case.rows, trigger_ms=TRIGGER_MS, seconds=5, noise=False, headroom=0.8
    )
    read = {name: count - result.queued.get(name, 0.0) for name, count in result.arrived.items()}
    full = flows(case.graph, case.profile, read)
    for output in case.graph.outputs:
        (arc,) = case.graph.arcs_into(output.name)
        found = result.outputs[output.name]
        assert found.rows + found.lost_rows == pytest.approx(full[arc]), "what was delivered and what was lost"
    for batch in result.batches:
        expected = flows(case.graph, case.profile, batch.rows_in, {a: d.keep for a, d in batch.plan.drops.items()})
        for output in case.graph.outputs:
            (arc,) = case.graph.arcs_into(output.name)
            assert batch.delivered[output.name] == pytest.approx(expected[arc])


# --- within capacity, and beyond ----------------------------------------------------------------------------------


@schedulers
def test_within_capacity_nothing_is_shed(scheduler: str) -> None:
    result = run(0.8 * CAPACITY, scheduler=scheduler)
    assert not result.shed
    assert result.utility == pytest.approx(3.0)
    assert all(output.delivered_share == 1.0 for output in result.outputs.values())


def test_within_capacity_latency_is_the_wait_for_the_trigger_and_the_batch() -> None:
    result = run(0.8 * CAPACITY)
    batch_ms = result.batches[-1].duration_ms
    assert batch_ms == pytest.approx(100 + 0.8 * CAPACITY * 6.7 / 1000, rel=0.01)
    assert worst(result, "max") == pytest.approx(TRIGGER_MS + batch_ms, abs=60)
    assert result.outputs["fares"].latency_ms["p50"] == pytest.approx(TRIGGER_MS / 2 + batch_ms, abs=60)


@schedulers
@pytest.mark.parametrize("times", [1.5, 3.0])
def test_overload_with_shedding_stays_fresh_and_without_it_does_not(scheduler: str, times: float) -> None:
    shed = run(times * CAPACITY, seconds=60, scheduler=scheduler)
    assert worst(shed) <= 2.5 * TRIGGER_MS
    late = run(times * CAPACITY, seconds=60, scheduler=scheduler, shedding=False)
    p99 = [max(each["p99"] for each in batch.latency_ms.values()) for batch in late.batches if batch.latency_ms]
    assert p99[-1] > 1.8 * p99[len(p99) // 2 - 1] > 2.5 * TRIGGER_MS
    assert all(output.delivered_share == 1.0 for output in late.outputs.values()), "late, not lost"


@pytest.mark.parametrize("times", [1.2, 3.0])
def test_both_schedulers_deliver_about_the_same(times: float) -> None:
    batch, turns = (run(times * CAPACITY, seconds=60, scheduler=scheduler) for scheduler in SCHEDULERS)
    for name, output in batch.outputs.items():
        assert turns.outputs[name].delivered_share == pytest.approx(output.delivered_share, abs=0.05)


def test_queues_stand_where_tuples_wait() -> None:
    result = run(3 * CAPACITY, seconds=10, scheduler="round-robin", shedding=False)
    lengths = [sum(batch.queues.values()) for batch in result.batches]
    assert lengths == sorted(lengths)
    assert sum(result.queued.values()) > CAPACITY
    calm = run(0.5 * CAPACITY, seconds=10, scheduler="round-robin")
    assert sum(calm.queued.values()) <= 0.5 * CAPACITY * 0.1 + 1, "what arrived in the last tick"


def test_alerts_are_kept_longest() -> None:
    result = run(1.2 * CAPACITY)
    assert result.outputs["alerts"].delivered_share > result.outputs["fares"].delivered_share + 0.1


@schedulers
def test_a_burst_recovers(scheduler: str) -> None:
    result = run(Burst(0.5 * CAPACITY, 5 * CAPACITY, at_s=10, length_s=5), seconds=60, scheduler=scheduler)
    assert result.shed
    assert not any(batch.plan.drops for batch in result.batches if batch.started_ms < 10_000)
    after = [batch for batch in result.batches if batch.started_ms > 40_000]
    assert not any(batch.plan.drops for batch in after)
    calm = max(late["p99"] for late in result.batches[8].latency_ms.values())
    assert max(late["p99"] for batch in after for late in batch.latency_ms.values()) <= 1.1 * calm


@schedulers
@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_costs_that_are_wrong_are_learned(scheduler: str, factor: float) -> None:
    truth = replace(PROFILE, cost_us={name: factor * cost for name, cost in PROFILE.cost_us.items()})
    result = run(0.9 * CAPACITY, seconds=90, truth=truth, scheduler=scheduler)
    last = result.batches[-1]
    assert bool(last.plan.drops) == (factor > 1)
    assert max(late["p99"] for late in last.latency_ms.values()) <= 2.5 * TRIGGER_MS


@schedulers
def test_outputs_are_judged_after_the_warm_up(scheduler: str) -> None:
    less = Step(3 * CAPACITY, 0.5 * CAPACITY, at_s=10)
    whole, later = (run(less, seconds=40, scheduler=scheduler, warmup_s=warmup_s) for warmup_s in (0, 20))
    assert whole.outputs["fares"].delivered_share < 0.8
    assert later.outputs["fares"].delivered_share == 1.0
    assert later.shed == whole.shed
    assert later.outputs["fares"].rows == pytest.approx(0.9 * 0.5 * CAPACITY * 20, rel=0.06)


# --- chance -------------------------------------------------------------------------------------------------------


@schedulers
def test_the_same_seed_gives_the_same_result(scheduler: str) -> None:
    first, again = (run(2 * CAPACITY, noise_share=0.1, seed=4, scheduler=scheduler) for _ in range(2))
    assert first == again
    assert first != run(2 * CAPACITY, noise_share=0.1, seed=5, scheduler=scheduler)


def test_noise_is_about_what_is_expected() -> None:
    sure, drawn = run(2 * CAPACITY, noise=False), run(2 * CAPACITY)
    for name, output in sure.outputs.items():
        assert drawn.outputs[name].delivered_share == pytest.approx(output.delivered_share, abs=0.02)
        assert drawn.outputs[name].rows == int(drawn.outputs[name].rows)


@schedulers
def test_a_machine_that_gets_slower_sheds_from_then_on(scheduler: str) -> None:
    result = run(0.8 * CAPACITY, noise=False, scheduler=scheduler, pace=[(0.0, 1.0), (10.0, 2.0)])
    first = next(batch.started_ms for batch in result.batches if batch.plan.sheds)
    assert 10_000 <= first <= 14_000
    assert result.batches[-1].plan.sheds


# --- what it is started with --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"seconds": 0}, "seconds is 0"),
        ({"seconds": float("inf")}, "seconds is inf"),
        ({"noise_share": -1}, "noise_share is -1"),
        ({"pace": [(0.0, 0.0)]}, "factors above 0"),
        ({"pace": [(5.0, 1.0), (5.0, 2.0)]}, "seconds that rise"),
        ({"scheduler": "fifo"}, "'fifo'.*batch"),
        ({"shedder": "nobody"}, "'nobody'.*input-uniform"),
        ({"warmup_s": 30}, "warmup_s is 30"),
        ({"planned_as": Network("other").graph}, "other arcs"),
        ({"trigger_ms": 0}, "trigger"),
        ({"truth": Profile({"nobody": 1.0}, {})}, "'nobody'"),
    ],
)
def test_what_cannot_be_simulated_is_refused(settings: dict[str, object], words: str) -> None:
    with pytest.raises(JettisonError, match=words):
        run(1000, **settings)


def test_rates_must_fit_the_sources() -> None:
    for rates, words in (({}, "'trips'"), ({"trips": 1, "rides": 1}, "'rides'"), ({"trips": -1}, "-1")):
        with pytest.raises(JettisonError, match=words):
            simulate(taxi(), PROFILE, rates, trigger_ms=TRIGGER_MS, seconds=1)  # type: ignore[arg-type]


def test_silence_is_no_batch() -> None:
    assert run(0).batches == ()
    late = run(Burst(0, 1000, at_s=5.2, length_s=1), seconds=10)
    assert [batch.started_ms for batch in late.batches] == [6000, 7000]
