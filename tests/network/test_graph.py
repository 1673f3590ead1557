"""Networks as frozen data: what building one refuses, and what it knows afterwards."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks import Case, dags, declared_graphs, steady

from jettison.errors import NetworkError
from jettison.network import (
    Apply,
    Graph,
    Join,
    Network,
    Output,
    Select,
    Source,
    Union,
    Where,
    WithColumns,
    arc_head,
    arc_name,
)
from jettison.network.operators import Operator

pytestmark = pytest.mark.core

TRIPS = Source("trips", (("trip", "long"), ("fare", "double"), ("zone", "struct<borough: string>")))


def graph(*operators: Operator) -> Graph:
    return Graph("taxi", operators)


def columns_after(operator: Operator) -> tuple[str, ...] | None:
    return graph(TRIPS, operator).columns[operator.name]


class Table:
    """Stands for a DataFrame: all that the graph asks of one is its columns."""

    def __init__(self, *columns: str) -> None:
        self.columns = list(columns)


# --- names and arcs -------------------------------------------------------------------------------------------------


def test_two_operators_of_one_name_are_named_with_their_kinds() -> None:
    with pytest.raises(NetworkError, match=r"'taxi': two operators are called 'trips' \(a source and a where\)"):
        graph(TRIPS, Where("trips", ("trips",), "fare > 0"))
    with pytest.raises(NetworkError, match="two operators are called 'o'"):
        graph(TRIPS, Output("o", ("trips",)), Output("o", ("trips",)))


@pytest.mark.parametrize("name", ["", "a b", "a>b", "a.b", "a/b", "a\n", None, 5])
def test_names_that_would_break_arcs_are_refused(name: Any) -> None:
    with pytest.raises(NetworkError, match="letters, digits"):
        graph(TRIPS, Where(name, ("trips",), "fare > 0"))


def test_reading_what_does_not_exist_lists_what_does() -> None:
    with pytest.raises(NetworkError, match=r"where 'w' reads 'trip', .*'taxi' does not have.*: trips, w\."):
        graph(TRIPS, Where("w", ("trip",), "fare > 0"))


def test_reading_an_output_is_refused() -> None:
    with pytest.raises(NetworkError, match="where 'w' reads output 'o': an output ends"):
        graph(TRIPS, Output("o", ("trips",)), Where("w", ("o",), "fare > 0"))


def test_a_cycle_names_its_operators() -> None:
    with pytest.raises(NetworkError, match=r"'taxi' has a cycle among a, b"):
        graph(TRIPS, Where("a", ("b",), "true"), Where("b", ("a",), "true"))
    with pytest.raises(NetworkError, match="cycle among a"):
        graph(TRIPS, Where("a", ("a",), "true"))
    with pytest.raises(NetworkError, match="cycle among u, w"):
        graph(TRIPS, Union("u", ("trips", "w")), Where("w", ("u",), "true"))


def test_order_of_declaration_does_not_matter_for_validity() -> None:
    found = graph(Output("o", ("w",)), Where("w", ("trips",), "fare > 0"), TRIPS)
    assert [operator.name for operator in found.operators] == ["trips", "w", "o"]


@pytest.mark.parametrize("arc", ["a>b", "größe>x-y", "s"])
def test_the_head_of_an_arc(arc: str) -> None:
    assert arc_head(arc) == arc.split(">")[-1]
    assert arc_name("a", "b") == "a>b"


# --- completeness ---------------------------------------------------------------------------------------------------


def test_a_stream_that_leads_nowhere_is_named() -> None:
    ends = Output("o", ("trips",))
    with pytest.raises(NetworkError, match="where 'w' leads to no output"):
        graph(TRIPS, ends, Where("w", ("trips",), "fare > 0")).check_complete()
    with pytest.raises(NetworkError, match="select 'b' leads to no output"):
        graph(TRIPS, ends, Where("a", ("trips",), "true"), Select("b", ("a",), ("fare",))).check_complete()
    with pytest.raises(NetworkError, match="source 'idle' leads to no output"):
        graph(TRIPS, ends, Source("idle", (("x", "int"),))).check_complete()


def test_a_network_needs_a_source_and_an_output() -> None:
    with pytest.raises(NetworkError, match="no source"):
        graph().check_complete()
    with pytest.raises(NetworkError, match="no output"):
        graph(TRIPS).check_complete()


# --- columns --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "operator",
    [
        Where("w", ("trips",), "fair > 0"),
        Select("w", ("trips",), ("trip", "fair AS f")),
        WithColumns("w", ("trips",), (("f", "fair * 2"),)),
        Join("w", ("trips",), "zones", ("fair",)),
    ],
)
def test_an_unknown_column_lists_those_that_exist(operator: Operator) -> None:
    with pytest.raises(NetworkError, match=r"'w': unknown column 'fair'.*Columns here: trip, fare, zone\."):
        graph(TRIPS, operator)


def test_a_column_that_a_select_left_behind_is_unknown_after_it() -> None:
    with pytest.raises(NetworkError, match=r"where 'w'.*'fare'.*Columns here: trip\."):
        graph(TRIPS, Select("s", ("trips",), ("trip",)), Where("w", ("s",), "fare > 0"))


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        (Where("w", ("trips",), "fare > 0"), ("trip", "fare", "zone")),
        (Select("w", ("trips",), ("fare * 2 AS twice", "zone.borough", "trip")), ("twice", "borough", "trip")),
        (Select("w", ("trips",), ("*", "fare * 2 AS twice")), ("trip", "fare", "zone", "twice")),
        (Select("w", ("trips",), (" * ",)), ("trip", "fare", "zone")),
        (WithColumns("w", ("trips",), (("fare", "0"), ("new", "1"))), ("trip", "fare", "zone", "new")),
        (Join("w", ("trips",), Table("trip", "driver"), ("trip",)), ("trip", "fare", "zone", "driver")),
        (Join("w", ("trips",), Table("trip", "driver"), ("trip",), "left_semi"), ("trip", "fare", "zone")),
        (Join("w", ("trips",), "by-name", ("trip",)), None),
        (Apply("w", ("trips",), "m:f"), None),
        (Apply("w", ("trips",), "m:f", ("a", "b")), ("a", "b")),
        (Select("w", ("trips",), (object(),)), None),
        (Output("w", ("trips",)), ("trip", "fare", "zone")),
    ],
)
def test_columns_are_known_as_far_as_they_can_be(operator: Operator, expected: tuple[str, ...] | None) -> None:
    assert columns_after(operator) == expected


@pytest.mark.parametrize("star", ["zone.*", "* EXCEPT (fare)"])
def test_stars_that_only_spark_can_unfold_are_left_to_spark(star: str) -> None:
    """selectExpr takes both; they have no name and need none."""
    assert columns_after(Select("w", ("trips",), ("trip AS id", star))) in (None, ("id", "trip", "zone"))


def test_the_column_of_an_unfolded_star_is_checked() -> None:
    with pytest.raises(NetworkError, match=r"unknown column 'zoen'.*trip, fare, zone"):
        graph(TRIPS, Select("w", ("trips",), ("zoen.*",)))


def test_a_select_may_use_a_name_that_it_has_just_given() -> None:
    """Lateral column aliases: Spark's selectExpr has them since 3.4."""
    assert columns_after(Select("w", ("trips",), ("fare * 2 AS twice", "twice + 1 AS more"))) == ("twice", "more")


def test_a_replaced_column_keeps_its_place_whatever_its_case() -> None:
    """Spark's withColumns replaces fare by FARE."""
    found = columns_after(WithColumns("w", ("trips",), (("FARE", "0"),)))
    assert found is not None
    assert [name.lower() for name in found] == ["trip", "fare", "zone"]


def test_a_select_may_use_only_names_given_before() -> None:
    with pytest.raises(NetworkError, match=r"unknown column 'twice'.*Columns here: trip, fare, zone\."):
        graph(TRIPS, Select("w", ("trips",), ("twice + 1 AS more", "fare * 2 AS twice")))


def test_names_that_a_column_of_spark_may_have_given_are_left_to_spark() -> None:
    assert columns_after(Select("w", ("trips",), (object(), "unknown + 1 AS more"))) is None


def test_several_names_for_one_item_are_left_to_spark() -> None:
    assert columns_after(Select("w", ("trips",), ("stack(2, trip, fare) AS (a, b)",))) is None


def test_an_unnamed_select_item_says_how_to_name_it() -> None:
    with pytest.raises(NetworkError, match=r"select 'w': 'fare \* 2' has no name: write 'fare \* 2 AS name'"):
        graph(TRIPS, Select("w", ("trips",), ("trip", "fare * 2")))


@pytest.mark.parametrize("items", [("fare", "fare"), ("*", "fare"), ("fare", "trip AS fare"), ("fare", "FARE")])
def test_a_select_that_gives_a_column_twice_is_refused(items: tuple[str, ...]) -> None:
    with pytest.raises(NetworkError, match=r"select 'w': column '(fare|FARE)' stands twice"):
        graph(TRIPS, Select("w", ("trips",), items))


@pytest.mark.parametrize(
    "operator",
    [
        WithColumns("w", ("trips",), (("ok", "1"),)),
        Select("w", ("trips",), ("trip AS _jt_id",)),
        Apply("w", ("trips",), "m:f", ("_jt_id",)),
    ],
)
def test_jettisons_own_prefix_is_refused_wherever_columns_are_named(operator: Operator) -> None:
    if isinstance(operator, WithColumns):
        with pytest.raises(NetworkError, match="_jt_id"):
            WithColumns("w", ("trips",), (("_jt_id", "1"),))
        return
    with pytest.raises(NetworkError, match="_jt_id"):
        graph(TRIPS, operator)


@pytest.mark.parametrize("empty", [Where("w", ("trips",), " "), Select("w", ("trips",), ("",))])
def test_an_empty_expression_is_refused(empty: Operator) -> None:
    with pytest.raises(NetworkError, match="'w': the expression is empty"):
        graph(TRIPS, empty)


# --- operators ------------------------------------------------------------------------------------------------------


def test_a_union_of_a_stream_with_itself_is_refused() -> None:
    with pytest.raises(NetworkError, match=r"union 'u' takes the same stream twice \(trips, trips\)"):
        Union("u", ("trips", "trips"))
    with pytest.raises(NetworkError, match="at least one other"):
        Union("u", ("trips",))


def test_a_union_of_different_columns_names_the_odd_ones() -> None:
    with pytest.raises(NetworkError, match=r"union 'u': 'trips' and 's' differ in columns fare, zone"):
        graph(TRIPS, Select("s", ("trips",), ("trip",)), Union("u", ("trips", "s")))


def test_a_union_finds_what_differs_even_behind_a_stream_that_only_spark_knows() -> None:
    with pytest.raises(NetworkError, match="differ in columns"):
        graph(
            TRIPS,
            Apply("a", ("trips",), "m:f"),
            Select("s", ("trips",), ("trip",)),
            Union("u", ("a", "trips", "s")),
        )


def test_columns_after_a_union_are_known_if_those_of_any_input_are() -> None:
    found = graph(TRIPS, Apply("a", ("trips",), "m:f"), Union("u", ("a", "trips")))
    assert found.columns["u"] == ("trip", "fare", "zone")


def test_a_union_matches_columns_whatever_their_case() -> None:
    """unionByName does."""
    graph(Source("a", (("x", "int"),)), Source("b", (("X", "int"),)), Union("u", ("a", "b")))


def test_a_union_may_order_columns_differently() -> None:
    found = graph(
        Source("a", (("x", "int"), ("y", "int"))), Source("b", (("y", "int"), ("x", "int"))), Union("u", ("a", "b"))
    )
    assert found.columns["u"] == ("x", "y")


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        (lambda: Select("w", ("s",), ()), "at least one column"),
        (lambda: WithColumns("w", ("s",), ()), "at least one column"),
        (lambda: WithColumns("w", ("s",), (("_jt_x", "1"),)), "_jt_x"),
        (lambda: WithColumns("w", ("s",), (("a", "1"), ("A", "2"))), "'A' stands twice"),
        (lambda: Apply("w", ("s",), "m:f", ()), "at least one column"),
        (lambda: Join("w", ("s",), "t", ()), "at least one column"),
        (lambda: Join("w", ("s",), "t", ("a",), "outer"), "'outer' is not one of inner, left"),
        (lambda: Apply("w", ("s",), "no_colon"), "'no_colon' is not of the form"),
        (lambda: Apply("w", ("s",), 5), "cannot be called"),  # type: ignore[arg-type]
        (lambda: Source("w", (("a", "int"),), event_time="b"), "event_time 'b' is not in the schema: a"),
        (lambda: Source("w", (("a", "int"),), event_time="a"), "is an int, not a timestamp"),
        (lambda: Source("w", (("a", "int"),), id=("b",)), "id 'b' is not in the schema: a"),
        (lambda: Source("w", (("a", "int"),), payload="xml"), "'xml' is not known"),
    ],
)
def test_an_operator_refuses_what_cannot_be_right(make: Any, fault: str) -> None:
    with pytest.raises(NetworkError, match=f"'w'.*{fault}"):
        make()


def test_a_join_checks_both_sides() -> None:
    with pytest.raises(NetworkError, match=r"static table has no column 'trip'. It has: id, driver"):
        graph(TRIPS, Join("j", ("trips",), Table("id", "driver"), ("trip",)))
    with pytest.raises(NetworkError, match="both sides have column 'fare'"):
        graph(TRIPS, Join("j", ("trips",), Table("trip", "fare"), ("trip",)))
    graph(TRIPS, Join("j", ("trips",), Table("trip", "fare"), ("trip",), "left_anti"))


def test_a_join_ignores_case_as_spark_does() -> None:
    found = graph(TRIPS, Join("j", ("trips",), Table("TRIP", "driver"), ("Trip",)))
    assert found.columns["j"] == ("trip", "fare", "zone", "driver")
    with pytest.raises(NetworkError, match="both sides have column 'fare'"):
        graph(TRIPS, Join("j", ("trips",), Table("trip", "FARE"), ("trip",)))


def test_a_payload_hides_its_own_column() -> None:
    with pytest.raises(NetworkError, match="'value' holds the payload"):
        graph(Source("s", (("value", "string"),), payload="json"))
    graph(Source("s", (("value", "string"),)))


@pytest.mark.parametrize("kind", ["timestamp", "TIMESTAMP", "timestamp_ntz", "Timestamp NOT NULL"])
def test_every_timestamp_is_a_time(kind: str) -> None:
    Source("s", (("t", kind),), event_time="t")


# --- properties -----------------------------------------------------------------------------------------------------


@steady(80)
@given(st.one_of(dags().map(lambda case: case.graph), declared_graphs()))
def test_operators_come_after_what_they_read(found: Graph) -> None:
    place = {operator.name: index for index, operator in enumerate(found.operators)}
    for operator in found.operators:
        assert all(place[tail] < place[operator.name] for tail in operator.inputs)
        for tail in operator.inputs:
            assert operator.name in found.consumers[tail]
    assert len(set(found.arcs)) == len(found.arcs)
    assert len(found.arcs) == len(found.sources) + sum(len(operator.inputs) for operator in found.operators)


@steady(60)
@given(dags(), st.randoms(use_true_random=False))
def test_any_order_of_declaration_gives_the_same_network(case: Case, random: Any) -> None:
    shuffled = list(case.graph.operators)
    random.shuffle(shuffled)
    again = Graph(case.graph.name, tuple(shuffled))
    assert set(again.operators) == set(case.graph.operators)
    assert set(again.arcs) == set(case.graph.arcs)
    assert again.columns == case.graph.columns
    assert Graph(again.name, again.operators) == again, "sorting twice must change nothing"


def test_an_event_time_that_is_replaced_before_a_window_is_refused() -> None:
    def declared() -> Graph:
        net = Network("n")
        trips = net.source("trips", "at timestamp, zone int", event_time="at")
        later = trips.with_columns({"AT": "at + interval 1 hour"}, name="later")
        later.window("1 minute").agg(n="count(*)", name="busy").output("out")
        return net.graph

    with pytest.raises(NetworkError, match="'later': it replaces 'at', the event time of its source"):
        declared()
    net = Network("n")
    trips = net.source("trips", "at timestamp, zone int", event_time="at")
    trips.select("at AS started", "zone", "at").window("1 minute").agg(n="count(*)").output("out")
    assert net.graph.aggregates


def test_a_column_of_another_source_may_be_called_as_the_event_time() -> None:
    """Streams that are merged need the same names."""
    net = Network("n")
    trips = net.source("trips", "at timestamp, zone int", event_time="at")
    rides = net.source("rides", "started timestamp, zone int", event_time="started").select("started AS at", "zone")
    trips.union(rides).window("1 minute").agg(n="count(*)").output("out")
    assert [each.name for each in net.graph.sources] == ["trips", "rides"]
