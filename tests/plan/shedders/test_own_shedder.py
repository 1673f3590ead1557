"""A shedder of the user's own: an object with `plan`. What it answers is checked, completed, certified."""

from __future__ import annotations

import importlib.util
import logging
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.conftest import ROOT

from jettison.control.loop import Controller, Settings
from jettison.errors import StartError
from jettison.network import Graph, Network, QoS, Value
from jettison.plan.drops.by_key import ByKey
from jettison.plan.drops.kind import Drop
from jettison.plan.drops.random import Random
from jettison.plan.drops.semantic import Semantic
from jettison.plan.drops.stratified import Stratified
from jettison.plan.plan import Infeasible, Plan
from jettison.plan.problem import Problem
from jettison.plan.safe import ScaledPlan
from jettison.plan.shedders.registry import check_shedder, shedder_named
from jettison.sim.engine import simulate
from jettison.statistics.profile import Profile
from jettison.statistics.samples import BatchSample

pytestmark = pytest.mark.core

COSTS = Profile({"trips": 2.0, "paid": 3.0, "dear": 1.0}, {"dear": 0.01}, fixed_ms=100.0)
ROWS = {"trips": 400_000}


def taxi() -> Graph:
    net = Network("taxi")
    paid = net.source("trips", "trip long, fare double").where("fare > 0", name="paid")
    paid.output("fares")
    paid.where("fare > 200", name="dear").output("alerts", qos=QoS(priority=5))
    return net.graph


def example() -> Any:
    spec = importlib.util.spec_from_file_location("my_shedder", ROOT / "examples" / "my_shedder.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass
class Answers:
    """A shedder that says what it is told to say, and remembers what it heard."""

    answer: Callable[[Problem], Any]
    samples: list[BatchSample] = field(default_factory=list)
    prepared: list[Problem] = field(default_factory=list)

    def plan(self, problem: Problem) -> Any:
        return self.answer(problem)

    def observe(self, sample: BatchSample) -> None:
        self.samples.append(sample)

    def prepare(self, problem: Problem) -> None:
        self.prepared.append(problem)


def test_the_example_runs_and_holds_the_budget(capsys: pytest.CaptureFixture[str]) -> None:
    module = example()
    module.main()
    own, by_value = capsys.readouterr().out.splitlines()
    assert own.startswith("SameShare: delivered {'fares': '3")
    assert own.endswith("0 plans not certified")
    assert by_value.startswith("semantic")


def test_its_plan_is_obeyed_with_what_it_delivers_and_saves_filled_in() -> None:
    loop = Controller(taxi(), Settings(1000.0, shedder=example().SameShare()), COSTS)
    plan = loop.decide(ROWS, 0.0)
    keep = (900_000 - 100_000) / (400_000 * 6)
    assert list(plan.drops) == ["trips"]
    assert plan.keep("trips") == pytest.approx(keep)
    assert plan.delivered == pytest.approx({"fares": keep, "alerts": keep})
    assert plan.saves_us == pytest.approx(400_000 * 6 * (1 - keep))
    assert loop.uncertified == 0


def test_it_stays_in_force_while_it_wastes_little_and_gives_back_gradually_like_any_other() -> None:
    loop = Controller(taxi(), Settings(1000.0, shedder=example().SameShare()), COSTS)
    keeps = [loop.decide({"trips": rows}, 1000.0 * at).keep("trips") for at, rows in enumerate([400_000, 401_000])]
    assert keeps[1] <= keeps[0]
    calmer = [loop.decide({"trips": 250_000}, 1000.0 * at).keep("trips") for at in range(2, 6)]
    assert keeps[1] < calmer[0] < calmer[1] <= calmer[2] <= 800_000 / (250_000 * 6)


def test_it_hears_of_every_batch_and_of_what_is_to_come() -> None:
    shedder = Answers(lambda problem: Plan({"trips": Random(0.1)}))
    loop = Controller(taxi(), Settings(1000.0, shedder=shedder), COSTS)
    for batch in range(3):
        loop.decide(ROWS, 1000.0 * batch)
        loop.record(BatchSample(batch, 1000.0 * batch, 1000.0, 900.0, ROWS))
    assert [sample.batch for sample in shedder.samples] == [0, 1, 2]
    assert len(shedder.prepared) == 4
    assert shedder.prepared[-1].rows == {"trips": pytest.approx(400_000)}


def test_without_shedding_it_is_left_alone() -> None:
    shedder = Answers(lambda problem: 1 / 0)
    loop = Controller(taxi(), Settings(1000.0, shedding=False, shedder=shedder), COSTS)
    assert not loop.decide(ROWS, 0.0).sheds
    loop.record(BatchSample(0, 0.0, 1000.0, 2500.0, ROWS))
    assert (shedder.samples, shedder.prepared, loop.uncertified) == ([], [], 0)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("semantik", "did you mean 'semantic'"),
        (3, r"shedder is 3: give a name .* or an object with a method plan\(problem\)"),
        (None, "shedder is None"),
        (object(), "an object with a method plan"),
        (Answers, r"the class Answers: give an object, such as Answers\(\)"),
    ],
)
def test_what_is_no_shedder_is_refused_at_the_start(given: Any, told: str) -> None:
    with pytest.raises(StartError, match=told):
        Settings(1000.0, shedder=given)
    with pytest.raises(StartError, match=told):
        check_shedder(given)


NONSENSE: dict[str, tuple[Callable[[Problem], Any], str]] = {
    "raises": (lambda problem: 1 / 0, "shedder Answers failed: ZeroDivisionError"),
    "a share of 1.5": (lambda problem: Plan({"trips": Random(1.5)}), "random drop keeps 1.5"),
    "a share of NaN": (lambda problem: Plan({"trips": Random(math.nan)}), "random drop keeps nan"),
    "no plan": (lambda problem: {"trips": 0.5}, r"answered with {'trips': 0.5}: return a Plan or Infeasible"),
    "nothing": (lambda problem: None, "answered with None"),
    "no drop": (lambda problem: Plan({"trips": 0.5}), "the drop on arc 'trips' is 0.5"),  # type: ignore[dict-item]
    "no mapping": (lambda problem: Plan(["trips"]), "drops are .'trips'."),  # type: ignore[arg-type]
    "an unknown arc": (lambda problem: Plan({"rides": Random(0.5)}), "drops on arc 'rides', which is not there"),
    "an arc where no drop may be": (
        lambda problem: Plan({"dear>alerts": Random(0.1)}),
        "allowed are inputs and splits",
    ),
    "too little": (lambda problem: Plan({"trips": Random(0.9)}), "leaves .* us of work, the budget is"),
    "false claims": (
        lambda problem: Plan(
            {"trips": Random(0.3)}, delivered={"fares": 0.9, "alerts": 0.9}, utility=5.4, saves_us=1e6
        ),
        "claims to deliver 0.9",
    ),
    "infeasible with nonsense": (lambda problem: Infeasible("no", None), "answered with None"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("case", NONSENSE)
def test_nonsense_falls_to_a_safe_plan_that_holds_the_budget_and_is_counted(
    case: str, caplog: pytest.LogCaptureFixture
) -> None:
    answer, told = NONSENSE[case]
    loop = Controller(taxi(), Settings(1000.0, shedder=Answers(answer)), COSTS)
    with caplog.at_level(logging.WARNING, "jettison"):
        plan = loop.decide(ROWS, 0.0)
    assert loop.uncertified == 1
    (warning,) = [each.getMessage() for each in caplog.records]

    assert warning.startswith("network taxi: a plan is not certified: ")
    assert re.search(told, warning), warning
    # a random drop at the inputs that leaves what the budget allows
    assert list(plan.drops) == ["trips"]
    assert plan.keep("trips") == pytest.approx((900_000 - 100_000) / (400_000 * 6))
    loop.record(BatchSample(0, 0.0, 1000.0, 900.0, ROWS))
    loop.decide({"trips": 50_000}, 1000.0)  # within the budget nobody is asked
    assert loop.uncertified == 1


def test_one_who_fails_later_falls_to_his_last_plan_scaled_to_the_batch() -> None:
    """The plan before closed one branch: so does the safe one, and as much more goes as the batch needs."""
    answers = iter([Plan({"paid>dear": Random(0.0), "trips": Random(0.35)})])
    loop = Controller(taxi(), Settings(1000.0, shedder=Answers(lambda problem: next(answers)), learn=False), COSTS)
    first = loop.decide(ROWS, 0.0)
    assert loop.uncertified == 0
    loop.record(BatchSample(0, 0.0, 1000.0, 900.0, ROWS))
    second = loop.decide({"trips": 800_000}, 1000.0)
    assert loop.uncertified == 1
    assert second.keep("paid>dear") == first.keep("paid>dear") == 0.0
    assert second.keep("trips") == pytest.approx(800_000 / (800_000 * 5), rel=0.01)


def test_a_shedder_whose_observe_fails_still_plans(caplog: pytest.LogCaptureFixture) -> None:
    class Deaf:
        def plan(self, problem: Problem) -> Plan:
            return Plan({"trips": Random(0.1)})

        def observe(self, sample: BatchSample) -> None:
            raise ValueError("what?")

    loop = Controller(taxi(), Settings(1000.0, shedder=Deaf()), COSTS)
    with caplog.at_level(logging.WARNING, "jettison"):
        for batch in range(3):
            assert loop.decide(ROWS, 1000.0 * batch).drops
            loop.record(BatchSample(batch, 1000.0 * batch, 1000.0, 900.0, ROWS))
    assert [each.getMessage() for each in caplog.records] == ["shedder Deaf failed in observe: ValueError: what?"]


def test_it_runs_in_the_simulator() -> None:
    result = simulate(taxi(), COSTS, ROWS, trigger_ms=1000, seconds=10, shedder=example().SameShare())
    assert result.uncertified == 0
    assert all(batch.duration_ms <= 950 for batch in result.batches)
    assert result.outputs["fares"].delivered_share == pytest.approx(0.33, abs=0.03)


def valued() -> Graph:
    net = Network("valued")
    value = Value("fare", [(0, 10, 0.1), (10, 50, 1.0)])
    net.source("trips", "trip long, fare double").where("fare > 0", name="paid").output("fares", qos=QoS(value=value))
    return net.graph


def test_drops_that_do_not_do_what_they_say_are_refused() -> None:
    """Cells that are not those of the network ended the run; a drop of everything passed as one of nothing."""
    graph = valued()
    bounds = graph.tracks.all[0].bounds
    wrong = {
        r"has 2 shares for \d+ cells": Semantic("fare", (0.0, 5.0), (0.5, 0.5), keep=0.5),
        "says that 1.00 pass, it is 0.00": Semantic("fare", bounds, (0.0,) * len(bounds), keep=1.0),
        "reads column 'nope', which is not there": Stratified(("nope",), 0.2),
    }
    for text, drop in wrong.items():
        given = Answers(lambda problem, drop=drop: Plan({"trips": drop}, "overload"))
        loop = Controller(graph, Settings(1000.0, shedder=given), Profile({"paid": 10.0}, {}, fixed_ms=100.0))
        plan = loop.decide(ROWS, 0.0)
        assert re.search(text, loop.refused or "")
        assert [type(each) for each in plan.drops.values()] == [Random], "a safe plan"


def test_drops_above_estimates_are_those_that_keep_results_right() -> None:
    """Rows that a drop by key left had no weight: counts were a quarter of the truth, and said to be exact."""
    net = Network("estimated")
    schema = "id long, at timestamp, x double"
    rows = net.source("rows", schema, event_time="at", id=["id"])
    rows.window("1 minute").agg(n="count(*)", name="busy").output("n", qos=QoS(on_loss="estimate"))
    wrong: dict[str, tuple[str, Drop]] = {
        "stands above estimates": ("rows", ByKey(("id",), 0.25, "x")),
        "keep 9.53674e-07 or more": ("rows", Random(1e-9)),
    }
    costs = Profile(dict.fromkeys(net.graph.by_name, 5.0), {}, fixed_ms=100.0)
    for text, (arc, drop) in wrong.items():
        given = Answers(lambda problem, arc=arc, drop=drop: Plan({arc: drop}, "overload"))
        loop = Controller(net.graph, Settings(1000.0, shedder=given), costs)
        loop.decide({"rows": 400_000}, 0.0)
        assert text in (loop.refused or "")


def test_a_shedder_that_failed_once_is_asked_again() -> None:
    """The safe plan stayed in force for ever, as it fitted."""
    calls = 0

    def once(problem: Problem) -> Plan | Infeasible:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise RuntimeError("once")
        return shedder_named("semantic").plan(problem)

    loop = Controller(taxi(), Settings(1000.0, shedder=Answers(once)), COSTS)
    plans = [loop.decide(ROWS, 1000.0 * batch) for batch in range(5)]
    assert loop.uncertified == 1
    assert calls == 2, "and its plan stays, as it fits"
    assert [plan.row > 0 for plan in plans] == [False, True, True, True, True], "a row of the road map"


def test_a_scaled_plan_of_drops_by_value_holds_floors() -> None:
    """Cells were scaled and the share was not: with a floor of one half a tenth came, and was certified."""
    net = Network("floor")
    value = Value("fare", [(0, 10, 0.1), (10, 50, 1.0)])
    net.source("s", "fare double").output("o", qos=QoS(value=value, min_accuracy=0.5))
    bounds = net.graph.tracks.all[0].bounds
    cells = tuple(1.0 if edge >= 20 else 0.0 for edge in bounds)
    problem = Problem(net.graph, Profile({"o": 10.0}, {}), {"s": 100_000.0}, 100_000.0)
    answer = ScaledPlan(Plan({"s": Semantic("fare", bounds, cells, keep=0.6)}, "overload")).plan(problem)
    assert isinstance(answer, Infeasible)
    assert answer.best.delivered["o"] >= 0.5 - 1e-6
