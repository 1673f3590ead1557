"""Kafka topics as plain data: where a source reads, where an output writes, where shed rows are kept. No Spark here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jettison.errors import NetworkError
from jettison.network.calls import checked_call
from jettison.network.columns.avro import avro_columns
from jettison.network.columns.schema import Column, check_names, parse_schema

VALUES = ("json", "text", "avro")
_OURS = {
    "subscribe": "topic",
    "assign": "topic",
    "topic": "topic",
    "kafka.bootstrap.servers": "servers",
    "startingoffsets": "starting_offsets",
    "failondataloss": "fail_on_data_loss",
}
_SPARKS = ("subscribepattern", "startingtimestamp", "startingoffsetsbytimestamp", "endingoffsets", "includeheaders")
"""Options of the connector that would read something else than Jettison plans for."""


@dataclass(frozen=True)
class Kafka:
    """A topic and what its records hold.

    servers, topic
        "host:port" (several with commas) and the topic (several with commas, for a source).
    value
        "json": an object per record, its fields as in `schema`. "text": one string column. "avro": as the Avro schema
        (JSON text) in `schema` says.
    key, timestamp
        Columns for the record's key (as text) and time. A source gets these columns, a sink takes the key from it.
    starting_offsets, fail_on_data_loss
        As Spark means them, for a source without a checkpoint, and for records that are gone before they were read.
    options
        Any other option of Spark's connector, such as {"kafka.security.protocol": "SSL"}.

    >>> topic = Kafka("localhost:9092", "trips", schema="trip long, fare double", timestamp="sent")
    >>> topic.columns("source 'trips'")
    (('trip', 'long'), ('fare', 'double'), ('sent', 'timestamp'))
    """

    servers: str
    topic: str
    value: str = "json"
    schema: str | None = None
    key: str | None = None
    timestamp: str | None = None
    starting_offsets: str = "latest"
    fail_on_data_loss: bool = True
    options: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        here = f"kafka topic {self.topic!r}"
        if not isinstance(self.topic, str) or not self.topics or any(not name for name in self.topics):
            raise NetworkError(f"kafka: topic is {self.topic!r}: give its name, such as 'trips'.")
        for name in self.topics:
            if set(name) - set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") or len(name) > 249:
                raise NetworkError(f"kafka: {name!r} is no topic's name: use letters, digits, '.', '_' and '-'.")
        for word, column in (("key", self.key), ("timestamp", self.timestamp)):
            if column is not None and (not isinstance(column, str) or not column.strip()):
                raise NetworkError(f"{here}: {word} is {column!r}: give the name of a column, such as 'sent'.")
        if not isinstance(self.fail_on_data_loss, bool):
            raise NetworkError(f"{here}: fail_on_data_loss is {self.fail_on_data_loss!r}: say True or False.")
        for server in str(self.servers).split(","):
            host, colon, port = server.strip().rpartition(":")
            if not (host and "/" not in host and colon and port.isdigit() and 0 < int(port) < 65536):
                raise NetworkError(f"{here}: server {server!r} is not host:port, such as 'localhost:9092'.")
        if self.value not in VALUES:
            raise NetworkError(f"{here}: value {self.value!r} is not known: use one of {', '.join(VALUES)}.")
        offsets: object = self.starting_offsets
        if not isinstance(offsets, str) or not (offsets in ("latest", "earliest") or offsets.startswith("{")):
            raise NetworkError(
                f"{here}: starting_offsets is {self.starting_offsets!r}: use 'latest', 'earliest', or offsets as JSON."
            )
        if not isinstance(self.options, Mapping):
            raise NetworkError(f"{here}: options are {self.options!r}: give a mapping of Kafka's own settings.")
        for name in self.options:
            if not isinstance(name, str):
                raise NetworkError(f"{here}: an option is called {name!r}: give names as texts.")
            if name.lower() in _OURS:
                raise NetworkError(f"{here}: option {name!r} has its own argument: {_OURS[name.lower()]}.")
            if name.lower().startswith(_SPARKS):
                raise NetworkError(f"{here}: option {name!r} cannot be used here: give topics and starting_offsets.")

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(name.strip() for name in str(self.topic).split(","))

    def columns(self, element: str) -> tuple[Column, ...]:
        """The columns that a source on this topic has: what is in the value, then key and time; raises without any."""
        inside = self.inside(element)
        if self.value == "text" and (len(inside) != 1 or inside[0][1].lower() != "string"):
            raise NetworkError(f"{element}: value='text' needs one string column, such as schema='line string'.")
        beside = [(name, kind) for name, kind in ((self.key, "string"), (self.timestamp, "timestamp")) if name]
        check_names(element, [name for name, _ in (*inside, *beside)])
        return (*inside, *beside)

    def inside(self, element: str) -> tuple[Column, ...]:
        """The columns in the value."""
        if self.schema is None:
            raise NetworkError(f"{element}: kafka topic {self.topic!r} has no schema: say what is in the value.")
        return avro_columns(self.schema, element) if self.value == "avro" else parse_schema(self.schema, element)


@checked_call("jt.kafka")
def kafka(
    servers: str,
    topic: str,
    *,
    value: str = "json",
    schema: str | None = None,
    key: str | None = None,
    timestamp: str | None = None,
    starting_offsets: str = "latest",
    fail_on_data_loss: bool = True,
    options: Mapping[str, str] | None = None,
) -> Kafka:
    """A Kafka topic: to read as a source, to write as a sink, or to keep what was shed or rejected. See `Kafka`.

    As a source its rows are known by (topic, partition, offset); the size of a batch is known before it is read.
    As a sink it is at least once: a batch that is repeated after a failure is sent again.
    """
    return Kafka(
        servers,
        topic,
        value,
        schema,
        key,
        timestamp,
        starting_offsets,
        fail_on_data_loss,
        {} if options is None else options,
    )
