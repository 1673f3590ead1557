"""Windows without Spark: what they are made of, what a watermark closes, and what is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.errors import NetworkError
from jettison.network import Aggregate, Graph, Network, Output, Source, Stream, WindowSpec, kind_of
from jettison.network.columns.columns_needed import needed_columns
from jettison.network.columns.lineage import origins
from jettison.network.event_time.watermarks import BatchMarks, Mark
from jettison.network.render import as_text
from jettison.network.windows.aggregates import KNOWN, parse_call, recipe
from jettison.network.windows.slice_groups import meets_windows, readers_below, results_above, slice_groups
from jettison.network.windows.time_windows import watermark_us, window_spec
from jettison.plan.refine.staleness import stale_limits
from jettison.spec.as_yaml import to_yaml
from jettison.spec.network_file import from_yaml, read_spec
from jettison.statistics.load import load_coefficients
from jettison.statistics.profile import Profile

pytestmark = pytest.mark.core

SCHEMA = "trip long, at timestamp, zone int, fare double, note string"


def trips(net: Network) -> Stream:
    return net.source("trips", SCHEMA, event_time="at", id=["trip"])


@st.composite
def specs(draw: st.DrawFn) -> WindowSpec:
    size = draw(st.integers(1, 40))
    return WindowSpec(size, draw(st.integers(1, size)), delay_us=draw(st.integers(0, 10)))


def windows_of(spec: WindowSpec, at: int) -> list[int]:
    """The starts of all windows that a time is in, by looking at each."""
    return [k * spec.slide_us for k in range(-400, 400) if 0 <= at - k * spec.slide_us < spec.size_us]


@given(specs(), st.integers(-300, 300))
def test_slices_are_whole_in_every_window(spec: WindowSpec, at: int) -> None:
    begin = at - at % spec.slice_us
    assert all(windows_of(spec, moment) == windows_of(spec, at) for moment in range(begin, begin + spec.slice_us))
    assert windows_of(spec, at), "every row is in some window"


@given(specs(), st.integers(-300, 300), st.integers(-300, 300))
def test_a_row_is_late_when_all_of_its_windows_have_ended(spec: WindowSpec, at: int, mark: int) -> None:
    ended = all(start + spec.size_us <= mark for start in windows_of(spec, at))
    assert (at < spec.first_open_us(mark)) == ended


@given(specs(), st.lists(st.integers(-100, 100), min_size=1, max_size=6).map(sorted), st.integers(-150, 100))
def test_every_window_closes_once(spec: WindowSpec, marks: list[int], oldest: int) -> None:
    before, found = None, []
    for mark in marks:
        closing = spec.closing(before, mark, oldest)
        if closing is not None:
            found += range(closing[0], closing[1] + 1, spec.slide_us)
        before = mark
    starts = [k * spec.slide_us for k in range(-300, 300)]
    assert found == [each for each in starts if oldest < each + spec.size_us <= marks[-1]]


@given(specs(), specs(), st.lists(st.integers(-100, 100), min_size=1, max_size=8).map(sorted))
def test_no_result_comes_late_to_the_aggregate_below(upper: WindowSpec, lower: WindowSpec, marks: list[int]) -> None:
    """The bound is tight too: the next result may come right at the watermark of the aggregate below."""
    lower = WindowSpec(lower.size_us, lower.slide_us)
    below: list[int | None] = [None]
    for before, mark in zip([None, *marks], marks, strict=False):
        reached = watermark_us(lower, None, [upper.first_open_us(mark)], rows=False)
        closing = upper.closing(before, mark, oldest_us=-100)
        if closing is not None and below[-1] is not None:
            assert closing[0] >= below[-1], "results of a batch take part in what closes in it"
        assert reached == upper.first_open_us(mark)
        below.append(reached)


def covering(spec: WindowSpec, at: int) -> list[int]:
    last = at // spec.slide_us * spec.slide_us
    return [start for start in range(last, last - spec.size_us, -spec.slide_us) if start + spec.size_us > at]


@given(specs(), specs(), st.lists(st.lists(st.integers(0, 120), max_size=6), min_size=1, max_size=7))
def test_batch_by_batch_every_window_has_all_of_its_rows(
    upper: WindowSpec, lower: WindowSpec, batches: list[list[int]]
) -> None:
    """Two aggregates, one below the other, with slices kept in dictionaries: all results at once give the same."""
    count = (("n", "count(*)"),)
    source = Source("s", (("at", "timestamp"),), event_time="at")
    middle, last = Aggregate("upper", ("s",), upper, count), Aggregate("lower", ("upper",), lower, count)
    graph = Graph("g", (source, middle, last, Output("o", ("lower",))))
    before: dict[str, Mark] = {}
    rows: list[tuple[int, int]] = []  # that came in time, each with the first window that it counts for
    found: dict[str, dict[int, int]] = {"upper": {}, "lower": {}}
    for batch in batches:
        marks = BatchMarks(graph, before)
        first = marks.late_before_us("upper")
        known = list(rows)
        rows += [(at, -1000 if first is None else first) for at in batch if first is None or at >= first]
        given_now = _closed(marks, "upper", upper, known)
        assert not given_now.keys() & found["upper"].keys()
        found["upper"] |= given_now
        late = marks.late_before_us("lower")
        assert all(late is None or start >= late for start in given_now), "no result comes late"
        results = [(start, -1000) for start in found["upper"]]
        found["lower"] |= _closed(marks, "lower", lower, results)
        newest = [max(batch)] if batch else []
        before = {"upper": marks.after("upper", newest), "lower": marks.after("lower", list(given_now))}
    expected: dict[int, int] = {}
    for start in found["upper"]:
        for each in covering(lower, start):
            expected[each] = expected.get(each, 0) + 1
    assert found["lower"] == {start: n for start, n in expected.items() if start in found["lower"]}
    reached = marks.open_us("lower")
    assert set(found["lower"]) == {start for start in expected if reached is not None and start < reached}


def _closed(marks: BatchMarks, name: str, spec: WindowSpec, rows: list[tuple[int, int]]) -> dict[int, int]:
    """The windows that close, with the rows in them."""
    closing = marks.closing(name, oldest_us=-100)
    counts: dict[int, int] = {}
    for at, first in rows:
        for start in covering(spec, at):
            if closing is not None and closing[0] <= start <= closing[1] and start >= first:
                counts[start] = counts.get(start, 0) + 1
    return counts


@pytest.mark.parametrize(
    ("size", "given_", "message"),
    [
        ("0 seconds", {}, r"aggregate 'busy': the window's size is '0 seconds': write a duration above 0"),
        ("-5 seconds", {}, r"the window's size is '-5 seconds'"),
        ("1 minute", {"slide": "0 seconds"}, r"the slide is '0 seconds': write a duration above 0"),
        ("1 minute", {"slide": "2 minutes"}, r"the slide '2 minutes' is longer than the window's size '1 minute'"),
        ("1 minute", {"delay": "soon"}, r"the delay is 'soon': write a duration of 0 or more"),
        ("1 month", {}, r"the window's size is '1 month': 'month' is no unit .*: write a duration in weeks, days"),
        ("5 m", {}, r"the window's size is '5 m': 'm' is no unit"),
        ("0 months", {"delay": "1 year"}, r"the window's size is '0 months': write a duration above 0"),
        ("0.0001 ms", {}, r"event times are in microseconds"),
        ("0.5 us", {}, r"event times are in microseconds"),
        ("1 minute", {"by": ["zone", "Zone"]}, r"`by` names a column twice"),
        ("1 minute", {"by": "town"}, r"aggregate 'busy': unknown column 'town'"),
    ],
)
def test_windows_that_cannot_be_are_refused(size: str, given_: dict[str, str], message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        trips(Network("taxi")).window(size, **given_).agg(n="count(*)", name="busy")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("calls", "message"),
    [
        ({}, r"name at least one aggregate"),
        ({"n": "median(fare)"}, r"unknown aggregate function 'median' in 'median\(fare\)'. Known: count, count_if"),
        ({"n": "avg(tip)"}, r"unknown column 'tip' in 'avg\(tip\)'"),
        ({"n": "avg(fare) * 2"}, r"is not one call of an aggregate function"),
        ({"n": "count(*) FILTER (WHERE fare > 1)"}, r"is not one call of an aggregate function"),
        ({"n": "avg(fare, zone)"}, r"'avg\(fare, zone\)' has not 1 argument\."),
        ({"n": "sum(DISTINCT fare)"}, r"DISTINCT goes with count"),
        ({"n": "approx_count_distinct(zone, few)"}, r"'few' is not a number above 0"),
        ({"zone": "count(*)"}, r"column 'zone' stands twice"),
        ({"Window_Start": "count(*)"}, r"column 'Window_Start' stands twice"),
        ({"_jt_n": "count(*)"}, r"begins with _jt_"),
    ],
)
def test_aggregates_that_cannot_be_are_refused(calls: dict[str, str], message: str) -> None:
    with pytest.raises(NetworkError, match=rf"aggregate 'busy': .*{message}"):
        trips(Network("taxi")).window("1 minute", by="zone").agg(calls, name="busy")


def test_a_window_needs_event_time() -> None:
    net = Network("taxi")
    with pytest.raises(NetworkError, match=r"aggregate 'busy': windows are by event time, and source 'trips' declares"):
        net.source("trips", "zone int").window("1 minute").agg(n="count(*)", name="busy")
    with pytest.raises(NetworkError, match="size is 0 us"):
        WindowSpec(0, 1)
    with pytest.raises(NetworkError, match="slides by 3 us and is 2 us long"):
        WindowSpec(2, 3)
    with pytest.raises(NetworkError, match="delay is -1 us"):
        WindowSpec(2, 2, delay_us=-1)


def nested() -> Network:
    net = Network("taxi")
    busy = trips(net).window("1 minute", slide="5 seconds", by="zone", delay="10 seconds")
    minutes = busy.agg(n="count(*)", fare="avg(fare)", name="minutes")
    minutes.where("n > 5", name="many").window("1 hour", by="zone").agg(k="count(*)", name="hours").output("out")
    minutes.output("table")
    return net


def test_windows_are_written_down_and_read_back() -> None:
    graph = nested().graph
    text = to_yaml(graph)
    for line in ("size: 1 minute", "slide: 5 seconds", "by: [zone]", "delay: 10 seconds", "agg: {k: count(*)}"):
        assert f"      {line}\n" in text or f"    {line}\n" in text
    assert from_yaml(text).graph() == graph
    with pytest.raises(NetworkError, match="`window` and `agg` go together"):
        from_yaml(text.replace("    agg: {k: count(*)}\n", ""))
    assert "minutes: aggregate 1 minute every 5 seconds by zone, delay 10 seconds: n = count(*), fare = avg(fare)" in (
        as_text(graph)
    )
    assert kind_of(graph.by_name["hours"]) == "aggregate"


def test_only_what_is_grouped_by_keeps_its_values() -> None:
    """Thesis table 3.1."""
    graph = nested().graph
    assert set(origins(graph, "out", "zone")) == {"out", "hours", "many", "minutes", "trips"}
    assert set(origins(graph, "table", "fare")) == {"table", "minutes"}
    assert set(origins(graph, "out", "window_start")) == {"out", "hours"}
    assert needed_columns(graph, "trips") == ("zone", "fare")
    assert graph.columns["out"] == ("zone", "window_start", "window_end", "k")


def test_what_stands_above_and_below() -> None:
    graph = nested().graph
    assert [each.name for each in results_above(graph, "hours")[0]] == ["minutes"]
    assert readers_below(graph, "minutes") == {"hours", "table"}
    assert all(meets_windows(graph, arc) for arc in graph.arcs)
    assert stale_limits(graph.with_stale("1 minute")) == {}
    assert [group.name for group in slice_groups(graph)] == ["minutes", "hours"]


def test_partials_of_the_same_expression_are_the_same() -> None:
    of = {text: recipe(parse_call("x", text), "double", "t") for text in ("avg(fare)", "sum(fare)", "count(fare)")}
    assert {each.sql for each in of["avg(fare)"].partials} == {"sum(fare)", "count(fare)"}
    assert recipe(parse_call("x", "avg(trip)"), "bigint", "t").partials[0].sql == "sum(double(trip))"
    assert recipe(parse_call("x", "avg(d)"), "decimal(10,2)", "t").partials[0].sql == "sum(d)"
    assert (
        len({recipe(parse_call("x", f"{name}(fare)"), "double", "t").partials for name in ("var_pop", "stddev")}) == 1
    )
    assert parse_call("x", "count( DISTINCT zone )").distinct
    assert {"count", "sum", "first", "collect_set"} <= set(KNOWN)
    source = Source("s", (("at", "timestamp"),), event_time="at")
    window = WindowSpec(60, 60)
    graph = Graph("g", (source, Aggregate("a", ("s",), window, (("n", "count(1, at)"),)), Output("o", ("a",))))
    assert graph.aggregates[0].columns == ("window_start", "window_end", "n")


def test_the_stocks_of_the_examples_are_those_of_the_thesis() -> None:
    """Figure 4.1: an aggregate, a filter on its results, an aggregate of what is left."""
    spec = read_spec("examples/stocks.yaml")
    graph = spec.graph()
    assert [each.name for each in results_above(graph, "counted")[0]] == ["spans"]
    assert graph.columns["extremes"] == ("zone", "window_start", "window_end", "times", "widest")
    assert spec.profile is not None
    assert set(spec.profile.cost_us) == set(graph.by_name)
    profile = Profile(spec.profile.cost_us, spec.profile.selectivity)
    coefficients = load_coefficients(graph, profile)
    through = 0.5 + 0.003 * (0.05 + 0.05 + 0.5 * (0.5 + 0.2 * 0.5))
    assert coefficients["traded>spans"] == pytest.approx(through), "results per row in, as any operator"


@pytest.mark.parametrize(("text", "size_us"), [("1.001 seconds", 1_001_000), ("1.005 seconds", 1_005_000)])
def test_parts_of_a_second_are_whole_microseconds(text: str, size_us: int) -> None:
    assert window_spec("aggregate 'a'", text).size_us == size_us
