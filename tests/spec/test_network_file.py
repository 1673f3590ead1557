"""YAML, both ways: what is written reads back equal, and what is wrong is refused by its place."""

from __future__ import annotations

import os.path
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.networks import Case, dags, declared_graphs, steady

from jettison.errors import NetworkError
from jettison.network import Apply, Graph, Join, Network, Output, QoS, Source, Value, Where
from jettison.spec.as_yaml import to_dict, to_yaml
from jettison.spec.network_file import from_yaml, read_spec
from jettison.statistics.profile import Profile

pytestmark = pytest.mark.core

TAXI = """
network: taxi
sources:
  trips: {schema: "trip long, fare double, zone int, pickup timestamp", event_time: pickup, id: [trip]}
operators:
  paid: {of: trips, where: fare > 0}
  slim: {of: paid, select: [trip, fare * 2 AS twice]}
  wide: {of: paid, with_columns: {double_fare: fare * 2}}
  named: {of: paid, join: zones, "on": [zone], how: left}
  back: {of: named, select: [trip, fare AS twice]}
  both: {of: slim, union: [back]}
  custom: {of: wide, apply: "my.module:function", columns: [trip]}
outputs:
  out: {of: both, qos: {loss: [[100, 1], [50, 0.8], [0, 0]], priority: 2}, quality: true}
  rest: {of: custom}
"""


def content(**changes: Any) -> str:
    """The taxi network with parts changed: `operators__paid__where=...`; ... removes."""
    data = yaml.safe_load(TAXI)
    for path, value in changes.items():
        *parents, last = path.split("__")
        at = data
        for part in parents:
            at = at.setdefault(part, {})
        if value is ...:
            del at[last]
        else:
            at[last] = value
    return yaml.safe_dump(data)


def test_reads_every_kind_of_operator() -> None:
    graph = from_yaml(TAXI).graph()
    net = Network("taxi")
    trips = net.source("trips", "trip long, fare double, zone int, pickup timestamp", event_time="pickup", id=["trip"])
    paid = trips.where("fare > 0", name="paid")
    slim = paid.select("trip", "fare * 2 AS twice", name="slim")
    wide = paid.with_columns({"double_fare": "fare * 2"}, name="wide")
    named = paid.join("zones", on="zone", how="left", name="named")
    slim.union(named.select("trip", "fare AS twice", name="back"), name="both").output(
        "out", qos=QoS(((100, 1), (50, 0.8), (0, 0)), 2), quality=True
    )
    wide.apply("my.module:function", columns=["trip"], name="custom").output("rest")
    assert set(graph.operators) == set(net.graph.operators)


# --- round trip -----------------------------------------------------------------------------------------------------


@steady(60)
@given(declared_graphs())
def test_a_network_survives_its_yaml(graph: Graph) -> None:
    again = from_yaml(to_yaml(graph)).graph()
    assert again.name == graph.name
    assert set(again.operators) == set(graph.operators)
    assert set(again.arcs) == set(graph.arcs)


@steady(40)
@given(declared_graphs())
def test_a_network_with_its_outputs_last_survives_as_an_equal_value(graph: Graph) -> None:
    assert from_yaml(to_yaml(graph)).graph() == graph


@steady(40)
@given(declared_graphs(), st.randoms(use_true_random=False))
def test_a_network_declared_in_any_order_survives_as_an_equal_value(graph: Graph, random: Any) -> None:
    shuffled = list(graph.operators)
    random.shuffle(shuffled)
    graph = Graph(graph.name, tuple(shuffled))
    assert from_yaml(to_yaml(graph)).graph() == graph


def test_an_output_declared_before_its_siblings_survives() -> None:
    net = Network("order")
    stream = net.source("s", "x int")
    stream.output("raw")
    stream.where("x > 0", name="w").output("big")
    assert from_yaml(to_yaml(net.graph)).graph() == net.graph


@steady(25)
@given(dags())
def test_planning_sees_the_same_arcs_after_a_round_trip(case: Case) -> None:
    again = from_yaml(to_yaml(case.graph)).graph()
    assert set(again.arcs) == set(case.graph.arcs)
    assert {output.name: output.qos for output in again.outputs} == {o.name: o.qos for o in case.graph.outputs}


def test_the_yaml_of_the_taxi_network_is_stable() -> None:
    once = to_yaml(from_yaml(TAXI).graph())
    assert to_yaml(from_yaml(once).graph()) == once
    assert list(yaml.safe_load(once)) == ["network", "sources", "operators", "outputs"]


def test_nothing_empty_is_written() -> None:
    graph = Graph("tiny", (Source("s", (("a", "int"),)), Output("o", ("s",))))
    assert to_dict(graph) == {
        "network": "tiny",
        "sources": {"s": {"schema": "a int"}},
        "outputs": {"o": {"of": "s", "qos": {"loss": [[100.0, 1.0], [0.0, 0.0]]}}},
    }


def test_names_with_spaces_survive() -> None:
    source = Source("s", (("my col", "int"), ("b", "int")))
    graph = Graph("n", (source, Where("w", ("s",), "`my col` > 0"), Output("o", ("w",))))
    assert from_yaml(to_yaml(graph)).graph() == graph


SOURCE = Source("s", (("a", "int"),))


def nested_function() -> Any:
    def inner(frame: Any) -> Any:
        return frame

    return inner


@pytest.mark.parametrize(
    ("operator", "fault"),
    [
        (Where("w", ("s",), object()), "operator 'w' holds a Column.*SQL string"),
        (Apply("w", ("s",), lambda frame: frame), "operator 'w' holds .*lambda.*imported"),
        (Apply("w", ("s",), nested_function()), "operator 'w' holds .*inner.*imported"),
        (Join("w", ("s",), object(), ("a",)), "operator 'w' joins a DataFrame.*tables"),
    ],
)
def test_what_cannot_be_written_down_is_refused(operator: Any, fault: str) -> None:
    with pytest.raises(NetworkError, match=fault):
        to_yaml(Graph("n", (SOURCE, operator, Output("o", ("w",)))))


def test_a_function_of_a_module_is_written_by_its_import_path() -> None:
    graph = Graph("n", (SOURCE, Apply("w", ("s",), os.path.join), Output("o", ("w",))))
    assert to_dict(graph)["operators"]["w"]["apply"] == f"{os.path.join.__module__}:join"


# --- faults name their place ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"network": ...}, "network"),
        ({"sources": ...}, "sources"),
        ({"outputs": ...}, "outputs"),
        ({"operatorz": {}}, "operatorz"),
        ({"sources__trips__schema": ...}, "sources.trips: .*`schema`"),
        ({"sources__trips__schemas": "a int"}, "sources.trips.schemas"),
        ({"sources__trips__id": "trip"}, "sources.trips.id"),
        ({"operators__paid__where": True}, "operators.paid.where"),
        ({"operators__paid__wehre": "fare > 0"}, "operators.paid.wehre"),
        ({"operators__paid__where": ...}, "operators.paid.*exactly one of where, select.*none"),
        ({"operators__paid__select": ["fare"]}, "operators.paid.*exactly one of .*where, select"),
        ({"operators__paid__of": ...}, "operators.paid.*`of`"),
        ({"operators__slim__select": "trip"}, "operators.slim.select"),
        ({"operators__slim__select": [1]}, "operators.slim.select.0"),
        ({"operators__wide__with_columns": ["a"]}, "operators.wide.with_columns"),
        ({"operators__wide__with_columns": {"a": 1}}, "operators.wide.with_columns.a"),
        ({"outputs__out__of": ...}, "outputs.out.of"),
        ({"outputs__out__qos__loss": [[100, 1], [50]]}, "outputs.out.qos.loss.1"),
        ({"outputs__out__qos__priority": "high"}, "outputs.out.qos.priority"),
        ({"outputs__out__qos__prio": 1}, "outputs.out.qos.prio"),
        ({"outputs__out__quality": "perhaps"}, "outputs.out.quality"),
        ({"profile": {"fixed_ms": -1}}, "profile.fixed_ms"),
        ({"run": {"trigger": 5}}, "run.trigger"),
        (
            {"run": {"shedding": "dryrun"}},
            r"run.shedding.mode is 'dryrun' \(did you mean 'dry-run'\?\): use on, off or",
        ),
        ({"run": {"shedding": {"headrom": 1}}}, r"run.shedding.headrom is not known \(did you mean 'headroom'\?\)"),
        ({"run": {"shedding": 5}}, r"run.shedding.mode is 5: use on, off or dry-run"),
        ({"run": {"checkpoint": 5}}, r"run.checkpoint.path is 5: write a text"),
        (
            {"run": {"headroom": 0.8}},
            r"run.headroom is not known: it is in run.shedding, as in `shedding: {headroom: ...",
        ),
        ({"run": {"retention": 5}}, r"run.retention is not known: it is in run.checkpoint, as in `checkpoint: {reten"),
        ({"run": {"statics": {}}}, "run.statics is not known: it is called run.tables"),
    ],
)
def test_a_fault_of_form_names_its_place(changes: dict[str, Any], place: str) -> None:
    with pytest.raises(NetworkError, match=f"taxi.yaml: .*{place}"):
        from_yaml(content(**changes), origin="taxi.yaml")


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"sources__trips__schema": "trip"}, "source 'trips': schema part 'trip'"),
        ({"sources__trips__event_time": "time"}, "source 'trips'.*'time'"),
        ({"operators__paid__where": "fair > 0"}, "where 'paid'.*'fair'.*trip, fare"),
        ({"operators__paid__of": "tripps"}, "where 'paid' reads 'tripps'.*trips"),
        ({"operators__paid__of": "slim"}, "cycle among"),
        ({"operators__both__union": ["slim"]}, "union 'both' takes the same stream twice"),
        ({"operators__named__how": "outer"}, "join 'named'.*'outer'"),
        ({"operators__custom__apply": "function"}, "apply 'custom'.*'function'"),
        ({"outputs__rest__of": "out"}, "output 'rest' reads output 'out'"),
        ({"outputs__rest": ...}, "apply 'custom' leads to no output"),
        ({"sources__paid": {"schema": "a int"}}, "two operators are called 'paid'"),
        ({"outputs__out__qos": {"loss": [[100, 1], [50, 0.2], [0, 0]]}}, r"concave at point \(50.0, 0.2\)"),
        ({"outputs__out__qos": {"priority": -1}}, "priority is -1"),
    ],
)
def test_a_fault_of_meaning_names_its_element(changes: dict[str, Any], fault: str) -> None:
    with pytest.raises(NetworkError, match=fault):
        from_yaml(content(**changes)).graph()


def test_a_bad_qos_in_yaml_names_its_output() -> None:
    """A file has many outputs: the point alone does not say which."""
    with pytest.raises(NetworkError, match="out"):
        from_yaml(content(outputs__rest__qos={}, outputs__out__qos={"loss": [[100, 1], [50, 0.2], [0, 0]]})).graph()


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "no mapping"),
        ("- a", "no mapping"),
        ("just words", "no mapping"),
        ("a: [1", "not valid YAML"),
        ("a: b: c", "not valid YAML"),
        ("network: !!python/object:os.system x", "not valid YAML"),
    ],
)
def test_what_is_no_specification_says_so(text: str, fault: str) -> None:
    with pytest.raises(NetworkError, match=f"taxi.yaml .*{fault}"):
        from_yaml(text, origin="taxi.yaml")


def test_on_needs_no_quotes() -> None:
    """YAML 1.1 reads a bare `on` as true. Nobody who writes a join thinks of that."""
    graph = from_yaml(TAXI.replace('"on"', "on")).graph()
    assert graph == from_yaml(TAXI).graph()


def test_words_that_yaml_once_took_for_true_are_words() -> None:
    text = "network: off\nsources: {no: {schema: yes int}}\noutputs: {on: {of: no, quality: true}}"
    graph = from_yaml(text).graph()
    assert (graph.name, graph.arcs, graph.outputs[0].quality) == ("off", ("no", "no>on"), True)


def test_a_key_may_override_what_it_merges() -> None:
    text = TAXI.replace("rest: {of: custom}", "rest: {<<: {of: both, quality: true}, of: custom}")
    assert from_yaml(text).graph().by_name["rest"].inputs == ("custom",)


@pytest.mark.parametrize(
    "twice",
    [
        "operators:\n  a: {of: s, where: x > 1}\n  a: {of: s, where: x > 2}\noutputs: {o: {of: a}}",
        "operators:\n  a: {of: s, where: x > 1, where: x > 2}\noutputs: {o: {of: a}}",
        "outputs: {o: {of: s}}\noutputs: {p: {of: s}}",
    ],
    ids=["operator", "field", "section"],
)
def test_a_name_that_stands_twice_is_refused(twice: str) -> None:
    """YAML's loader keeps the last and says nothing: an operator would vanish."""
    with pytest.raises(NetworkError, match=r"twice|duplicate"):
        from_yaml(f"network: n\nsources: {{s: {{schema: x int}}}}\n{twice}\n").graph()


def test_a_profile_that_was_measured_can_be_written_into_the_file() -> None:
    measured = Profile({"paid": 1.0}, {"paid": 0.5}, 2.0, {"trips": 0.1}, 0.05)
    spec = from_yaml(content(profile=measured.to_dict()))
    assert spec.profile is not None
    assert spec.profile.cost_us == {"paid": 1.0}
    assert (spec.profile.read_us, spec.profile.drop_us) == ({"trips": 0.1}, 0.05)


# --- files ----------------------------------------------------------------------------------------------------------


def test_a_file_is_read_and_named_in_errors(tmp_path: Path) -> None:
    file = tmp_path / "taxi.yaml"
    file.write_text(TAXI, encoding="utf-8")
    assert read_spec(file).graph() == from_yaml(TAXI).graph()
    file.write_text(content(network=...), encoding="utf-8")
    with pytest.raises(NetworkError, match=r"taxi\.yaml: network"):
        read_spec(str(file))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match=r"nowhere\.yaml"):
        read_spec(tmp_path / "nowhere.yaml")
    with pytest.raises(NetworkError):
        read_spec(tmp_path)


def test_equality_of_graphs_is_not_blind() -> None:
    """The round-trip tests rest on it."""
    graph = from_yaml(TAXI).graph()
    other = [replace(op, quality=False) if isinstance(op, Output) else op for op in graph.operators]
    assert Graph("taxi", tuple(other)) != graph


def test_the_battalion_of_the_examples_is_the_one_of_the_experiments() -> None:
    from jettison.experiments.road_map.battalion import battalion_network

    assert read_spec("examples/battalion.yaml").graph() == battalion_network().graph


def test_what_tuples_are_worth_survives_its_yaml() -> None:
    net = Network("worth")
    value = Value("x", [(0, 50, 0.2), (50, 100, 0.5, 1.0)], chunk=10, otherwise=0.1, histogram=[(0, 100, 1.0)])
    source = net.source("s", "x double, at timestamp", event_time="at")
    source.output("a", qos=QoS(value=value, priority=2, latency=[("0 seconds", 1.0), ("1 minute", 0.0)]))
    source.output("b", qos=QoS(stale="10 seconds"))
    source.window("1 minute", by="x").agg(n="count(*)").output("c", qos=QoS(gap=4, gaps={"x": {1: 0, "2.5": 1}}))
    assert from_yaml(to_yaml(net.graph)).graph() == net.graph


def test_the_yaml_of_a_value_utility_names_its_fault() -> None:
    text = """
network: n
sources: {s: {schema: x double}}
outputs: {o: {of: s, qos: {value: {column: x, intervals: [[0, 50, 0.2], [60, 100, 1.0]]}}}}
"""
    with pytest.raises(NetworkError, match="output 'o': value utility of 'x': there is a gap from 50 to 60"):
        from_yaml(text).graph()
