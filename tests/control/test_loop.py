"""The control loop and the detector: a few samples in, exact decisions out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jettison.control.loop import Controller, Settings
from jettison.detect import Detector
from jettison.errors import StartError
from jettison.network import Graph, Network, QoS
from jettison.plan.certify import certify, planned_load_us
from jettison.plan.problem import Problem
from jettison.plan.refine.unread import Unread
from jettison.plan.shedders.renewed_road_map import RenewedRoadMap
from jettison.plan.shedders.rest import Rest
from jettison.statistics.profile import Profile
from jettison.statistics.samples import BatchSample, GroupSample

pytestmark = pytest.mark.core


def taxi() -> Graph:
    net = Network("taxi")
    paid = net.source("trips", "trip long, zone int, fare double", id=["trip"]).where("fare > 0", name="paid")
    paid.select("zone", "fare", name="columns").output("fares", qos=QoS(((100, 1.0), (50, 0.8), (0, 0.0))))
    paid.where("fare > 200", name="dear").output("alerts", qos=QoS(priority=5))
    return net.graph


# per trip: 1 read + 1 trips + 1 paid + 1 columns + 2 fares + 1 dear = 7 us; 100 ms fixed; the budget is 900 ms
PROFILE = Profile(
    {"trips": 1.0, "paid": 1.0, "columns": 1.0, "fares": 2.0, "dear": 1.0, "alerts": 0.0},
    {"dear": 0.01},
    fixed_ms=100.0,
    read_us={"trips": 1.0},
)


def controller(**settings: float) -> Controller:
    return Controller(taxi(), Settings(trigger_ms=1000.0, **settings), PROFILE)  # type: ignore[arg-type]


def run_batch(loop: Controller, batch: int, rows: int, slower: float = 1.0) -> BatchSample:
    """One tick against a machine that is `slower` than the profile says."""
    counts = {"trips": rows}
    plan = loop.decide(counts, now_ms=1000.0 * batch)
    taken = slower * planned_load_us(Problem(loop.graph, PROFILE, counts, 0.0), plan) / 1000
    sample = BatchSample(batch, 1000.0 * batch, 1000.0, taken, counts)
    loop.record(sample)
    return sample


def test_nothing_is_shed_while_batches_fit() -> None:
    loop = controller()
    for batch in range(10):
        run_batch(loop, batch, 100_000)  # 800 ms of 900
        assert not loop.plan.drops
        assert loop.plan.reason == "predicted within budget"


def test_overload_is_answered_in_the_first_batch_and_within_budget() -> None:
    loop = controller()
    for batch in range(5):
        run_batch(loop, batch, 50_000)
    sample = run_batch(loop, 5, 500_000)
    assert loop.plan.reason == "overload"
    assert sample.duration_ms <= 900.0
    certify(Problem(loop.graph, loop.profile, {"trips": 500_000}, loop.settings.budget_us), loop.plan)


def test_alerts_are_kept_longest() -> None:
    loop = controller()
    for batch in range(8):
        run_batch(loop, batch, 200_000)
    assert loop.plan.delivered["alerts"] > loop.plan.delivered["fares"]


def test_load_is_given_back_gradually_and_wholly() -> None:
    loop = controller()
    for batch in range(5):
        run_batch(loop, batch, 400_000)
    rows = [loop.plan.row]
    for batch in range(5, 9):
        run_batch(loop, batch, 180_000)
        rows.append(loop.plan.row)
    assert rows[0] > rows[1] > rows[2], "two steps down, not one"
    for batch in range(9, 12):
        run_batch(loop, batch, 100_000)
    assert not loop.plan.drops


def test_a_plan_that_wastes_little_stays() -> None:
    loop = controller()
    run_batch(loop, 0, 300_000)
    run_batch(loop, 1, 300_000)
    row = loop.plan.row
    run_batch(loop, 2, 299_000)
    assert loop.plan.row == row


def test_a_single_large_batch_is_not_an_overload() -> None:
    loop = controller()
    for batch in range(8):
        run_batch(loop, batch, 50_000)
    assert not loop.overloaded({"trips": 125_000})
    assert loop.overloaded({"trips": 250_000})
    run_batch(loop, 8, 125_000)  # 975 ms, while the rate is far below
    assert not loop.plan.drops
    assert loop.plan.reason == "a single large batch"


def test_a_batch_that_hung_says_nothing_of_costs() -> None:
    loop = controller()
    for batch in range(8):
        run_batch(loop, batch, 200_000)
    before, row = loop.costs.predict_ms({"trips": 200_000}, {}), loop.plan.row
    run_batch(loop, 8, 200_000, 60.0)
    assert loop.costs.predict_ms({"trips": 200_000}, {}) == before
    run_batch(loop, 9, 200_000)
    assert loop.plan.row == pytest.approx(row, rel=0.05)


def test_batches_that_go_on_taking_long_do() -> None:
    loop = controller()
    samples = [run_batch(loop, batch, 100_000, 8.0) for batch in range(12)]
    assert samples[-1].duration_ms < 0.7 * samples[0].duration_ms


@pytest.mark.parametrize("slower", [1.5, 2.5])
def test_costs_that_were_too_low_are_corrected(slower: float) -> None:
    loop = controller()
    for batch in range(25):
        sample = run_batch(loop, batch, 200_000, slower)
    assert sample.duration_ms <= 1.1 * 900.0


def test_costs_that_were_too_high_are_corrected() -> None:
    loop = controller()
    run_batch(loop, 0, 200_000)
    kept_at_first = run_batch(loop, 1, 200_000, slower=0.4)
    for batch in range(2, 30):
        sample = run_batch(loop, batch, 200_000, slower=0.4)
    assert kept_at_first is not None
    assert not loop.plan.drops
    assert sample.duration_ms < 900.0


def test_shedding_off_drops_nothing() -> None:
    loop = Controller(taxi(), Settings(trigger_ms=1000.0, shedding=False), PROFILE)
    run_batch(loop, 0, 10**7)
    run_batch(loop, 1, 10**7)
    assert not loop.plan.drops


def test_infeasible_leaves_a_trickle_and_says_why() -> None:
    loop = controller()
    for batch in range(3):
        loop.decide({"trips": 2_000_000}, now_ms=1000.0 * batch)  # reading alone takes 2 s
    assert loop.infeasible is not None
    assert "reading" in loop.infeasible
    assert 0 < loop.plan.keep("trips") <= 0.03


def test_shedding_that_cannot_help_is_not_done() -> None:
    slow = Profile(PROFILE.cost_us, PROFILE.selectivity, fixed_ms=2000.0, read_us=PROFILE.read_us)
    loop = Controller(taxi(), Settings(trigger_ms=1000.0), slow)
    for batch, rows in enumerate((0, 10, 1000)):
        loop.decide({"trips": rows}, now_ms=1000.0 * batch)
        assert not loop.plan.drops
    assert loop.plan.reason == "shedding cannot help"


def test_queues_add_to_the_load() -> None:
    loop = controller()
    for batch in range(4):
        run_batch(loop, batch, 104_000)
    assert not loop.decide({"trips": 115_000}, now_ms=4000.0).drops
    assert loop.decide({"trips": 115_000}, now_ms=5000.0, queues={"trips": 300_000}).drops


@pytest.mark.parametrize(("tick_s", "slower", "renewed"), [(0.001, 1.3, True), (10.0, 1.3, False)])
def test_the_road_map_is_renewed_when_costs_move_and_rests_in_between(
    tick_s: float, slower: float, renewed: bool
) -> None:
    """Building that took long is not repeated soon."""
    ticks = iter(range(1000))
    shedder = RenewedRoadMap(rest=Rest(6, 1000.0, lambda: tick_s * next(ticks)))
    loop = Controller(taxi(), Settings(trigger_ms=1000.0, shedder=shedder), PROFILE)
    first = shedder.road_map
    assert first is not None
    run_batch(loop, 0, 300_000, slower=slower)
    assert (shedder.road_map is not first) == renewed


def test_a_road_map_for_other_costs_altogether_does_not_rest() -> None:
    ticks = iter(range(1000))
    shedder = RenewedRoadMap(rest=Rest(6, 1000.0, lambda: 10.0 * next(ticks)))
    graph, maps = taxi(), []
    for slower in (1.0, 1.3, 3.0):
        costs = replace(PROFILE, cost_us={name: slower * each for name, each in PROFILE.cost_us.items()})
        shedder.prepare(Problem(graph, costs, {"trips": 1.0}, 900_000.0))
        maps.append(shedder.road_map)
    assert maps[0] is maps[1]
    assert maps[1] is not maps[2]


def test_without_shedding_no_road_map_is_built() -> None:
    shedder = RenewedRoadMap()
    loop = Controller(taxi(), Settings(trigger_ms=1000.0, shedding=False, shedder=shedder), PROFILE)
    run_batch(loop, 0, 300_000)
    assert shedder.road_map is None
    loop.calibrated(PROFILE, shedding=True)
    assert shedder.road_map is not None


@pytest.mark.parametrize(("trigger_ms", "headroom"), [(0.0, 0.9), (-1.0, 0.9), (1000.0, 0.0), (1000.0, 1.5)])
def test_settings_are_checked(trigger_ms: float, headroom: float) -> None:
    with pytest.raises(StartError, match=r"trigger|headroom"):
        Settings(trigger_ms, headroom)


def test_late_twice_in_a_row_is_an_overload_whatever_was_predicted() -> None:
    detector = Detector()
    near = {"batch_us": 0.89e6, "arriving_us": 0.89e6, "budget_us": 0.9e6}
    detector.confirm(measured_us=1.1e6, budget_us=0.9e6)
    assert not detector.judge(**near).overloaded
    detector.confirm(measured_us=1.1e6, budget_us=0.9e6)
    judged = detector.judge(**near)
    assert judged.overloaded
    assert judged.excess_us == pytest.approx(0.2e6)
    detector.confirm(measured_us=0.8e6, budget_us=0.9e6)
    assert not detector.judge(**near).overloaded


def test_reading_that_is_too_much_is_cut_to_its_share_of_the_budget() -> None:
    net = Network("n")
    net.source("dear", "a int").output("x")
    net.source("cheap", "a int").output("y")
    profile = Profile({}, {}, fixed_ms=100.0, read_us={"dear": 10.0, "cheap": 1.0})
    controller = Controller(net.graph, Settings(1000.0, headroom=0.9), profile)
    both, dear = frozenset({"dear", "cheap"}), frozenset({"dear"})
    assert controller.read_share({"dear": 30_000, "cheap": 10_000}, both) == 1.0, "310 ms of 320"
    assert controller.read_share({"dear": 60_000, "cheap": 40_000}, both) == pytest.approx(0.5)
    assert controller.read_share({"dear": 60_000, "cheap": 40_000}, dear) == pytest.approx((320 - 40) / 600)
    assert controller.read_share({"dear": 60_000, "cheap": 900_000}, dear) == 0.01, "never nothing"
    assert controller.read_share({"dear": 60_000, "cheap": 0}, frozenset()) == 1.0, "nothing can be passed over"
    calm = Controller(net.graph, Settings(1000.0, shedding=False), profile)
    assert calm.read_share({"dear": 10**9, "cheap": 0}, both) == 1.0


@pytest.mark.parametrize(
    "name", ["graph", "settings", "costs", "profile", "believed", "plan", "infeasible", "fates", "uncertified"]
)
def test_what_the_loop_knows_can_be_read_but_not_set(name: str) -> None:
    loop = controller()
    getattr(loop, name)
    with pytest.raises(AttributeError):
        setattr(loop, name, None)


def test_asking_changes_nothing() -> None:
    """The same plans come out, whether anybody asks between batches or not."""
    asked, left_alone = controller(), controller()
    for batch, count in enumerate([50_000, 400_000, 400_000, 300_000, 100_000]):
        rows = {"trips": count}
        for _ in range(3):
            asked.overloaded(rows), asked.can_look(rows), asked.may_skip(rows, {"trips": 10})
            asked.read_share(rows, frozenset(["trips"])), asked.groups_to_count(rows)
        for loop in (asked, left_alone):
            run_batch(loop, batch, count)
        assert asked.plan.to_json() == left_alone.plan.to_json()


def test_new_costs_do_not_take_away_what_is_known_of_arrivals_and_groups() -> None:
    loop = controller(shedding=False)
    for batch in range(3):
        run_batch(loop, batch, 300_000)
    loop.learn_groups({"busy": GroupSample(100.0, {1: 30.0})})
    rates = loop.rows_per_s
    loop.calibrated(replace(PROFILE, fixed_ms=50.0), shedding=True)
    assert loop.rows_per_s == rates == {"trips": pytest.approx(300_000)}
    assert loop.group_shares("busy") == {1: 0.3}
    assert loop.settings.shedding
    assert not loop.believed
    assert loop.profile.fixed_ms == 50.0
    for batch in range(3, 6):
        run_batch(loop, batch, 300_000)
    assert loop.believed
    assert loop.plan.reason == "overload"


def test_a_plan_is_finished_when_it_is_decided() -> None:
    """Records that are skipped count as not delivered, in the plan that is given out and in the one in force."""
    loop = controller()
    plan = loop.decide({"trips": 60_000}, 0.0, unread=Unread({"trips": 40_000}, reason="skipped to the newest"))
    assert plan.delivered == {"fares": 0.6, "alerts": 0.6}
    assert plan.reason == "skipped to the newest"
    assert loop.plan is plan


@pytest.mark.parametrize(("seen", "sheds"), [(0, False), (1, False), (2, True)])
def test_batches_that_ran_before_costs_were_known_judge_them(seen: int, sheds: bool) -> None:
    """Costs that two batches confirm are believed at once; with one, a batch may take twice its budget."""
    loop = controller(shedding=False)
    ran = [run_batch(loop, batch, 200_000) for batch in range(3)]
    loop.calibrated(PROFILE, shedding=True, seen=ran[:seen])
    assert loop.believed == sheds
    plan = loop.decide({"trips": 200_000}, 3000.0)  # 1.5 s
    assert plan.sheds == sheds, plan.reason


def test_costs_that_are_far_too_high_come_down_by_batches_that_ran_before() -> None:
    loop = controller(shedding=False)
    ran = [run_batch(loop, batch, 50_000) for batch in range(2)]
    cold = replace(PROFILE, read_us={"trips": 1417.0})
    loop.calibrated(cold, shedding=True, seen=ran)
    assert loop.profile.read_us["trips"] < 20


def test_small_batches_do_not_confirm_costs_per_row() -> None:
    """Costs were measured at fifty times what they are. Two batches of 50 rows took what was predicted, as their time
    is that of the trigger; the large one tells."""
    loop = controller(shedding=False)
    small_first = [run_batch(loop, batch, rows) for batch, rows in enumerate([50, 50, 100_000])]
    dear = replace(PROFILE, read_us={"trips": 350.0})
    loop.calibrated(dear, shedding=True, seen=small_first)
    assert not loop.believed
    assert loop.profile.read_us["trips"] < 20
    plan = loop.decide({"trips": 100_000}, 3000.0)  # 800 ms of 900
    assert not plan.sheds, plan.reason
    loop.calibrated(dear, shedding=True, seen=small_first[:2])
    assert not loop.believed
    assert not loop.decide({"trips": 100_000}, 4000.0).sheds, "nothing has confirmed costs per row"


def test_the_loop_follows_sic_once_per_batch_and_refuses_a_window_that_is_too_short() -> None:
    net = Network("one")
    net.source("s", "x int").output("o")
    loop = Controller(net.graph, Settings(1000.0, stw_ms=5000.0), Profile({}, {}))
    sample = BatchSample(0, 0.0, 1000.0, 900.0, {"s": 100}, arcs={"s": (100, 25)})
    loop.follow(sample)
    loop.record(sample)
    assert (loop.sic.sic("o"), loop.sic.read("s")) == (0.25, 100.0)
    loop.record(replace(sample, batch=1, arcs={"s": (100, 75)}))
    assert (loop.sic.sic("o"), loop.sic.read("s")) == (0.5, 200.0)
    with pytest.raises(StartError, match="stw is 500 milliseconds, shorter than one batch"):
        Controller(net.graph, Settings(1000.0, stw_ms=500.0), Profile({}, {}))
