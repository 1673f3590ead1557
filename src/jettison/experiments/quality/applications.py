"""The seed's two applications as networks on Kafka (Stream Economics 5.4): taxi drives, and nearest neighbours.

Taxi drives come from two topics, are parsed, merged and read by two outputs, one of them dear. Nearest neighbours reads
one topic, and is one task.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jettison.experiments.quality.neighbours import classify
from jettison.network.declare import Network
from jettison.network.kafka import Kafka
from jettison.network.qos import QoS

DRIVES = (
    "trip long, pickup timestamp, vendor string, zone int, fare double, distance_km double, tip double, note string"
)
POINTS = "trip long, pickup timestamp, vendor string, fare double, distance_km double, tip double"
TOPICS = ("drives_1", "drives_2", "points")
_COMPLAINTS = ("left a bag behind", "took the wrong way", "had a long wait")


@dataclass(frozen=True)
class Asked:
    """What an output asks for."""

    priority: float = 1.0
    min_accuracy: float = 0.0

    @property
    def qos(self) -> QoS:
        return QoS(priority=self.priority, min_accuracy=self.min_accuracy)


def both_applications(servers: str, asked: Mapping[str, Asked]) -> Network:
    """Taxi drives (outputs `zones` and `complaints`) and nearest neighbours (`classes`) as one network.

    >>> from jettison.experiments.quality.applications import Asked, both_applications
    >>> net = both_applications("127.0.0.1:9092", {"complaints": Asked(5, 0.3)})
    >>> [source.name for source in net.graph.sources], sorted(output.name for output in net.graph.outputs)
    (['drives_1', 'drives_2', 'points'], ['classes', 'complaints', 'zones'])
    """
    net = Network("taxi-drives-and-neighbours")
    first, second = (
        net.source(name, Kafka(servers, name, schema=DRIVES, starting_offsets="earliest"), event_time="pickup")
        for name in TOPICS[:2]
    )
    drives = first.where("fare > 0", name="parsed_1").union(second.where("fare > 0", name="parsed_2"), name="drives")
    wanted = {name: asked.get(name, Asked()).qos for name in ("zones", "complaints", "classes")}
    drives.select("zone", "fare", "tip", "distance_km", name="zone_columns").output("zones", qos=wanted["zones"])
    distances = ", ".join(f"levenshtein(lower(note), '{complaint}')" for complaint in _COMPLAINTS)
    text = {"complaint": f"least({distances})", "rider": "sha2(repeat(concat(trip, note), 8), 512)"}
    drives.with_columns(text, name="read").select("trip", "complaint", "rider", name="complaint_columns").output(
        "complaints", qos=wanted["complaints"]
    )
    points = net.source(
        "points", Kafka(servers, "points", schema=POINTS, starting_offsets="earliest"), event_time="pickup"
    )
    points.map(classify, key="vendor", schema="class string", rows=True, name="neighbours").output(
        "classes", qos=wanted["classes"]
    )
    return net
