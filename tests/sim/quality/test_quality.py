"""Machines under the controller: what is shed, what moves, and what happens when a machine or room is missing."""

from __future__ import annotations

import numpy as np
import pytest

from jettison.errors import NetworkError
from jettison.plan.quality import Task
from jettison.sim.quality import (
    Application,
    Cost,
    Curve,
    Host,
    QualityResult,
    Scenario,
    nearest_neighbours,
    simulate_quality,
    taxi_drives,
)

pytestmark = pytest.mark.core

STEADY = Curve([(0, 2500)])
PAST_MINIMA = Curve([(0, 2500), (30, 2500), (60, 7700)])


def run(rate: Curve, *machines: Host, duration_s: float = 90.0, **options: object) -> QualityResult:
    return simulate_quality(Scenario([taxi_drives(rate)], machines, duration_s, **options))  # type: ignore[arg-type]


def test_below_capacity_nothing_is_shed_and_nothing_waits() -> None:
    found = run(STEADY, Host("TM1"))
    assert set(found.cycles[-1].accuracy.values()) == {1.0}
    assert found.cycles[-1].lag_s < 0.5
    assert found.cycles[-1].machine_cpu["TM1"] == pytest.approx(2500 * 240e-6, rel=0.01)
    assert found.moves == ()


def test_what_is_planned_is_processed_while_machines_are_full() -> None:
    found = run(Curve([(0, 6000)]), Host("TM1"), duration_s=300)  # what waited at the start is worked off by then
    last = found.cycles[-1]
    assert last.processed == pytest.approx(dict(last.accuracy), rel=0.01)
    assert last.machine_cpu["TM1"] == pytest.approx(0.95, rel=0.01)
    # an equal share of cores beyond the minimum for the dearest instance of each: 6000 x 70 us / 2 and 6000 x 120 us
    beyond = {"TDSnk1": (last.accuracy["TDSnk1"] - 0.4) * 0.21, "TDSnk2": (last.accuracy["TDSnk2"] - 0.6) * 0.72}
    assert beyond["TDSnk1"] == pytest.approx(beyond["TDSnk2"], rel=0.02)


def test_the_same_scenario_gives_the_same_cycles() -> None:
    one, two = (run(PAST_MINIMA, Host("TM1"), Host("TM2")) for _ in range(2))
    assert one == two


def test_without_another_machine_minima_are_lowered_alike_and_said() -> None:
    last = run(PAST_MINIMA, Host("TM1"), duration_s=120).cycles[-1]
    assert last.below_minimum == ("TDSnk1", "TDSnk2")
    assert last.stuck
    assert last.accuracy["TDSnk1"] / 0.4 == pytest.approx(last.accuracy["TDSnk2"] / 0.6, rel=1e-3)
    assert last.accuracy["TDSnk1"] < 0.4


def test_a_machine_that_comes_takes_what_had_no_room() -> None:
    found = run(PAST_MINIMA, Host("TM1"), Host("TM2", from_s=100), duration_s=150)
    assert [(second, move.instance) for second, move in found.moves] == [(100.0, "TDSnk1.1")]
    assert found.cycles[-1].below_minimum == ()


def test_a_machine_that_vanishes_in_mid_cycle_loses_its_instances_to_the_others() -> None:
    found = run(STEADY, Host("TM1"), Host("TM2", until_s=62.3), duration_s=120)
    there = {name for name, where in found.cycles[11].where.items() if where == "TM2"}
    assert there
    gone = [move for second, move in found.moves if second == 65.0]
    assert {move.instance for move in gone} == there
    assert {(move.origin, move.target, move.reason) for move in gone} == {("TM2", "TM1", "TM2 is gone")}
    assert found.cycles[12].machine_cpu["TM2"] < found.cycles[11].machine_cpu["TM2"]
    assert set(found.cycles[-1].accuracy.values()) == {1.0}
    assert found.cycles[-1].processed == pytest.approx({"TDSnk1": 1.0, "TDSnk2": 1.0}, rel=0.02)


def test_when_the_only_machine_vanishes_nothing_runs_until_one_is_there_again() -> None:
    found = run(STEADY, Host("TM1", until_s=40), Host("TM2", from_s=60), duration_s=120)
    between = [cycle for cycle in found.cycles if 40 <= cycle.second < 60]
    assert all(set(cycle.where.values()) == {None} for cycle in between)
    assert all(sum(cycle.throughput.values()) == 0 for cycle in between)
    assert set(found.cycles[-1].where.values()) == {"TM2"}
    assert set(found.cycles[-1].accuracy.values()) == {1.0}


def test_what_others_do_on_a_machine_is_shed_for() -> None:
    found = run(STEADY, Host("TM1", others=Curve([(0, 0), (40, 0), (41, 0.5)])), duration_s=100)
    last = found.cycles[-1]
    assert last.others_cpu["TM1"] == 0.5
    assert last.machine_cpu["TM1"] == pytest.approx(0.95, rel=0.01)
    assert max(last.accuracy.values()) < 1
    assert last.below_minimum == ()


def test_a_warm_up_holds_its_machine_at_minima_and_ends_in_time() -> None:
    found = run(PAST_MINIMA, Host("TM1"), Host("TM2", from_s=20), duration_s=120)
    ((second, move),) = found.moves
    during = [cycle for cycle in found.cycles if cycle.second >= second and cycle.warming]
    assert during
    assert all(cycle.accuracy["TDSnk1"] == pytest.approx(0.4) for cycle in during)
    slow = run(PAST_MINIMA, Host("TM1"), Host("TM2", from_s=20), restart_s=1000.0, warm_up_timeout_s=20.0)
    assert any(cycle.warming for cycle in slow.cycles)
    assert not any(cycle.warming for cycle in slow.cycles if cycle.second >= 20 and not cycle.moves)
    assert move.instance == "TDSnk1.1"


def test_a_minimum_that_no_machine_can_hold_is_named_while_the_rest_goes_on() -> None:
    rate = Curve([(0, 8000)])
    app = nearest_neighbours(rate, min_accuracy=0.8)
    found = simulate_quality(Scenario([app], [Host("TM1"), Host("TM2")], 120))
    (said,) = found.cycles[-1].unmeetable
    assert (said.task, said.instances) == ("KNNSrc1", 4)
    assert found.cycles[-1].below_minimum == ("KNNSrc1",)
    assert found.cycles[-1].accuracy["KNNSrc1"] == pytest.approx(0.25 * 0.95, rel=0.02)
    enough = nearest_neighbours(rate, min_accuracy=0.8, instances=4)
    found = simulate_quality(Scenario([enough], [Host("TM1", cores=2), Host("TM2", cores=2)], 120))
    assert found.cycles[-1].unmeetable == ()
    assert found.cycles[-1].accuracy["KNNSrc1"] >= 0.8


def test_new_applications_go_where_most_is_left() -> None:
    scenario = Scenario(
        [taxi_drives(STEADY), nearest_neighbours(Curve([(0, 500)]), start_s=60)], [Host("TM1"), Host("TM2")], 100
    )
    found = simulate_quality(scenario)
    before, after = found.cycles[11], found.cycles[-1]
    assert before.where["KNNSrc1.1"] is None
    assert after.where["KNNSrc1.1"] == min(before.machine_cpu, key=lambda name: before.machine_cpu[name])


@pytest.mark.parametrize(("noise", "most"), [(0.05, 2), (0.3, 3)])
def test_rates_that_flicker_move_nothing_to_and_fro(noise: float, most: int) -> None:
    chance, base = np.random.default_rng(1), Curve([(0, 2500), (30, 2500), (90, 7700), (200, 7700)])
    flickering = Curve([(second, base.at(second) * (1 + noise * chance.uniform(-1, 1))) for second in range(240)])
    found = run(flickering, Host("TM1"), Host("TM2"), duration_s=240, restart_s=4.0)
    moved = [move.instance for _, move in found.moves]
    assert len(moved) == len(set(moved)) <= most
    assert found.minima_held() == 1.0
    assert found.processed_held(tolerance=2 * noise) == 1.0


def test_scenarios_that_cannot_be() -> None:
    with pytest.raises(NetworkError, match="no machine is there at 0 s"):
        run(STEADY, Host("TM1", from_s=5))
    with pytest.raises(NetworkError, match="at least one application and one machine"):
        run(STEADY)
    with pytest.raises(NetworkError, match="machine 'TM1': cores is 0"):
        Host("TM1", cores=0)
    with pytest.raises(NetworkError, match="is there from 9 s until 5 s: let it end later"):
        Host("TM1", from_s=9, until_s=5)
    with pytest.raises(NetworkError, match="task 'a' has no cost: give Cost"):
        Application("x", [Task("a")], {}, {"a": STEADY})
    with pytest.raises(NetworkError, match="source task 'a' has no rate: give a Curve"):
        Application("x", [Task("a")], {"a": Cost(1.0)}, {})
    with pytest.raises(NetworkError, match="cost: us is -1"):
        Cost(-1)
    with pytest.raises(NetworkError, match="in order of time, values from 0 on"):
        Curve([(5, 1), (0, 1)])
    with pytest.raises(NetworkError, match=r"duration_s is nan"):
        run(STEADY, Host("TM1"), duration_s=np.nan)
