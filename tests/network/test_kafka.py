"""Kafka topics as declarations: what is checked before anything runs, and the way through YAML."""

from __future__ import annotations

import json

import pytest

import jettison as jt
from jettison.network.columns.avro import avro_columns
from jettison.network.kafka import Kafka
from jettison.spec.as_yaml import to_yaml
from jettison.spec.network_file import from_yaml
from jettison.spec.run_section import read_places

pytestmark = pytest.mark.core

SERVERS = "localhost:9092"


def topic(**others: object) -> Kafka:
    return jt.kafka(SERVERS, "trips", **{"schema": "trip long, fare double", **others})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"topic": ""}, "topic is ''"),
        ({"topic": "a,,b"}, "topic is 'a,,b'"),
        ({"topic": "tri ps"}, "'tri ps' is no topic's name"),
        ({"servers": "localhost"}, "'localhost' is not host:port"),
        ({"servers": "localhost:port"}, "'localhost:port' is not host:port"),
        ({"servers": "a:1,b:99999"}, "'b:99999' is not host:port"),
        ({"value": "xml"}, "value 'xml' is not known: use one of json, text, avro"),
        ({"starting_offsets": "beginning"}, "starting_offsets is 'beginning'"),
        ({"options": {"subscribe": "x"}}, "option 'subscribe' has its own argument: topic"),
        ({"options": {"failOnDataLoss": "false"}}, "its own argument: fail_on_data_loss"),
        ({"options": {"startingTimestamp": "5"}}, "option 'startingTimestamp' cannot be used here"),
        ({"options": {"subscribePattern": ".*"}}, "option 'subscribePattern' cannot be used here"),
    ],
)
def test_a_topic_is_checked_where_it_is_made(arguments: dict[str, object], fault: str) -> None:
    with pytest.raises(jt.NetworkError, match=fault):
        Kafka(**{"servers": SERVERS, "topic": "trips", **arguments})  # type: ignore[arg-type]


def test_a_source_has_the_columns_of_its_topic_with_key_and_time() -> None:
    net = jt.Network("n")
    trips = net.source("trips", topic(key="rider", timestamp="sent"), event_time="sent")
    assert trips.columns == ("trip", "fare", "rider", "sent")
    trips.where("fare > 0 AND rider = 'x'").output("out")
    with pytest.raises(jt.NetworkError, match=r"zone.*trip, fare, rider, sent"):
        trips.where("zone = 1")


def test_records_may_have_fields_that_spark_and_kafka_use_as_names() -> None:
    net = jt.Network("n")
    net.source("s", jt.kafka(SERVERS, "t", schema="value string, timestamp timestamp, topic string, offset long"))
    assert net.stream("s").columns == ("value", "timestamp", "topic", "offset")


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        (lambda: jt.kafka(SERVERS, "trips"), "has no schema"),
        (lambda: topic(key="fare"), "column 'fare' stands twice"),
        (lambda: topic(value="text"), "needs one string column"),
        (lambda: topic(value="avro"), "the Avro schema is not JSON"),
        (lambda: topic(value="avro", schema='{"type": "string"}'), "is not a record"),
    ],
)
def test_a_source_needs_a_topic_that_says_what_is_in_it(make: object, fault: str) -> None:
    with pytest.raises(jt.NetworkError, match=fault):
        jt.Network("n").source("trips", make())  # type: ignore[operator]


def test_a_payload_that_contradicts_the_topic_is_refused() -> None:
    with pytest.raises(jt.NetworkError, match="payload 'json' is not the topic's value 'text'"):
        jt.Network("n").source("s", topic(value="text", schema="line string"), payload="json")


def test_networks_with_topics_survive_yaml() -> None:
    net = jt.Network("n")
    full = topic(
        key="rider",
        timestamp="sent",
        starting_offsets="earliest",
        fail_on_data_loss=False,
        options={"minPartitions": "4"},
    )
    net.source("trips", full, event_time="sent").where("fare > 0").output("out")
    assert from_yaml(to_yaml(net.graph)).graph() == net.graph
    assert "starting_offsets" not in to_yaml(_plain().graph), "what is as usual is left out"


def _plain() -> jt.Network:
    net = jt.Network("n")
    net.source("trips", topic()).output("out")
    return net


def test_a_source_in_yaml_says_schema_or_kafka() -> None:
    for source in ("{}", "{schema: a int, kafka: {servers: 'a:1', topic: t, schema: a int}}"):
        with pytest.raises(jt.NetworkError, match="say either `schema`, or `kafka`"):
            from_yaml(f"network: n\nsources: {{s: {source}}}\noutputs: {{o: {{of: s}}}}")


def test_topics_can_be_given_when_a_run_starts() -> None:
    net = jt.Network("n")
    net.source("trips", "trip long, fare double, sent timestamp", event_time="sent").output("out")
    graph = net.graph.with_topics({"trips": jt.kafka(SERVERS, "t", timestamp="sent")})
    source = graph.sources[0]
    assert source.schema == net.graph.sources[0].schema
    assert source.payload == "json"
    assert source.kafka is not None
    assert source.kafka.schema == "trip long, fare double"
    with pytest.raises(jt.NetworkError, match="column 'key' as string, which is not declared"):
        net.graph.with_topics({"trips": jt.kafka(SERVERS, "t", key="key")})
    with pytest.raises(jt.NetworkError, match="column 'fare' as int, which is declared double"):
        net.graph.with_topics({"trips": jt.kafka(SERVERS, "t", schema="fare int")})


RUN = """
network: n
sources: {trips: {kafka: {servers: "a:1", topic: t, schema: fare double}}}
outputs: {out: {of: trips}}
run:
"""


def test_places_for_results_dead_letters_and_shed_rows_may_be_topics() -> None:
    spec = from_yaml(
        RUN + "  sinks: {out: {kafka: {servers: 'a:1', topic: o, key: fare}}}\n"
        "  dead_letters: {kafka: {servers: 'a:1', topic: r, options: {kafka.linger.ms: 5, kafka.x: true}}}\n"
        "  on_shed: {trips: {parquet: shed}}"
    )
    places = read_places(spec, spec.graph())
    assert places.sinks["out"] == jt.kafka("a:1", "o", key="fare")
    assert places.dead_letters == jt.kafka("a:1", "r", options={"kafka.linger.ms": "5", "kafka.x": "true"})
    assert places.use_kafka
    assert places.sources == {}


@pytest.mark.parametrize(
    ("run", "fault"),
    [
        ("  sinks: {out: {kafka: {topic: o}}}", r"run.sinks.out.kafka.servers"),
        ("  sinks: {out: {kafka: {servers: 'a', topic: o}}}", r"run.sinks.out.kafka: .*host:port"),
        ("  sinks: {out: {kafka: {servers: 'a:1', topic: o, sort: x}}}", r"run.sinks.out.kafka.sort is not known"),
        ("  sources: {trips: {format: rate}}\n  sinks: {out: {console: 1}}", r"run.sources.trips: .*as declared"),
    ],
)
def test_faults_in_places_name_their_place(run: str, fault: str) -> None:
    spec = from_yaml(RUN + run)
    with pytest.raises(jt.StartError, match=fault):
        read_places(spec, spec.graph())


def test_avro_types_in_spark_words() -> None:
    fields = [
        {"name": "id", "type": "long"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "price", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}]},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "by", "type": {"type": "map", "values": "int"}},
        {"name": "place", "type": {"type": "record", "name": "p", "fields": [{"name": "x", "type": "double"}]}},
        {"name": "kind", "type": {"type": "enum", "name": "k", "symbols": ["A"]}},
    ]
    schema = json.dumps({"type": "record", "name": "r", "fields": fields})
    assert dict(avro_columns(schema, "s")) == {
        "id": "long",
        "at": "timestamp",
        "price": "decimal(9, 2)",
        "tags": "array<string>",
        "by": "map<string, int>",
        "place": "struct<`x`: double>",
        "kind": "string",
    }
    with pytest.raises(jt.NetworkError, match="union of several types"):
        avro_columns('{"type": "record", "name": "r", "fields": [{"name": "a", "type": ["int", "string"]}]}', "s")
