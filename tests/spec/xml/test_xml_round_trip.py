"""Networks in XML and YAML are equal ones, both ways; what XML has no words for is refused by name."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from tests.networks import declared_graphs, steady
from tests.spec.xml.queries import AVERAGE, queries

import jettison as jt
from jettison.errors import NetworkError
from jettison.network.graph import Graph
from jettison.spec.network_file import from_yaml
from jettison.spec.whole_file import file_content, file_yaml
from jettison.spec.xml.as_xml import to_xml
from jettison.spec.xml.reader import from_xml

pytestmark = pytest.mark.core


@steady(150)
@given(queries())
def test_a_query_survives_yaml_and_xml(text: str) -> None:
    graph = from_xml(text).graph()
    assert from_yaml(jt.to_yaml(graph)).graph() == graph
    assert from_xml(to_xml(graph)).graph() == graph


@steady(60)
@given(declared_graphs())
def test_a_network_is_written_as_it_is_or_refused(graph: Graph) -> None:
    """Networks with every operator that YAML can have: none comes back as another one."""
    refused = [type(each).__name__ for each in graph.operators if type(each).__name__ in ("WithColumns", "Apply")]
    if refused or graph.aggregates:  # those of these networks have two values each
        with pytest.raises(NetworkError, match=r"cannot be written as XML|computes 2 values"):
            to_xml(graph)
    else:
        assert from_xml(to_xml(graph)).graph() == graph


def test_random_queries_have_every_type() -> None:
    """The property above would hold of queries that are all alike."""
    seen: set[str] = set()

    @steady(150)
    @given(queries())
    def look(text: str) -> None:
        seen.update(type(each).__name__ for each in from_xml(text).graph().operators)

    look()
    assert seen >= {"Where", "Select", "Union", "Join", "StreamJoin", "Aggregate", "CountAggregate"}


WHOLE = """
network: whole
sources:
  trips: {schema: "trip long, at timestamp, fare double", event_time: at, id: [trip]}
  calls: {kafka: {servers: "h:1", topic: calls, schema: "x int", options: {kafka.security.protocol: SSL}}}
  files: {schema: "n long, at timestamp"}
operators:
  paid: {of: trips, where: "fare > 0 AND fare < 1e9"}
  busy: {of: trips, window: {size: 1 minute, slide: 10 seconds}, agg: {n: count(*)}}
outputs:
  fares: {of: paid, quality: true, qos: {priority: 2, value: {column: fare, intervals: [[0, 50, 1]]}}}
  windows: {of: busy, qos: {gap: 4}}
  called: {of: calls}
  read: {of: files}
profile: {fixed_ms: 3, cost_us: {paid: 2}, values: {trips.fare: [[0, 50, 1.0]]}}
run:
  trigger: 5 seconds
  checkpoint: {path: out/c, retention: 3 days}
  shedding: {mode: "on", shedder: random}
  costs: {profile: true, shared: [paid]}
  sources:
    trips: {generator: {preset: taxi, rate: {kind: constant, rows_per_s: 5}}}
    files: {format: json, path: in, schema: "n long, at timestamp", options: {maxFilesPerTrigger: 1}}
  sinks:
    fares: {parquet: out/fares, on_other_run: replace}
    windows: {console: null}
    called: {kafka: {servers: "h:1", topic: out}}
    read: {format: noop}
  dead_letters: {parquet: out/dead}
  on_shed: {trips: {parquet: out/shed}}
"""


def test_a_whole_file_survives_with_its_sections() -> None:
    spec = from_yaml(WHOLE)
    again = from_xml(to_xml(spec))
    assert again.graph() == spec.graph()
    assert file_content(again) == file_content(spec)
    assert file_content(from_yaml(file_yaml(again))) == file_content(spec)


def test_a_schema_of_files_that_is_not_the_tuple_survives() -> None:
    text = WHOLE.replace(
        'path: in, schema: "n long, at timestamp"', 'path: in, schema: "n long, at timestamp, more int"'
    )
    assert file_content(from_xml(to_xml(from_yaml(text)))) == file_content(from_yaml(text))


def test_names_that_the_writer_needs_may_be_taken() -> None:
    net = jt.Network("taken")
    rows = net.source("s", "a int")
    rows.window("3 rows").agg(name="busy", n="count(*)").output("busy-window")
    assert from_xml(jt.to_xml(net)).graph() == net.graph


def network(**operator: Any) -> str:
    source = "{schema: 'a int, t timestamp', event_time: t}"
    content = {"of": "s", **operator}
    return f"{{network: n, sources: {{s: {source}}}, operators: {{w: {content}}}, outputs: {{o: {{of: w}}}}}}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (network(with_columns={"b": "a + 1"}), r"operator 'w' \(with_columns\) cannot be written as XML: .*select"),
        (network(apply="m:f"), r"operator 'w' \(apply\) cannot be written as XML: .*SQL.*YAML"),
        (network(map="m:f", key=["a"], schema="b int"), r"operator 'w' \(map\) cannot be written as XML"),
        (
            network(window={"size": "1 day"}, agg={"n": "count(*)", "m": "max(a)"}),
            r"'w' computes 2 values \(n, m\).*each",
        ),
        (network(window={"size": "1 day"}, agg={"n": "stddev(a)"}), r"'w' computes 'stddev\(a\)'.*Average, Sum, Count"),
        (network(window={"size": "1 day"}, agg={"n": "count(DISTINCT a)"}), r"'w' computes 'count\(DISTINCT a\)'"),
        (network(window={"size": "1 day"}, agg={"n": "max(a + 1)"}), r"'a \+ 1' is no column.*select before"),
        (
            network(window={"size": "1 day"}, agg={"n": {"whole_window": "m:f", "columns": ["a"], "type": "int"}}),
            r"operator 'w' has a function of its own.*YAML",
        ),
        (network(where="a = '\x7f\x85'").replace("\\x7f\\x85", "\\u0001"), r"character '\\x01', which XML cannot have"),
        (network(where="a > 0").replace("o: {of: w}", "w: {of: w}"), r"output 'w' has the name of an operator.*rename"),
        (
            network(where="a > 0")[:-1] + ", nodes: {one: {operators: [w], capacity: 1}}}",
            r"`nodes` cannot be written as XML.*YAML",
        ),
    ],
)
def test_what_xml_has_no_words_for_is_refused_by_name(text: str, words: str) -> None:
    text = text.replace("'a = '", "\"a = '").replace("\\u0001''", "\\u0001'\"")
    spec = from_yaml(text)
    with pytest.raises(NetworkError, match=words):
        to_xml(spec)


@pytest.mark.parametrize("section", ["sources", "operators", "outputs", None])
def test_a_key_that_the_writer_does_not_know_is_not_left_out_in_silence(
    section: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """YAML may get new keys: convert must not lose them."""
    content = file_content(from_yaml(WHOLE))
    part = content if section is None else next(iter(content[section].values()))
    part["news"] = 1
    monkeypatch.setattr("jettison.spec.xml.as_xml.file_content", lambda spec: content)
    with pytest.raises(NetworkError, match=r"`news` cannot be written as XML: remove it, or stay with YAML"):
        to_xml(from_yaml(WHOLE))


def test_no_network_is_no_xml() -> None:
    with pytest.raises(NetworkError, match=r"7 is no network: give a jt.Network"):
        jt.to_xml(7)  # type: ignore[arg-type]


def test_the_average_is_what_the_listings_say() -> None:
    net = jt.Network("average")
    readings = net.source("MyInput", "ts timestamp, idx double, cpu double", event_time="ts")
    readings.window("10 seconds", by="idx").agg(name="MyAvgCpu", cpu="avg(cpu)").output("MyOutput")
    assert from_xml(AVERAGE).graph() == net.graph
