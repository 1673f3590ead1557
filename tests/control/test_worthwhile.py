"""Nothing is thrown away for nothing (Trust 9): shedding that cannot help, costs that nobody should believe yet."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace

import pytest

import jettison as jt
from jettison.control.loop import Controller, Settings
from jettison.plan.certify import planned_load_us
from jettison.plan.plan import Plan
from jettison.plan.problem import Problem
from jettison.plan.refine.staleness import Fresh
from jettison.plan.refine.unread import Unread
from jettison.plan.shedders.registry import SHEDDERS
from jettison.statistics.profile import Profile
from jettison.statistics.samples import BatchSample

pytestmark = pytest.mark.core


def fan(outputs: int = 20, **qos: float) -> jt.Graph:
    net = jt.Network("fan")
    trips = net.source("trips", "x int")
    for number in range(outputs):
        trips.where(f"x > {number}", name=f"w{number}").output(f"o{number}", qos=jt.QoS(**qos))  # type: ignore[arg-type]
    return net.graph


def profile_of(graph: jt.Graph, fixed_ms: float, row_us: float) -> Profile:
    """A row costs `row_us` in all, divided evenly between the branches."""
    branches = len(graph.outputs)
    return Profile({f"w{number}": row_us / branches for number in range(branches)}, {}, fixed_ms=fixed_ms)


class Machine:
    """Batches against true costs: the next begins when this one ends, or with the next trigger."""

    def __init__(self, controller: Controller, truth: Profile, rows_per_s: float) -> None:
        self.controller, self.truth, self.rows_per_s = controller, truth, rows_per_s
        self.now_ms, self.read_ms = 1000.0, 0.0
        self.slowness: Callable[[], float] = lambda: 1.0
        self.plans: list[Plan] = []
        self.took_ms: list[float] = []
        self.rows: list[int] = []

    def run(self, batches: int) -> Machine:
        for batch in range(len(self.plans), len(self.plans) + batches):
            interval_ms = self.now_ms - self.read_ms
            rows = {"trips": round(self.rows_per_s * interval_ms / 1000)}
            self.read_ms = self.now_ms
            plan = self.controller.decide(rows, self.now_ms)
            work_us = planned_load_us(Problem(self.controller.graph, self.truth, rows, 0.0), plan)
            took_ms = self.slowness() * work_us / 1000
            self.controller.record(BatchSample(batch, self.now_ms, interval_ms, took_ms, rows))
            self.now_ms += max(self.controller.settings.trigger_ms, took_ms)
            self.plans.append(plan)
            self.took_ms.append(took_ms)
            self.rows.append(rows["trips"])
        return self


@pytest.mark.parametrize("shedder", SHEDDERS)
def test_trust_9_twenty_outputs_whose_fixed_cost_is_above_the_budget_are_delivered_whole(shedder: str) -> None:
    """The run of the issue: trigger 1 s, fixed cost 2.2 s, 2.4 s unshed. It used to deliver 2 % in 2.2 s."""
    graph = fan()
    truth = profile_of(graph, 2200.0, row_us=83.0)  # 1,000 rows/s: 2.4 s a batch
    controller = Controller(graph, Settings(1000.0, shedder=shedder), truth)
    ran = Machine(controller, truth, rows_per_s=1000.0).run(15)
    assert not any(plan.sheds for plan in ran.plans)
    assert ran.took_ms[-1] == pytest.approx(2400.0, rel=0.02), "the batches stay as long as they were"
    assert ran.plans[-1].reason == "shedding cannot help"
    assert controller.infeasible is not None
    assert "fixed" in controller.infeasible
    assert "2200 ms" in controller.infeasible
    assert controller.read_share({"trips": 2400}, frozenset({"trips"})) == 1.0, "nor is anything passed over unread"


@pytest.mark.parametrize(("fixed_ms", "row_us"), [(2200.0, 83.0), (850.0, 60.0), (5000.0, 700.0), (880.0, 83.0)])
def test_trust_9_the_message_names_a_trigger_that_is_long_enough(fixed_ms: float, row_us: float) -> None:
    """Whoever does as the message says has no more of it, and sheds nothing."""
    graph = fan()
    truth = profile_of(graph, fixed_ms, row_us)
    first = Controller(graph, Settings(1000.0), truth)
    Machine(first, truth, rows_per_s=1000.0).run(10)
    told = re.search(r"Use a trigger ([0-9.]+) times as long or longer, fewer outputs", first.infeasible or "")
    assert told is not None, first.infeasible
    longer = Controller(graph, Settings(1.05 * float(told[1]) * 1000.0), truth)
    ran = Machine(longer, truth, rows_per_s=1000.0).run(10)
    assert longer.infeasible is None
    assert not any(plan.sheds for plan in ran.plans)
    assert max(ran.took_ms[3:]) <= longer.settings.budget_us / 1000


def test_trust_9_a_fixed_cost_near_the_budget_is_as_good_as_above() -> None:
    graph = fan()
    truth = profile_of(graph, 880.0, row_us=83.0)
    ran = Machine(Controller(graph, Settings(1000.0), truth), truth, rows_per_s=1000.0).run(10)
    assert not any(plan.sheds for plan in ran.plans), "20 ms are left for 83 ms of work: 75 % would go for 6 %"


def test_trust_9_rows_that_outgrow_the_machine_are_shed_whatever_is_fixed() -> None:
    """Without shedding every batch would be twice the one before, for ever."""
    graph = fan()
    truth = profile_of(graph, 2200.0, row_us=2000.0)
    ran = Machine(Controller(graph, Settings(1000.0), truth), truth, rows_per_s=1000.0).run(25)
    assert max(ran.took_ms[-10:]) < 2.5 * 2200.0
    assert min(plan.delivered["o0"] for plan in ran.plans[-10:]) > 0.2, "as much as there is fixed work, not a trickle"
    assert ran.controller.infeasible is not None


def test_trust_9_a_plan_must_take_away_half_of_the_excess() -> None:
    """Reading is not saved by drops: of an excess of 1.2 s they could take 0.3 s, of one of 0.5 s all that matters."""
    graph = fan(1)
    dear = replace(profile_of(graph, 100.0, row_us=30.0), read_us={"trips": 170.0})
    ran = Machine(Controller(graph, Settings(1000.0), dear), dear, rows_per_s=10_000.0)
    plan = ran.controller.decide({"trips": 10_000}, 1000.0)
    assert not plan.sheds
    assert ran.controller.infeasible is not None
    helpful = replace(profile_of(graph, 100.0, row_us=100.0), read_us={"trips": 90.0})
    controller = Controller(graph, Settings(1000.0), helpful)
    plan = controller.decide({"trips": 10_000}, 1000.0)
    assert plan.sheds, "0.9 of 1.1 s"
    assert controller.infeasible is not None


def test_trust_9_last_steps_that_cost_more_than_they_bring_are_eased_back() -> None:
    """Half of the rows go for a tenth of the utility, the other half for nine tenths: of an excess that drops cannot
    take away, they take what is cheap to lose."""
    net = jt.Network("bent")
    qos = jt.QoS([(100, 1.0), (50, 0.9), (0, 0.0)])
    net.source("trips", "x int").where("x > 0", name="w0").output("o0", qos=qos)
    dear = Profile({"w0": 60.0}, {}, fixed_ms=100.0, read_us={"trips": 100.0})
    controller = Controller(net.graph, Settings(1000.0), dear)
    plan = controller.decide({"trips": 10_000}, 1000.0)  # 0.8 s above the budget, of which 0.6 can be saved
    assert controller.infeasible is not None
    assert 0.3 < plan.delivered["o0"] < 0.6


def test_trust_9_a_backlog_whose_reading_alone_is_too_much_does_not_grow_for_ever() -> None:
    """Six tenths of a row's cost is reading: of a backlog drops save less than half of the excess. But 1.2 s of rows
    come every second: unshed, each batch would be a fifth larger than the one before."""
    graph = fan(1)
    truth = replace(profile_of(graph, 50.0, row_us=48.0), read_us={"trips": 72.0})
    ran = Machine(Controller(graph, Settings(1000.0), truth), truth, rows_per_s=10_000.0)
    ran.now_ms = 8000.0  # eight seconds have come before the first batch
    ran.run(30)
    assert max(ran.took_ms[-5:]) < 1000.0
    assert min(plan.delivered["o0"] for plan in ran.plans[-5:]) > 0.15


def test_trust_9_noise_does_not_make_the_loop_shed_what_fits() -> None:
    """Costs whose fixed part was guessed too high, a machine whose times vary by a quarter: 9 % of the rows fit. The
    loop used to keep 2 to 3 % for good, because coefficients that were cut off at 0 made others rise for ever."""
    graph = fan(3)
    truth = replace(profile_of(graph, 100.0, row_us=60.0), read_us={"trips": 5.0}, drop_us=0.02)
    for seed in (1, 2):
        noise = random.Random(seed)
        start = replace(times(truth, 1.5), fixed_ms=800.0)
        ran = Machine(Controller(graph, Settings(1000.0), start, guessed=True, clock=lambda: 0.0), truth, 73_846.0)
        ran.slowness = lambda noise=noise: noise.lognormvariate(0, 0.25)  # type: ignore[misc]
        ran.run(120)
        kept = [sum(plan.delivered.values()) / 3 for plan in ran.plans[20:]]
        assert 0.07 < sum(kept) / len(kept) < 0.12


# --- costs that nobody should believe yet ---------------------------------------------------------------------------


def times(profile: Profile, factor: float) -> Profile:
    """A profile measured on a machine that is so many times slower than it will be."""
    return replace(
        profile,
        fixed_ms=factor * profile.fixed_ms,
        read_us={name: factor * cost for name, cost in profile.read_us.items()},
        cost_us={name: factor * cost for name, cost in profile.cost_us.items()},
    )


TRUTH = Profile({"w0": 50.0}, {}, fixed_ms=200.0, read_us={"trips": 2.0})


@pytest.mark.parametrize("factor", [3.0, 10.0, 100.0])
def test_trust_9_rows_are_safe_from_costs_that_were_measured_on_a_cold_machine(factor: float) -> None:
    graph = fan(1)
    controller = Controller(graph, Settings(1000.0), times(TRUTH, factor), guessed=True)
    ran = Machine(controller, TRUTH, rows_per_s=10_000.0).run(20)  # 0.72 s of 0.9
    assert not any(plan.sheds for plan in ran.plans)
    assert controller.believed
    assert controller.infeasible is None


def test_trust_9_reading_alone_that_was_measured_too_high_is_corrected() -> None:
    """The `read_us` of 1,417 us that was seen."""
    graph = fan(1)
    cold = replace(TRUTH, read_us={"trips": 1417.0})
    controller = Controller(graph, Settings(1000.0), cold, guessed=True)
    assert controller.read_share({"trips": 10_000}, frozenset({"trips"})) == 1.0
    assert not controller.overloaded({"trips": 10_000})
    ran = Machine(controller, TRUTH, rows_per_s=10_000.0).run(20)
    assert not any(plan.sheds for plan in ran.plans)
    assert controller.costs.predict_ms({"trips": 10_000}, {}) == pytest.approx(720.0, rel=0.1)


@pytest.mark.parametrize("factor", [0.6, 1.0, 1.8, 30.0])
def test_trust_9_a_real_overload_is_answered_by_the_third_batch_after_calibration(factor: float) -> None:
    graph = fan(1)
    controller = Controller(graph, Settings(1000.0), times(TRUTH, factor), guessed=True)
    ran = Machine(controller, TRUTH, rows_per_s=40_000.0).run(12)  # 2.3 s a batch at first
    assert not ran.plans[0].sheds, "the rows of the first batch are safe"
    assert all(plan.sheds for plan in ran.plans[3:])
    assert ran.took_ms[1] < 3 * ran.took_ms[0], "costs that one batch has confirmed hold back the worst"
    assert ran.took_ms[-1] < 1000.0


def test_trust_9_given_costs_are_believed_at_once() -> None:
    ran = Machine(Controller(fan(1), Settings(1000.0), TRUTH), TRUTH, rows_per_s=40_000.0).run(1)
    assert ran.plans[0].sheds


# --- floors in the loop ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shedder", [name for name in SHEDDERS if name not in ("qod", "auto")]
)  # these pause, and say so
def test_trust_9_the_loop_holds_floors_over_the_budget_and_says_so(shedder: str) -> None:
    graph = fan(3, min_accuracy=0.4)
    truth = profile_of(graph, 100.0, row_us=300.0)
    controller = Controller(graph, Settings(1000.0, shedder=shedder), truth)
    ran = Machine(controller, truth, rows_per_s=10_000.0)  # 3.1 s; 0.4 of the rows take 1.3 s
    for batch in range(4):
        plan = controller.decide({"trips": 10_000}, 1000.0 * batch)
        assert all(0.4 - 1e-6 <= share <= 0.45 for share in plan.delivered.values())
        assert controller.infeasible is not None
        assert "min_accuracy" in controller.infeasible
    assert ran.controller.plan.sheds


def test_trust_9_unread_and_stale_rows_count_against_a_floor() -> None:
    graph = fan(1, min_accuracy=0.4)
    truth = replace(profile_of(graph, 100.0, row_us=100.0), read_us={"trips": 100.0})
    controller = Controller(graph, Settings(1000.0), truth)
    names = frozenset({"trips"})
    assert controller.read_share({"trips": 50_000}, names) == pytest.approx(0.4)
    assert controller.read_share({"trips": 50_000}, names, {"trips": 25_000}) == pytest.approx(0.6)
    assert controller.may_skip({"trips": 40}, {"trips": 60})
    assert not controller.may_skip({"trips": 30}, {"trips": 70})
    controller = Controller(graph, Settings(1000.0), profile_of(graph, 100.0, row_us=200.0))
    plan = controller.decide({"trips": 20_000}, 0.0, unread=Unread({"trips": 20_000}))
    assert plan.keep("trips") == pytest.approx(0.8, abs=1e-6), "0.4 of all that came"
    old = Fresh({"trips": 100.0}, {"trips": 0.3})
    plan = controller.decide({"trips": 20_000}, 1000.0, fresh=old)
    assert not plan.stale, "all that is fresh is less than the floor"
    assert plan.keep("trips") == pytest.approx(0.4, abs=1e-6)
    half = Fresh({"trips": 100.0}, {"trips": 0.5})
    plan = controller.decide({"trips": 20_000}, 2000.0, fresh=half)
    assert plan.stale
    assert plan.keep("trips") == pytest.approx(0.8, abs=1e-6)
