"""Shares of windows become schedules that never change their mind about a window that a tuple was in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.networks import steady

import jettison as jt
from jettison.control.loop import Controller, Settings
from jettison.errors import NetworkError
from jettison.network.event_time.watermarks import BatchMarks, Mark
from jettison.network.graph import Graph
from jettison.plan.drops.window import Fate
from jettison.plan.plan import Plan
from jettison.plan.problem import Problem
from jettison.plan.refine.schedules import scheduled
from jettison.plan.windows.decisions import WindowDecisions, decisions_of
from jettison.plan.windows.fates import keep
from jettison.plan.windows.group_gaps import named_groups
from jettison.plan.windows.group_values import cell_shares, valued_windows, with_groups_apart
from jettison.statistics.profile import Profile

pytestmark = pytest.mark.core

S = 1_000_000


def network(**qos: object) -> jt.Network:
    net = jt.Network("taxi")
    trips = net.source("trips", "at timestamp, fare double", event_time="at")
    busy = trips.window("10 seconds", delay="2 seconds").agg(n="count(*)", name="busy")
    busy.output("table", qos=jt.QoS(**qos))  # type: ignore[arg-type]
    return net


def asking(decisions: WindowDecisions, share: float) -> Plan:
    asked = {"busy": share}
    return Plan(decisions.arcs.drops(decisions.fates(asked), decisions.keeps(asked)), "overload")


@steady(60)
@given(st.lists(st.tuples(st.integers(0, 25), st.sampled_from((0.0, 0.2, 0.5, 0.75, 1.0))), min_size=2, max_size=25))
def test_a_window_that_was_touched_keeps_its_fate(steps: list[tuple[int, float]]) -> None:
    graph = network(gap=3).graph
    decisions = decisions_of(graph)
    fates: dict[str, Fate] = {}
    newest, mark = None, None
    said: dict[int, bool] = {}
    for ahead, share in steps:
        marks = BatchMarks(graph, {"busy": Mark(newest, mark)})
        plan = scheduled(decisions, asking(decisions, share), fates, marks)
        assert Plan.from_json(plan.to_json()) == plan
        fates = plan.fates
        fate = fates.get("busy")
        first = 0 if mark is None else max(0, (mark - 10 * S) // (10 * S) + 1)
        mark = None if newest is None else max(mark or newest - 2 * S, newest - 2 * S)
        newest = (newest or 0) + ahead * S  # what this batch brings
        for index in range(first, newest // (10 * S) + 1):
            now = fate is None or keep(fate.schedule, index)
            assert said.setdefault(index, now) == now
        assert fate is None or len(fate.schedule.segments) <= 8, "what has closed is forgotten"
    closes = any(share == 1.0 for _, share in steps)
    missing = "".join("x" if said[index] else "." for index in sorted(said)).split("x")
    assert closes or max(map(len, missing)) <= 3


def test_an_output_that_is_closed_is_named() -> None:
    decisions = decisions_of(network(gap=3).graph)
    plan = scheduled(decisions, asking(decisions, 1.0), {}, BatchMarks(network().graph, {}))
    assert plan.reason == "overload: dropping as many windows as may go is not enough, table closed"
    assert plan.fates["busy"].schedule.segments[-1].closed
    assert not plan.closes("trips"), "windows that have begun are finished"


def test_what_must_not_lose_windows_any_more_finishes_what_it_has() -> None:
    before = decisions_of(network(gap=3).graph)
    marks = BatchMarks(network().graph, {"busy": Mark(95 * S, 80 * S)})
    old = scheduled(before, asking(before, 0.75), {}, BatchMarks(network().graph, {})).fates
    after = decisions_of(network(on_loss="ignore").graph)
    fate = scheduled(after, Plan(), old, marks).fates["busy"]
    assert [keep(fate.schedule, index) for index in range(8, 10)] == [
        keep(old["busy"].schedule, index) for index in range(8, 10)
    ]
    assert all(keep(fate.schedule, index) for index in range(10, 40))


def beside(other_gap: int | None) -> Graph:
    """Windows of 5 s, and beside them windows of a minute, with which they are decided together; None: without."""
    net = jt.Network("changing")
    trips = net.source("trips", "at timestamp", event_time="at")
    trips.window("5 seconds").agg(n="count(*)", name="busy").output("table", qos=jt.QoS(gap=12))
    if other_gap is not None:
        trips.window("60 seconds").agg(n="count(*)", name="b").output("minutes", qos=jt.QoS(gap=other_gap))
    return net.graph


@steady(60)
@given(
    st.lists(
        st.tuples(st.integers(0, 400), st.sampled_from((0.0, 0.3, 0.75, 12 / 13)), st.sampled_from((None, None, 4, 0))),
        min_size=2,
        max_size=20,
    )
)
def test_a_network_that_is_changed_keeps_its_gaps(steps: list[tuple[int, float, int | None]]) -> None:
    """Alone windows are decided in steps of 5 s, beside others of a minute in steps of a minute."""
    assert decisions_of(beside(4)).by_aggregate["busy"].step_us == 60 * S
    fates: dict[str, Fate] = {}
    newest, mark = None, None
    said: dict[int, bool] = {}
    for ahead, share, other_gap in steps:
        graph = beside(other_gap)
        decisions = decisions_of(graph)
        asked = {name: min(share, each.most_drop_share) for name, each in decisions.by_aggregate.items()}
        plan = Plan(decisions.arcs.drops(decisions.fates(asked), decisions.keeps(asked)), "overload")
        marks = BatchMarks(graph, {each.name: Mark(newest, mark) for each in graph.aggregates})
        fates = scheduled(decisions, plan, fates, marks).fates
        first = 0 if mark is None else max(0, mark // (5 * S))
        mark = newest
        newest = (newest or 0) + ahead * S
        for index in range(first, newest // (5 * S) + 1):
            fate = fates.get("busy")
            now = fate is None or keep(fate.schedule, index * 5 * S // fate.slide_us)
            assert said.setdefault(index, now) == now
    missing = "".join("x" if said[index] else "." for index in sorted(said)).split("x")
    assert max(map(len, missing)) <= 12


def test_what_was_decided_in_other_steps_makes_way() -> None:
    def after(graph: Graph, old: dict[str, Fate], second: int, share: float) -> dict[str, Fate]:
        decisions = decisions_of(graph)
        asked = dict.fromkeys(decisions.by_aggregate, share)
        plan = Plan(decisions.arcs.drops(decisions.fates(asked), decisions.keeps(asked)), "overload")
        times = Mark(second * S, (second - 10) * S)
        return dict(scheduled(decisions, plan, old, BatchMarks(graph, {e.name: times for e in graph.aggregates})).fates)

    joint = after(beside(4), {}, 1000, 0.5)
    ending = after(beside(None), joint, 2000, 12 / 13)["busy"]
    assert ending.slide_us == 60 * S
    assert all(keep(ending.schedule, 34 + index) for index in range(100)), "nothing more goes by it"
    anew = after(beside(None), {"busy": ending}, 3000, 12 / 13)
    assert anew == {}, "all that it let go has closed"
    assert after(beside(None), anew, 3001, 12 / 13)["busy"].slide_us == 5 * S


def test_streams_that_have_nothing_in_common_do_not_wait_for_each_other() -> None:
    net = jt.Network("apart")
    for name in ("old", "new"):
        rows = net.source(name, "at timestamp", event_time="at")
        rows.window("5 seconds").agg(n="count(*)", name=f"{name}_busy").output(f"{name}_table", qos=jt.QoS(gap=4))
    decisions = decisions_of(net.graph)
    asked = dict.fromkeys(decisions.by_aggregate, 0.8)
    plan = Plan(decisions.arcs.drops(decisions.fates(asked), decisions.keeps(asked)), "overload")
    days = {"old_busy": 1_000_000_000, "new_busy": 1_700_000_000}
    marks = BatchMarks(net.graph, {name: Mark(time * S, (time - 10) * S) for name, time in days.items()})
    assert marks.apart
    fates = scheduled(decisions, plan, {}, marks).fates
    assert {name: 5 * fate.schedule.segments[0].start for name, fate in fates.items()} == {
        name: time + 5 for name, time in days.items()
    }


# --- groups that are worth more or less ------------------------------------------------------------------------------

VALUE = jt.Value("zone", [(0, 2, 0.1), (2, 4, 1.0)], histogram=[(0, 2, 0.5), (2, 4, 0.5)])


def valued() -> jt.Network:
    net = jt.Network("taxi")
    trips = net.source("trips", "at timestamp, zone int", event_time="at").where("zone < 4", name="near")
    busy = trips.window("10 seconds", by="zone", delay="2 seconds").agg(n="count(*)", name="busy")
    busy.output("table", qos=jt.QoS(gap=3, value=VALUE))
    return net


def asking_by_value(graph: Graph, share: float) -> Plan:
    problem = Problem(graph, Profile({"trips": 1.0, "busy": 1.0}, {}), {"trips": 1000.0}, 1.0)
    return with_groups_apart(problem, asking(decisions_of(graph), share))


@steady(40)
@given(
    st.lists(
        st.tuples(st.integers(0, 25), st.sampled_from((0.0, 0.2, 0.5, 0.75, 1.0)), st.booleans()),
        min_size=2,
        max_size=20,
    )
)
def test_windows_of_all_groups_keep_their_fate(steps: list[tuple[int, float, bool]]) -> None:
    """Also when plans that tell groups apart and plans that do not take turns."""
    graph = valued().graph
    decisions = decisions_of(graph)
    (track,) = graph.tracks.all
    cells = (0, track.cells // 2, track.cells - 2, track.cells - 1)
    fates: dict[str, Fate] = {}
    newest, mark = None, None
    said: dict[tuple[int, int], bool] = {}
    closes: set[int] = set()
    for ahead, share, by_value in steps:
        marks = BatchMarks(graph, {"busy": Mark(newest, mark)})
        asked = asking_by_value(graph, share) if by_value else asking(decisions, share)
        plan = scheduled(decisions, asked, fates, marks)
        assert Plan.from_json(plan.to_json()) == plan
        fates = plan.fates
        fate = fates.get("busy")
        first = 0 if mark is None else max(0, (mark - 10 * S) // (10 * S) + 1)
        mark = None if newest is None else max(mark or newest - 2 * S, newest - 2 * S)
        newest = (newest or 0) + ahead * S
        for cell in cells:
            within = None if fate is None else fate.within(cell)
            if within is not None and any(segment.closed for segment in within.schedule.segments):
                closes.add(cell)
            for index in range(first, newest // (10 * S) + 1):
                now = within is None or keep(within.schedule, index)
                assert said.setdefault((cell, index), now) == now
        assert fate is None or len(fate.schedule.segments) <= 8
    for cell in set(cells) - closes:
        fared = "".join("x" if said[each] else "." for each in sorted(said) if each[0] == cell)
        assert max(map(len, fared.split("x"))) <= 3


def test_groups_that_are_worth_little_go_first_and_for_good() -> None:
    graph = valued().graph
    (track,) = graph.tracks.all
    marks = BatchMarks(graph, {"busy": Mark(95 * S, 80 * S)})
    plan = scheduled(decisions_of(graph), asking_by_value(graph, 0.6), {}, marks)
    fate = plan.fates["busy"]
    cheap, dear = (range(0, track.cells // 2), range(track.cells // 2, track.cells - 1))
    for cell in cheap:
        assert not any(keep(fate.within(cell).schedule, index) for index in range(10, 60))
    for cell in dear:
        gone = [not keep(fate.within(cell).schedule, index) for index in range(10, 410)]
        assert np.mean(gone) == pytest.approx(0.2, abs=0.08), "of these as many as are still too many, in gaps"
    assert plan.worth["table"] == pytest.approx(0.8 / 1.1, abs=0.01), "half of them are worth a tenth"
    assert plan.drops["trips"].keep == pytest.approx(0.4)
    again = scheduled(decisions_of(graph), Plan(), plan.fates, BatchMarks(graph, {"busy": Mark(995 * S, 980 * S)}))
    assert all(keep(again.fates["busy"].within(cell).schedule, 100) for cell in (*cheap, *dear))


@steady(60)
@given(
    st.lists(st.tuples(st.sampled_from((0.0, 0.1, 0.5, 1.0)), st.sampled_from((0.0, 0.1, 0.4))), min_size=1),
    st.floats(0.01, 0.99),
    st.integers(1, 6),
)
def test_enough_goes_and_never_of_what_is_worth_more(cells: list[tuple[float, float]], share: float, gap: int) -> None:
    worth, mass = [each for each, _ in cells], [each for _, each in cells]
    assume(sum(mass) > 0)
    most = gap / (gap + 1)
    shares = cell_shares(worth, mass, share, most)
    gone = sum(part * amount for part, amount in zip(shares, mass, strict=True))
    assert gone >= share * sum(mass) - 1e-4
    assert all(part in (0.0, 1.0) or part <= most for part in shares)
    touched = [worth[cell] for cell, part in enumerate(shares) if part > 0]
    for cell, part in enumerate(shares):
        if mass[cell] > 0 and worth[cell] < max(touched):
            assert part == 1.0, "all that is worth less is gone before"


# --- groups with gaps of their own -----------------------------------------------------------------------------------


@steady(40)
@given(st.lists(st.tuples(st.integers(0, 25), st.sampled_from((0.0, 0.2, 0.5, 0.75, 1.0))), min_size=2, max_size=20))
def test_no_group_misses_more_than_its_own_gap(steps: list[tuple[int, float]]) -> None:
    net = jt.Network("taxi")
    trips = net.source("trips", "at timestamp, zone string", event_time="at")
    busy = trips.window("10 seconds", by="zone", delay="2 seconds").agg(n="count(*)", name="busy")
    busy.output("table", qos=jt.QoS(gap=3, gaps={"zone": {"airport": 0, "harbour": 1}}))
    graph, decisions, named = net.graph, decisions_of(net.graph), named_groups(net.graph)
    problem = Problem(graph, Profile({"trips": 1.0, "busy": 1.0}, {}), {"trips": 1000.0}, 1.0)
    fates: dict[str, Fate] = {}
    newest, mark = None, None
    said: dict[tuple[int, int], bool] = {}
    for ahead, share in steps:
        marks = BatchMarks(graph, {"busy": Mark(newest, mark)})
        plan = scheduled(decisions, with_groups_apart(problem, asking(decisions, share), named), fates, marks)
        assert Plan.from_json(plan.to_json()) == plan
        fates = plan.fates
        first = 0 if mark is None else max(0, (mark - 10 * S) // (10 * S) + 1)
        mark = None if newest is None else max(mark or newest - 2 * S, newest - 2 * S)
        newest = (newest or 0) + ahead * S
        for cell in range(3):
            for index in range(first, newest // (10 * S) + 1):
                now = "busy" not in fates or keep(fates["busy"].within(cell).schedule, index)
                assert said.setdefault((cell, index), now) == now
    closes = any(share == 1.0 for _, share in steps)
    for cell, gap in enumerate((0, 1, 3)):
        fared = "".join("x" if said[each] else "." for each in sorted(said) if each[0] == cell)
        assert (closes and gap > 0) or max(map(len, fared.split("x"))) <= gap


def planned(qos: jt.QoS, old: dict[str, Fate], second: int) -> dict[str, Fate]:
    """The fates when a plan lets as many windows go as it may, up to four of five."""
    net = jt.Network("taxi")
    trips = net.source("trips", "at timestamp, zone string, kind string", event_time="at")
    busy = trips.window("10 seconds", by=["zone", "kind"]).agg(n="count(*)", name="busy")
    busy.output("table", qos=qos)
    decisions = decisions_of(net.graph)
    problem = Problem(net.graph, Profile({"trips": 1.0, "busy": 1.0}, {}), {"trips": 1000.0}, 1.0)
    share = min(0.8, decisions.by_aggregate["busy"].most_drop_share)
    plan = with_groups_apart(problem, asking(decisions, share), named_groups(net.graph))
    marks = BatchMarks(net.graph, {"busy": Mark(second * S, (second - 5) * S)})
    return dict(scheduled(decisions, plan, old, marks).fates)


def missing(fate: Fate, cell: int, windows: range) -> int:
    """How many windows in a row are missing of the groups of a cell."""
    fared = "".join("x" if keep(fate.within(cell).schedule, index) else "." for index in windows)
    return max(map(len, fared.split("x")))


def changed(first: jt.QoS, then: jt.QoS) -> Fate:
    """The fate after two runs, the second from second 200 on with other gaps."""
    fates: dict[str, Fate] = {}
    for second in range(100, 500, 5):
        fates = planned(first if second < 200 else then, fates, second)
    return fates["busy"]


def test_other_gaps_hold_as_soon_as_those_of_before_have_run_out() -> None:
    fate = changed(jt.QoS(gap=4, gaps={"zone": {"harbour": 2}}), jt.QoS(gap=4, gaps={"zone": {"airport": 0}}))
    assert fate.apart is not None
    assert fate.apart.names == ("airport",)
    assert missing(fate, 0, range(30, 100)) == 0
    assert missing(fate, 1, range(30, 100)) == 4


def test_gaps_that_are_taken_away_hold_no_longer() -> None:
    fate = changed(jt.QoS(gap=4, gaps={"zone": {"harbour": 20}}), jt.QoS(gap=1))
    assert fate.apart is None
    assert missing(fate, 0, range(30, 100)) == 1


def test_the_same_names_of_another_column_are_other_groups() -> None:
    first, then = (jt.QoS(gap=4, gaps={column: {"1": 0}}) for column in ("zone", "kind"))
    fates: dict[str, Fate] = {}
    for second in range(100, 200, 5):
        fates = planned(first, fates, second)
    old, fate = fates["busy"], planned(then, fates, 200)["busy"]
    assert old.apart is not None
    assert fate.apart is not None
    assert fate.apart.column == old.apart.column == "zone", "open windows are judged as they were"
    for cell in range(2):
        now, before = ([keep(each.within(cell).schedule, index) for index in range(18, 21)] for each in (fate, old))
        assert now == before
    later = changed(first, then).apart
    assert later is not None
    assert later.column == "kind"


def test_a_plan_promises_nothing_of_what_runs_out() -> None:
    """Minute steps before, 5 s steps now: until the minutes have closed nothing goes, and the plan says so."""
    costs = {"busy": 5.0, "b": 5.0}
    before = Controller(beside(4), Settings(1000.0), Profile(costs, {}), clock=lambda: 0.0)
    after = Controller(beside(None), Settings(1000.0), Profile({"busy": 5.0}, {}), clock=lambda: 0.0)
    for second in range(1000, 1103):
        marks = BatchMarks(before.graph, {name: Mark(second * S, (second - 10) * S) for name in ("busy", "b")})
        plan = before.decide({"trips": 150_000}, 1000.0 * second, marks=marks)
    assert plan.fates["busy"].drop_share > 0
    after.resume(plan)
    for second in range(1103, 1106):
        marks = BatchMarks(after.graph, {"busy": Mark(second * S, (second - 10) * S)})
        plan = after.decide({"trips": 300_000}, 1000.0 * second, marks=marks)
    assert (plan.saves_us, plan.delivered["table"]) == (0.0, 1.0)
    assert plan.reason == "overload; busy: what was decided by other rules runs out first"
    for second in range(1500, 1505):
        marks = BatchMarks(after.graph, {"busy": Mark(second * S, (second - 10) * S)})
        plan = after.decide({"trips": 300_000}, 1000.0 * second, marks=marks)
    assert plan.saves_us > 100_000
    assert plan.fates["busy"].slide_us == 5 * S


def test_who_still_comes_when_an_output_is_closed_is_named() -> None:
    net = jt.Network("taxi")
    trips = net.source("trips", "at timestamp, zone string", event_time="at")
    busy = trips.window("10 seconds", by="zone").agg(n="count(*)", name="busy")
    busy.output("table", qos=jt.QoS(gap=4, gaps={"zone": {"airport": 0, "harbour": 2}}))
    decisions = decisions_of(net.graph)
    problem = Problem(net.graph, Profile({"trips": 1.0, "busy": 1.0}, {}), {"trips": 1000.0}, 1.0)
    plan = with_groups_apart(problem, asking(decisions, 1.0), named_groups(net.graph))
    reason = scheduled(decisions, plan, {}, BatchMarks(net.graph, {})).reason
    assert reason.endswith("not enough, table closed but for 'airport'")


def test_windows_that_count_rows_have_one_gap() -> None:
    net = jt.Network("rows")
    trips = net.source("trips", "trip long, zone string", id=["trip"])
    recent = trips.window("10 rows", by="zone").agg(n="count(*)", name="recent")
    recent.output("table", qos=jt.QoS(gap=4, gaps={"zone": {"airport": 0}}))
    with pytest.raises(NetworkError, match=r"output 'table' has gaps by 'zone', and aggregate 'recent' .*count rows"):
        named_groups(net.graph)


def test_values_beside_windows_that_count_rows() -> None:
    net = jt.Network("both")
    trips = net.source("trips", "trip long, at timestamp, zone int", event_time="at", id=["trip"])
    trips.window("5 seconds", by="zone").agg(n="count(*)", name="busy").output("table", qos=jt.QoS(value=VALUE))
    trips.window("10 rows", by="zone").agg(n="count(*)", name="recent").output("last")
    assert list(valued_windows(net.graph)) == ["busy"]
    controller = Controller(net.graph, Settings(1000.0), Profile({"busy": 5.0, "recent": 5.0}, {}), clock=lambda: 0.0)
    marks = BatchMarks(net.graph, {"busy": Mark(95 * S, 80 * S)})
    for second in range(3):
        plan = controller.decide({"trips": 500_000}, 1000.0 * second, marks=marks)
    assert plan.reason != "predicted within budget"


def test_a_group_is_named_as_spark_writes_it() -> None:
    assert jt.QoS(gaps={"flag": {True: 0}}).gaps == {"flag": {"true": 0}}
    with pytest.raises(NetworkError, match="the group of nulls"):
        jt.QoS(gaps={"flag": {None: 0}})


def test_gaps_are_by_a_column_that_windows_are_grouped_by() -> None:
    for by, message in (("fare", "none of the columns that aggregate 'busy' groups by: zone"), ("zone", "")):
        net = jt.Network("taxi")
        trips = net.source("trips", "at timestamp, zone string, fare double", event_time="at")
        busy = trips.window("10 seconds", by="zone").agg(fare="max(fare)", name="busy")
        busy.output("table", qos=jt.QoS(gaps={by: {"1": 0}}))
        if message:
            with pytest.raises(NetworkError, match=message):
                named_groups(net.graph)
        else:
            assert named_groups(net.graph)["busy"].gaps == (0, 4)
    net = jt.Network("rows")
    net.source("trips", "zone string").output("rows", qos=jt.QoS(gaps={"zone": {"1": 0}}))
    with pytest.raises(NetworkError, match="output 'rows' has QoS gaps, which are for results of windows"):
        named_groups(net.graph)


def test_gaps_hold_for_all_aggregates_whose_results_an_output_gets() -> None:
    net = jt.Network("merged")
    found = [
        net.source(name, "at timestamp, zone string", event_time="at")
        .window("10 seconds", by="zone")
        .agg(n="count(*)", name=f"{name}_busy")
        for name in ("s", "t")
    ]
    found[0].union(found[1]).output("table", qos=jt.QoS(gap=4, gaps={"zone": {"airport": 0}}))
    assert {name: each.gaps for name, each in named_groups(net.graph).items()} == {"s_busy": (0, 4), "t_busy": (0, 4)}
