"""Windows below joins of two streams: tuples go early on both sides, and what is delivered is as if none had gone."""

from __future__ import annotations

import itertools
import random
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks import steady
from tests.plan.windows.graph_engine import Engine, Row, is_kept, outputs_of, pair, result

import jettison as jt
from jettison.network.event_time.watermarks import BatchMarks, Mark
from jettison.plan.certify import certify
from jettison.plan.drops.window import Fate, Window
from jettison.plan.plan import Plan
from jettison.plan.problem import Problem
from jettison.plan.refine.schedules import scheduled
from jettison.plan.shedders.admission import InputUniform
from jettison.plan.shedders.road_map import RoadMapShedder, build_road_map
from jettison.plan.windows.cuts import cutting_together
from jettison.plan.windows.decisions import WindowDecisions, decisions_of
from jettison.plan.windows.fates import Schedule, Segment, keep
from jettison.plan.windows.group_gaps import named_groups
from jettison.plan.windows.group_values import with_groups_apart
from jettison.plan.windows.window_arcs import WindowArcs
from jettison.statistics.load import flows
from jettison.statistics.profile import Profile

pytestmark = pytest.mark.core

S = 1_000_000
HALF = S // 2
SECONDS = st.sampled_from((1, 2, 3, 4, 6))
BANDS = st.sampled_from(("1 second", "2 seconds", "700 ms", "3 seconds"))
DELAYS = st.sampled_from((None, "1 second", "4 seconds"))


def sourced(net: jt.Network, name: str) -> jt.Stream:
    return net.source(name, "k int, at timestamp, v int", event_time="at")


@st.composite
def networks(draw: st.DrawFn) -> jt.Network:
    """Two or three streams, put into windows or not, joined once or twice, and windows below, maybe nested; beside it
    all an output may get windows of one of the streams, or of the pairs."""
    net = jt.Network("random")
    numbers = itertools.count()
    streams = [sourced(net, name) for name in "ab"]

    def windowed(stream: jt.Stream) -> jt.Stream:
        slide = draw(SECONDS)
        size = slide + draw(st.sampled_from((0, 0, 1, slide)))
        wide = stream.window(f"{size} seconds", slide=f"{slide} seconds", by="k", delay=draw(DELAYS))
        return wide.agg(v="sum(v)", name=f"w{next(numbers)}")

    def side(stream: jt.Stream, column: str) -> jt.Stream:
        if draw(st.booleans()):
            stream = stream.where("v % 3 > 0", name=f"f{next(numbers)}")
        if draw(st.integers(0, 3)) == 0:
            stream = windowed(stream)
            if draw(st.booleans()):
                stream.output(f"o{next(numbers)}", qos=jt.QoS(gap=draw(st.integers(1, 4))))
        return stream.select("k", f"v AS {column}", name=f"s{next(numbers)}")

    def joined(left: jt.Stream, right: jt.Stream) -> jt.Stream:
        number = next(numbers)
        pairs = side(left, f"l{number}").join(
            side(right, f"r{number}"), on="k", within=draw(BANDS), delay=draw(DELAYS), name=f"j{number}"
        )
        return pairs.select("k", f"l{number} + r{number} AS v", name=f"p{number}")

    below = joined(streams[0], streams[draw(st.sampled_from((1, 1, 1, 0)))])
    if draw(st.integers(0, 2)) == 0:
        other = draw(st.sampled_from(("a", "b", "c")))
        below = joined(below, sourced(net, "c") if other == "c" else net.stream(other))
    if draw(st.integers(0, 3)) == 0:
        below = below.union(streams[0].select("k", "v", name="beside"))
    for depth in range(draw(st.integers(1, 2))):
        below = windowed(below)
        if depth == 1 or draw(st.booleans()):
            below.output(f"o{next(numbers)}", qos=jt.QoS(gap=draw(st.integers(1, 6))))
    below.output(f"o{next(numbers)}", qos=jt.QoS(gap=draw(st.integers(1, 6))))
    if draw(st.booleans()):
        windowed(streams[0]).output(f"o{next(numbers)}", qos=jt.QoS(gap=3))
    for stream in streams[1:]:
        if not net.graph.consumers[stream.name]:
            windowed(stream).output(f"o{next(numbers)}")
    return net


@st.composite
def batches(draw: st.DrawFn, names: tuple[str, ...]) -> list[dict[str, list[Row]]]:
    """Rows that are a little, or very, late; a source may lag behind, or bring nothing for a while."""
    found, at = [], dict.fromkeys(names, 0)
    for _ in range(draw(st.integers(4, 9))):
        batch = {}
        for name in names:
            at[name] += draw(st.integers(0, 14))
            back = st.integers(0, 4) | st.integers(0, 4) | st.integers(0, 20)
            times = back.map(lambda back, now=at[name]: (now - back) * HALF)
            batch[name] = draw(st.lists(st.tuples(times, st.integers(0, 1), st.integers(1, 9)), max_size=8))
        found.append(batch)
    return found


def asked(decisions: WindowDecisions, share: float) -> Plan:
    shares = dict.fromkeys(decisions.by_aggregate, share)
    shares = {
        name: share if share == 1.0 else min(share, decisions.by_aggregate[name].most_drop_share) for name in shares
    }
    return Plan(decisions.arcs.drops(decisions.fates(shares), decisions.keeps(shares)), "overload")


class Both:
    """A network run without shedding and with it, batch by batch, by plans as a controller makes them."""

    def __init__(self, net: jt.Network) -> None:
        self.graph = net.graph
        self.decisions = decisions_of(net.graph)
        self.full, self.shed = Engine(net.graph), Engine(net.graph)
        self.fates: dict[str, Fate] = {}
        self.said: dict[tuple[str, int], dict[int, bool]] = defaultdict(dict)
        self.shares: set[float] = set()

    def _asked(self, share: float) -> Plan:
        rows = {source.name: 1.0 for source in self.graph.sources}
        problem = Problem(self.graph, Profile({}, {}), rows, 1.0)
        return with_groups_apart(problem, asked(self.decisions, share), named_groups(self.graph))

    def take(self, batch: dict[str, list[Row]], share: float) -> None:
        self.shares.add(share)
        plan = scheduled(self.decisions, self._asked(share), self.fates, self.shed.before())
        assert Plan.from_json(plan.to_json()) == plan
        self.fates = plan.fates
        everything, delivered = self.full.take(batch), self.shed.take(batch, plan)
        wanted = dict(everything)
        for name, fate in self.fates.items():
            for output in outputs_of(self.graph, name):
                wanted[output] = [row for row in everything[output] if is_kept(fate, row)]
                for row in everything[output]:
                    self.said[name, row[1]][row[0] // fate.slide_us] = is_kept(fate, row)
        assert delivered == wanted
        marks = [{name: mark.mark_us for name, mark in run.marks.items()} for run in (self.shed, self.full)]
        assert marks[0] == marks[1], "windows close when they would have closed"
        waits = [[(each.newest_us, each.seen_us) for each in run.joins.values()] for run in (self.shed, self.full)]
        assert waits[0] == waits[1], "rows wait for partners as long as they would have waited"

    def check_gaps(self, own: dict[int, int] | None = None) -> None:
        """No group misses more windows in a row than it may; `own` are gaps by key."""
        for (name, key), fared in self.said.items():
            runs = "".join("x" if fared.get(index, True) else "." for index in range(min(fared), max(fared) + 1))
            gap = (own or {}).get(key, self.decisions.by_aggregate[name].gap)
            assert (1.0 in self.shares and gap > 0) or max(map(len, runs.split("x"))) <= gap


SHARES = st.sampled_from((0.0, 0.3, 0.8, 0.8, 1.0))


@steady(100)
@given(st.data())
def test_what_is_delivered_is_what_would_have_been(data: st.DataObject) -> None:
    """Whatever the network, plans that change in mid-stream, rows that are late."""
    both = Both(data.draw(networks()))
    for batch in data.draw(batches(tuple(source.name for source in both.graph.sources))):
        both.take(batch, data.draw(SHARES))
    both.check_gaps()


def run_on_every_edge(net: jt.Network, seed: int) -> Both:
    """Both sides all the time, one behind the other, and rows where bands and windows begin and end, to a few ms."""
    draw = random.Random(seed)
    both, lag_s = Both(net), draw.choice((0, 2, 7))
    for number in range(14):
        batch = {}
        for name, behind in (("orders", 0), ("payments", lag_s)):
            ticks = [2 * (number - behind) + draw.randrange(-6, 6) for _ in range(25)]
            times = [tick * HALF + draw.choice((-3000, -2000, 0, 0, 1000)) for tick in ticks]
            batch[name] = [(time, draw.randrange(5), draw.randrange(1, 9)) for time in times]
        both.take(batch, draw.choice((0.0, 0.0, 0.5, 0.75, 0.75, 1.0)))
    return both


def gone(both: Both) -> int:
    """Rows that went at the inputs."""
    return sum(both.shed.arrived[name] - both.shed.passed[name] for name in ("orders", "payments"))


@pytest.mark.parametrize("within", ["3 seconds", "1003 ms"])
@pytest.mark.parametrize("nested", [False, True])
def test_also_with_many_rows_on_every_edge(within: str, nested: bool) -> None:
    net = shop(within, "4 seconds", gap=3, delay="2 seconds")
    if nested:
        net.stream("busy").window("8 seconds", by="k").agg(n="sum(n)", name="wide").output("more", qos=jt.QoS(gap=2))
    runs = [run_on_every_edge(net, seed) for seed in range(25)]
    for both in runs:
        both.check_gaps()
    assert sum(map(gone, runs)) > 2000


def test_also_where_groups_have_gaps_of_their_own() -> None:
    """They are told apart by the column that pairs are joined on, at both inputs."""
    net = shop("3 seconds", "4 seconds", gap=3, delay="2 seconds", gaps={"k": {"1": 0, "2": 1}})
    runs = [run_on_every_edge(net, seed) for seed in range(25)]
    for both in runs:
        both.check_gaps({1: 0, 2: 1})
    assert sum(map(gone, runs)) > 1000


# --- times -----------------------------------------------------------------------------------------------------------


def shop(
    within: str = "7 seconds", size: str = "1 minute", gap: int = 4, delay: str | None = None, **qos: Any
) -> jt.Network:
    net = jt.Network("shop")
    orders = net.source("orders", "k int, at timestamp, sum int", event_time="at").where("sum > 0", name="sold")
    payments = net.source("payments", "k int, at timestamp, paid int", event_time="at")
    sides = orders.select("k", "sum", name="left"), payments.select("k", "paid", name="right")
    both = sides[0].join(sides[1], on="k", within=within, delay=delay, name="both")
    both.window(size, by="k", delay=delay).agg(n="count(*)", name="busy").output("table", qos=jt.QoS(gap=gap, **qos))
    return net


@steady(60)
@given(st.data())
def test_no_pair_of_rows_in_time_is_late(data: st.DataObject) -> None:
    """A pair has the later of two times: while rows are no later than the delay, all pairs are in their windows,
    however far one side lags behind the other. (The newest pair as the measure would close windows too soon.)"""
    graph = shop("3 seconds", "4 seconds", delay="2 seconds").graph
    engine, all_rows, at = Engine(graph), {"orders": [], "payments": []}, {"orders": 0, "payments": 0}
    delivered: list[Row] = []
    for _ in range(data.draw(st.integers(3, 9))):
        batch = {}
        for name in at:
            low = at[name] - 4
            times = data.draw(st.lists(st.integers(low, at[name] + data.draw(st.integers(0, 16))), max_size=6))
            batch[name] = [(time * HALF, data.draw(st.integers(0, 1)), 1) for time in times]
            at[name] = max([at[name], *times])
            all_rows[name] += batch[name]
        delivered += engine.take(batch)["table"]
    delivered += engine.take({name: [(10_000 * S, 9, 1)] for name in at})["table"]
    delivered += engine.take({name: [(20_000 * S, 9, 1)] for name in at})["table"]
    pairs = [
        pair(left, right)
        for left, right in itertools.product(all_rows["orders"], all_rows["payments"])
        if left[1] == right[1] and abs(left[0] - right[0]) <= 3 * S
    ]
    inside: dict[tuple[int, int], list[Row]] = defaultdict(list)
    for row in pairs:
        inside[row[0] // (4 * S) * 4 * S, row[1]].append(row)
    wanted = sorted(result(start, key, rows) for (start, key), rows in inside.items())
    assert engine.late == 0
    assert sorted(row for row in delivered if row[1] != 9) == wanted


def test_a_checkpoint_from_before_goes_on_from_where_it_had_got_to() -> None:
    """Its mark is of the newest pair, and it knows of no places: the watermark waits for both sides, and never goes
    back."""
    graph = shop().graph
    old = {"busy": Mark(500 * S, 480 * S)}
    before = BatchMarks(graph, old)
    assert before.newest_us == 500 * S
    one = before.after("busy", [900 * S], {"orders": 900 * S})
    assert (one.newest_us, one.largest_us) == (500 * S, 900 * S)
    both = BatchMarks(graph, {"busy": one}).after("busy", [], {"payments": 650 * S, "others": 999 * S})
    assert (both.newest_us, both.mark_us, both.seen_us) == (650 * S, 500 * S, {"orders": 900 * S, "payments": 650 * S})


# --- segments --------------------------------------------------------------------------------------------------------


def test_a_new_segment_begins_a_band_after_what_was_judged() -> None:
    """Orders at second 175 were dropped, for the minute that they may be needed in was to go: it cannot be kept now."""
    graph = shop("7 seconds").graph
    decisions = decisions_of(graph)
    assert decisions.band_us("busy") == 7 * S
    for newest_s, first in ((172, 3), (173, 4), (179, 4), (180, 4), (233, 5)):
        marks = BatchMarks(graph, {"busy": Mark(100 * S, 60 * S, {"orders": newest_s * S, "payments": 100 * S})})
        plan = scheduled(decisions, asked(decisions, 0.5), {}, marks)
        assert plan.fates["busy"].schedule.segments[-1].start == first


def test_bands_add_up_along_a_way() -> None:
    net = jt.Network("twice")
    a, b, c = (sourced(net, name).select("k", f"v AS {name}_", name=f"{name}s") for name in "abc")
    ab = a.join(b, on="k", within="10 seconds", name="ab")
    minutes = ab.window("1 minute", by="k").agg(x="sum(a_)", name="minutes")
    minutes.output("o1", qos=jt.QoS(gap=9))
    minutes.select("k", "x", name="xs").join(c, on="k", within="5 seconds", name="abc").window("2 minutes").agg(
        n="count(*)", name="twos"
    ).output("o2", qos=jt.QoS(gap=9))
    arcs = WindowArcs(net.graph)
    assert (arcs.band_us("minutes"), arcs.band_us("twos")) == (10 * S, 15 * S)
    decisions = WindowDecisions(net.graph)
    together = decisions.by_aggregate["minutes"].seed == decisions.by_aggregate["twos"].seed
    assert together
    assert decisions.band_us("minutes") == 15 * S, "what is decided together changes together"
    assert set(arcs.early_arcs(["minutes", "twos"])) == {"a", "b", "c", "ab>minutes", "minutes>xs", "abc>twos"}


# --- what it saves ---------------------------------------------------------------------------------------------------


@steady(80)
@given(
    st.integers(1, 12),
    st.integers(0, 6),
    st.integers(1, 30),
    st.integers(1, 9),
    st.integers(0, 3),
    st.sampled_from((0, 1, 2, 5)),
)
def test_the_weight_is_what_goes(slide: int, more: int, within: int, gap: int, inner: int, inner_more: int) -> None:
    """As many blocks as there are keep their first window alone: what is not needed in the long run is what the weight
    says, with an aggregate above the join or without."""
    net = jt.Network("one")
    a, b = sourced(net, "a"), sourced(net, "b")
    if inner:
        wide = a.window(f"{inner + inner_more} seconds", slide=f"{inner} seconds", by="k")
        a = wide.agg(v="sum(v)", name="inner")
    left, right = a.select("k", "v AS l", name="left"), b.select("k", "v AS r", name="right")
    both = left.join(right, on="k", within=f"{within} seconds", name="both")
    last = both.window(f"{slide + more} seconds", slide=f"{slide} seconds", by="k").agg(n="count(*)", name="last")
    last.output("o", qos=jt.QoS(gap=gap))
    decisions = WindowDecisions(net.graph)
    arcs, block_us = decisions.arcs, (gap + 1) * slide * S
    fates = {"last": Fate(slide * S, Schedule((Segment(-(10**6), gap / (gap + 1), gap, "last"),)))}
    first = next(index for index in range(gap + 1) if keep(fates["last"].schedule, index)) * slide * S
    for arc in ("a", "b", "both>last"):
        low = first + 40 * block_us
        blocks = inner or 1  # after so many all is as it was
        needed = arcs.needs(arc, fates, low, low + blocks * block_us)
        clipped = sum(max(0, min(end, low + blocks * block_us) - max(start, low)) for start, end in needed)
        saved = 1 - clipped / (blocks * block_us)
        weight = decisions.weight(arc) * gap / (gap + 1)
        if arc == "a" and inner:
            assert weight <= saved + 1e-9, "no more than is saved where windows begin unevenly"
        else:
            assert weight == pytest.approx(saved)


def test_pairs_that_are_left_are_a_share_of_one_side_not_of_both() -> None:
    graph = shop("6 seconds").graph
    decisions = decisions_of(graph)
    keeps = decisions.keeps({"busy": 0.5})
    weight = (5 * 60 - 66) / (4 * 60)
    assert keeps["orders"] == keeps["payments"] == pytest.approx(1 - 0.5 * weight)
    on = flows(graph, Profile({}, {"both": 0.25}), {"orders": 1000, "payments": 1000}, keeps)
    full = flows(graph, Profile({}, {"both": 0.25}), {"orders": 1000, "payments": 1000})
    assert on["both>busy"] / full["both>busy"] == pytest.approx(0.5), "half of the windows get their pairs"
    assert keeps["both>busy"] == pytest.approx(0.5 / keeps["orders"])


COSTS = Profile({"orders": 1.0, "payments": 1.0, "both": 4.0, "busy": 2.0}, {"both": 0.5, "busy": 0.01}, drop_us=0.02)


@pytest.mark.parametrize("left", [0.8, 0.6, 0.4])
@pytest.mark.parametrize("shedder", ["road map", "admission"])
def test_an_overload_drops_windows_at_both_inputs(left: float, shedder: str) -> None:
    graph = shop(gap=6).graph
    rows = {"orders": 1000, "payments": 400}
    problem = Problem(graph, COSTS, rows, left * Problem(graph, COSTS, rows, 1e9).load_us)
    chosen = RoadMapShedder(build_road_map(graph, COSTS, rows)) if shedder == "road map" else InputUniform()
    plan = chosen.plan(problem)
    assert isinstance(plan, Plan)
    certify(problem, plan)
    assert set(plan.drops) == {"orders", "payments", "both>busy", "busy>table"}
    assert all(isinstance(drop, Window) for drop in plan.drops.values())
    assert plan.drops["orders"].keep == plan.drops["payments"].keep < 1
    share = plan.fates["busy"].drop_share
    assert 0 < share <= 6 / 7
    assert plan.delivered["table"] == pytest.approx(1 - share)


def test_where_one_side_is_wanted_whole_the_drop_stands_on_its_branch() -> None:
    net = shop(gap=6)
    net.stream("payments").output("all", qos=jt.QoS(priority=99))
    decisions = WindowDecisions(net.graph)
    assert decisions.arcs.early_arcs(["busy"]) == ("orders", "payments>right", "both>busy")
    assert cutting_together(decisions, "payments>right") == {"orders", "payments>right"}
    rows = {"orders": 1000, "payments": 400}
    problem = Problem(net.graph, COSTS, rows, 0.7 * Problem(net.graph, COSTS, rows, 1e9).load_us)
    plan = RoadMapShedder(build_road_map(net.graph, COSTS, rows)).plan(problem)
    assert isinstance(plan, Plan)
    certify(problem, plan)
    assert set(plan.drops) == {"orders", "payments>right", "both>busy", "busy>table"}


def test_a_function_still_ends_it() -> None:
    net = jt.Network("function")
    a = sourced(net, "a").apply("m:f", columns=["k", "v"], name="made").select("k", "v AS l", name="left")
    both = a.join(sourced(net, "b").select("k", "v AS r", name="right"), on="k", within="1 second", name="both")
    both.window("10 seconds").agg(n="count(*)", name="busy").output("table")
    arcs = WindowArcs(net.graph)
    assert arcs.early_arcs(["busy"]) == ("b", "made>left", "both>busy")
