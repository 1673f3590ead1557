"""SIC from counts, against an interpreter that follows every tuple; and what becomes of it on bad input."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.statistics.sic.tuple_level import Interpreter, Losses, Truth

from jettison.errors import StartError
from jettison.network import Graph, Network
from jettison.network.declare import Stream
from jettison.network.operators import Aggregate, StreamJoin, Union, Where
from jettison.statistics.samples import BatchSample, FailedWindows, OutputSample
from jettison.statistics.sic import SicWindow, check_stw, default_stw_ms
from jettison.statistics.sic.window import PANES

pytestmark = pytest.mark.core

STW_MS = 1e9
SCHEMA = "at timestamp, k int"


def test_what_is_left_when_another_batch_comes() -> None:
    net = Network("one")
    net.source("s", "x int").output("o")
    window = SicWindow(net.graph, 3_000.0)
    assert window.left_after(1000.0).read("s") == 0.0
    for number, rows in enumerate((100, 20, 3)):
        window = window.after(BatchSample(number, 0.0, 1000.0, 900.0, {"s": rows}))
    assert [window.left_after(interval_ms).read("s") for interval_ms in (500, 1000, 1500, 2000, 9000)] == [
        123,
        23,
        23,
        3,
        0,
    ]
    for interval_ms in (500.0, 1000.0, 1500.0, 2000.0, 9000.0):
        coming = BatchSample(3, 0.0, interval_ms, 900.0, {"s": 7})
        assert window.after(coming).read("s") == window.left_after(interval_ms).read("s") + 7


def random_network(chance: random.Random) -> Graph:
    """Sources, filters, unions, windows (nested ones too) and joins at random, and outputs on what is left open."""
    net = Network("random")
    streams: list[Stream] = [
        net.source(f"s{n}", SCHEMA, event_time="at", id=["k"]) for n in range(chance.randint(1, 3))
    ]
    plain = list(streams)
    for n in range(chance.randint(1, 5)):
        kind = chance.choice(["where", "where", "union", "window", "nested", "join"])
        one, two = chance.choice(plain), chance.choice(plain)
        if kind == "where":
            made = one.where("k > 0", name=f"w{n}")
        elif kind == "union" and one is not two:
            made = one.union(two, name=f"u{n}")
        elif kind == "join" and one is not two:
            joined = one.join(two.select("k", name=f"k{n}"), on="k", within="1 second", name=f"j{n}")
            streams.append(joined)
            continue
        elif kind in ("window", "nested"):
            inner = one.window("1 minute", by="k").agg(n="count(*)", name=f"a{n}")
            outer = inner.window("1 hour", by="k").agg(n="sum(n)", name=f"b{n}") if kind == "nested" else inner
            streams.append(outer)
            continue
        else:
            continue
        plain.append(made)
        streams.append(made)
    for n, stream in enumerate(streams):
        stream.output(f"o{n}")
    return net.graph


def random_interpreter(seed: int, *, mixed: bool) -> Interpreter:
    """A network with drops at random; behind unions only if `mixed`: there sources are counted together."""
    chance = random.Random(seed)
    graph = random_network(chance)
    merged = {each.name for each in graph.operators if isinstance(each, Union | StreamJoin)}
    for operator in graph.operators:
        if merged & set(operator.inputs) and not isinstance(operator, Aggregate | StreamJoin):
            merged.add(operator.name)
    state = {each.name for each in graph.operators if isinstance(each, Aggregate | StreamJoin)}
    keeps = {}
    for arc in graph.arcs:
        counted = arc.tail in state  # how many results there were must be known
        if counted or chance.random() < 0.5:
            keeps[str(arc)] = chance.choice([1.0, 0.9, 0.5, 0.2])
        if not mixed and arc.tail in merged - state:
            keeps.pop(str(arc), None)
    passes = {each.name: chance.choice([1.0, 0.7, 0.3]) for each in graph.operators}
    return Interpreter(graph, keeps, passes, chance)


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_one_batch_is_what_follows_from_the_definition_tuple_by_tuple(seed: int) -> None:
    run = random_interpreter(seed, mixed=False)
    rows = {each.name: run.chance.choice([0, 20, 200]) for each in run.graph.sources}
    names = list(rows)
    losses = Losses({run.chance.choice(names): 13}, {run.chance.choice(names): 5}, {run.chance.choice(names): 7})
    sample, truth = run.run(0, rows, losses)
    window = SicWindow(run.graph, STW_MS).after(sample)
    for output in run.graph.outputs:
        if not split_unknown(run.graph, output.name):
            assert window.sic(output.name) == pytest.approx(truth.sic(run.graph, output.name), abs=1e-9), output.name
        for source in run.graph.sources_above(output.name):
            assert window.read(source.name) == truth.read[source.name]


def split_unknown(graph: Graph, output: str) -> bool:
    """Whether a filter is above a join of streams, or above a union whose rows go into windows: how many rows of which
    source it has left is not counted there."""
    above = above_of(graph, output)
    stateful = any(isinstance(graph.by_name[name], Aggregate) for name in above)
    kinds = (StreamJoin, Union) if stateful else (StreamJoin,)
    merging = [name for name in above if isinstance(graph.by_name[name], kinds)]
    return any(isinstance(graph.by_name[each], Where) for name in merging for each in above_of(graph, name))


def above_of(graph: Graph, name: str) -> set[str]:
    found, waiting = set(), [name]
    while waiting:
        at = waiting.pop()
        found.add(at)
        waiting += graph.by_name[at].inputs
    return found


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_many_batches_with_drops_anywhere_come_near_the_truth(seed: int) -> None:
    """Behind unions, and over batches, shares are those of what was counted together: near, not equal."""
    run = random_interpreter(seed, mixed=True)
    window, truth = SicWindow(run.graph, STW_MS), Truth()
    for batch in range(6):
        sample, one = run.run(batch, {each.name: 300 for each in run.graph.sources})
        window = window.after(sample)
        truth.add(one)
    for output in run.graph.outputs:
        if not split_unknown(run.graph, output.name):
            assert window.sic(output.name) == pytest.approx(truth.sic(run.graph, output.name), abs=0.06), output.name


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_nothing_lost_is_one_and_everything_lost_is_zero(seed: int) -> None:
    run = random_interpreter(seed, mixed=True)
    rows = {each.name: 50 for each in run.graph.sources}
    sample, _ = replace(run, keeps=dict.fromkeys(run.keeps, 1.0)).run(0, rows)
    assert all(sic == pytest.approx(1.0) for sic in SicWindow(run.graph, STW_MS).after(sample).all().values())
    none = dict.fromkeys(rows, 0.0)
    sample, _ = replace(run, keeps=none).run(0, rows)
    assert all(sic == 0.0 for sic in SicWindow(run.graph, STW_MS).after(sample).all().values())


def one_query() -> Graph:
    net = Network("one")
    net.source("s", "x int").where("x > 0", name="w").output("o")
    return net.graph


def batch(number: int, rows: int, kept: int, interval_ms: float = 1000.0) -> BatchSample:
    return BatchSample(number, 0.0, interval_ms, 900.0, {"s": rows}, arcs={"s": (rows, kept)})


def test_the_window_slides() -> None:
    """A window of 3 s over batches of 1 s: the loss leaves with its batch."""
    window, seen = SicWindow(one_query(), 3000.0), []
    for number, kept in enumerate([100, 0, 100, 100, 100]):
        window = window.after(batch(number, 100, kept))
        seen.append(window.sic("o"))
    assert seen == [1.0, 0.5, pytest.approx(2 / 3), pytest.approx(2 / 3), 1.0]


def test_a_window_shorter_than_a_batch_is_that_batch() -> None:
    window = SicWindow(one_query(), 500.0).after(batch(0, 100, 0)).after(batch(1, 100, 40))
    assert window.sic("o") == 0.4
    assert len(window.panes) == 1


def test_a_query_without_rows_for_longer_than_the_window_has_lost_nothing() -> None:
    window = SicWindow(one_query(), 3000.0)
    assert window.sic("o") == 1.0
    window = window.after(batch(0, 100, 10))
    for number in range(1, 4):
        window = window.after(batch(number, 0, 0))
    assert window.sic("o") == 1.0
    assert window.read("s") == 0.0
    assert window.worth("s", "o") == 1.0


def test_a_source_that_stops_counts_no_more_when_its_rows_have_left_the_window() -> None:
    net = Network("two")
    net.source("a", "x int").union(net.source("b", "x int")).output("o")
    window = SicWindow(net.graph, 3000.0)
    window = window.after(BatchSample(0, 0.0, 1e3, 9e2, {"a": 100, "b": 10}, arcs={"a": (100, 50), "b": (10, 10)}))
    assert window.sic("o") == 0.75
    assert window.worth("a", "o") == 1 / 200
    for number in range(1, 4):
        window = window.after(BatchSample(number, 0.0, 1e3, 9e2, {"a": 100, "b": 0}, arcs={"a": (100, 50)}))
    assert window.sic("o") == 0.5
    assert window.worth("a", "o") == 1 / 300


@pytest.mark.parametrize("interval_ms", [-5e9, math.nan, math.inf, -0.0])
def test_a_clock_that_jumps_moves_no_batch_out_of_the_window(interval_ms: float) -> None:
    window = SicWindow(one_query(), 3000.0).after(batch(0, 100, 0)).after(batch(1, 100, 100, interval_ms))
    assert window.sic("o") == 0.5
    assert window.after(batch(2, 100, 100)).sic("o") == pytest.approx(2 / 3)


def test_the_wall_clock_has_no_say() -> None:
    window = SicWindow(one_query(), 3000.0).after(batch(0, 100, 0))
    for started_ms in (9e12, -9e12, 0.0):
        assert window.after(replace(batch(1, 100, 100), started_ms=started_ms)).sic("o") == 0.5


def test_an_hour_of_batches_is_kept_in_few_panes() -> None:
    window, kept = SicWindow(one_query(), 3.6e6), []
    for number in range(5000):
        kept.append(50 + number % 7)
        window = window.after(batch(number, 100, kept[-1]))
    assert len(window.panes) <= PANES + 2
    last_hour = kept[-3600:]
    assert window.sic("o") == pytest.approx(sum(last_hour) / 3600 / 100, abs=0.001)


def test_what_is_written_down_goes_on_where_it_was() -> None:
    run = random_interpreter(7, mixed=True)
    window = SicWindow(run.graph, 5000.0)
    for number in range(9):
        sample, _ = run.run(number, {each.name: 100 for each in run.graph.sources})
        window = window.after(sample)
    again = SicWindow.from_dict(run.graph, 5000.0, json.loads(json.dumps(window.to_dict())))
    assert again.all() == pytest.approx(window.all(), rel=1e-5)
    sample, _ = run.run(9, {each.name: 100 for each in run.graph.sources})
    assert again.after(sample).all() == pytest.approx(window.after(sample).all(), rel=1e-5)


def test_a_new_query_begins_without_the_losses_and_rows_of_others() -> None:
    written = SicWindow(one_query(), 5000.0).after(batch(0, 100, 20)).to_dict()
    net = Network("one")
    source = net.source("s", "x int")
    source.where("x > 0", name="w").output("o")
    source.output("new")
    window = SicWindow.from_dict(net.graph, 5000.0, written)
    assert window.all() == {"o": 0.2, "new": 1.0}
    assert window.processed("s", "new") == 0.0
    again = SicWindow.from_dict(net.graph, 5000.0, window.to_dict())
    after = again.after(BatchSample(1, 0.0, 1e3, 9e2, {"s": 100}, arcs={"s": (100, 50)}))
    assert after.all() == {"o": 0.35, "new": 0.5}


def windows_network(slide: str | None = None) -> Graph:
    net = Network("windows")
    trips = net.source("s", SCHEMA, event_time="at")
    trips.window("1 minute", slide=slide).agg(n="count(*)", name="busy").output("o")
    return net.graph


def test_a_query_whose_windows_are_others_now_has_lost_nothing_by_it() -> None:
    """What went into windows that are gone is neither used nor lost: it is forgotten."""
    whole = SicWindow(windows_network(), STW_MS).after(BatchSample(0, 0.0, 1e3, 9e2, {"s": 100}))
    net = Network("windows")
    trips = net.source("s", SCHEMA, event_time="at")
    trips.window("2 minutes").agg(n="count(*)", name="busier").output("o")
    assert SicWindow.from_dict(windows_network(), STW_MS, whole.to_dict()).all() == whole.all() == {"o": 1.0}
    again = SicWindow.from_dict(net.graph, STW_MS, whole.to_dict())
    assert again.all() == {"o": 1.0}
    assert again.processed("s", "o") == 0.0


def measured(**counts: object) -> float:
    sample = BatchSample(0, 0.0, 1e3, 9e2, {"s": 100}, **counts)  # type: ignore[arg-type]
    return SicWindow(windows_network(), STW_MS).after(sample).sic("o")


def test_windows_that_are_not_kept_lose_their_rows_once() -> None:
    """The results of such windows are dropped behind the aggregate: those are the same rows."""
    assert measured(unneeded={"busy": 40}) == 0.6
    assert measured(unneeded={"busy": 40}, arcs={"busy>o": (10, 6)}) == 0.6
    assert measured(unneeded={"busy": 20}, cut={"busy": 20.0}, arcs={"busy>o": (10, 6)}) == 0.6
    assert measured(arcs={"busy>o": (10, 6)}) == 0.6


def test_late_timeless_withheld_and_failed_count_as_lost() -> None:
    assert measured(late={"busy": 10}) == 0.9
    assert measured(timeless_in={"busy": 10}, unfit={"busy": 5}) == 0.85
    assert measured(windows={"busy": (3.0, 3.0)}, withheld={"busy": 1}, outputs={"o": OutputSample(6)}) == 0.75
    assert measured(withheld={"busy": 2}) == 0.0
    assert measured(failed={"busy": FailedWindows(2, "why")}, outputs={"o": OutputSample(6)}) == pytest.approx(0.75)


def test_batches_weigh_by_the_windows_that_closed_in_them() -> None:
    """Results are counted before the filter where they are dropped, and behind it where they are not."""
    net = Network("filtered")
    trips = net.source("s", SCHEMA, event_time="at")
    trips.window("1 minute").agg(n="count(*)", name="busy").where("n > 9", name="few").output("o")
    window = SicWindow(net.graph, STW_MS)
    for number in range(10):
        arcs = {"busy>few": (100, 50)} if number == 0 else {}
        outputs = {"o": OutputSample(5 if number == 0 else 10)}
        counts = {"windows": {"busy": (2.0, 2.0)}, "arrived": {"busy": 100}}
        window = window.after(BatchSample(number, 0.0, 1e3, 9e2, {"s": 100}, arcs=arcs, outputs=outputs, **counts))
    assert window.sic("o") == pytest.approx(0.95)


def test_results_between_windows_are_counted_by_what_arrives() -> None:
    net = Network("nested")
    minutes = net.source("s", SCHEMA, event_time="at").window("1 minute", by="k").agg(n="count(*)", name="minutes")
    minutes.window("1 hour").agg(n="sum(n)", name="hours").output("o")
    window = SicWindow(net.graph, STW_MS)
    for number in range(10):
        arcs = {"minutes>hours": (40, 20)} if number == 0 else {}
        arrived = {"minutes": 100, "hours": 20 if number == 0 else 40}
        window = window.after(BatchSample(number, 0.0, 1e3, 9e2, {"s": 100}, arcs=arcs, arrived=arrived))
    assert window.sic("o") == pytest.approx(0.95)


def test_an_arc_that_is_closed_and_not_counted_lets_nothing_through() -> None:
    graph = one_query()
    sample = BatchSample(0, 0.0, 1e3, 9e2, {"s": 100})
    assert SicWindow(graph, STW_MS).after(sample, ["s>w"]).sic("o") == 0.0
    assert SicWindow(windows_network(), STW_MS).after(sample, ["busy>o"]).sic("o") == 0.0


@pytest.mark.parametrize("stw_ms", [0.0, -1.0, math.nan, math.inf])
def test_a_window_must_have_a_length(stw_ms: float) -> None:
    with pytest.raises(StartError, match="source time window"):
        SicWindow(one_query(), stw_ms)
    with pytest.raises(StartError, match="source time window"):
        check_stw(one_query(), stw_ms, 1000.0)


def test_the_window_must_be_longer_than_a_batch_and_than_what_rows_wait() -> None:
    with pytest.raises(StartError, match=r"stw is 0.5 .*|stw is 500 milliseconds, shorter than one batch"):
        check_stw(one_query(), 500.0, 1000.0)
    with pytest.raises(StartError, match=r"wait up to 1 minute \(busy\).*say 62 seconds or more"):
        check_stw(windows_network(), 60_000.0, 1000.0)
    check_stw(windows_network(), 62_000.0, 1000.0)
    assert default_stw_ms(windows_network("5 seconds"), 1000.0) == 62_000.0
    assert default_stw_ms(one_query(), 250.0) == 2500.0
