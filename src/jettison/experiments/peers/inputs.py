"""What every engine reads: trips in parquet files, and the same trips as records of a Kafka topic."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jettison.experiments.support.trip_files import SCHEMA, TripFiles
from jettison.network.kafka import Kafka

_PARTITIONS = 2
_RECORD = (
    "to_json(named_struct('trip', trip, 'pickup', "
    "date_format(to_utc_timestamp(pickup, current_timezone()), \"yyyy-MM-dd'T'HH:mm:ss.SSS\") || 'Z', "
    "'zone', zone, 'cents', cents))"
)


@dataclass(frozen=True)
class TripTopic:
    """The trips of some files as JSON, in a topic of two partitions, each in the order of event time."""

    servers: str
    topic: str
    trips: TripFiles

    def fill(self, spark: Any) -> None:
        """Send every other trip to the other partition: one task writes one partition, in order."""
        rows = spark.read.schema(SCHEMA).parquet(str(self.trips.folder))
        for partition in range(_PARTITIONS):
            part = rows.where(f"trip % {_PARTITIONS} = {partition}").repartition(1).sortWithinPartitions("trip")
            records = part.selectExpr(f"{_RECORD} AS value", f"{partition} AS partition")
            writer = records.write.format("kafka").option("kafka.bootstrap.servers", self.servers)
            writer.option("topic", self.topic).save()

    @property
    def kafka(self) -> Kafka:
        """The topic as Jettison and Spark read it, so many records a batch as the files have."""
        limit = {"maxOffsetsPerTrigger": str(self.trips.rows)}
        return Kafka(self.servers, self.topic, schema=SCHEMA, starting_offsets="earliest", options=limit)

    def ends(self, batches: int) -> dict[str, int]:
        """Offsets at which so many batches have been read."""
        return {str(number): self.trips.rows * batches // _PARTITIONS for number in range(_PARTITIONS)}


Input = TripFiles | TripTopic


def trips_of(given: Input) -> TripFiles:
    return given if isinstance(given, TripFiles) else given.trips
