"""The workload of experiments and demo: taxi trips whose JSON payload is parsed and scored once for three outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from jettison.network.declare import Network
from jettison.network.kafka import Kafka
from jettison.network.qos import QoS
from jettison.network.value import Value

SCHEMA = (
    "trip long, pickup timestamp, vendor string, zone int, fare double, distance_km double, tip double, "
    "passengers int, "
    "pickup_lat double, pickup_lon double, dropoff_lat double, dropoff_lon double, note string"
)

_COMPLAINTS = ("left a bag", "wrong way", "long wait")

_HAVERSINE = (
    "12742 * asin(sqrt(pow(sin(radians(dropoff_lat - pickup_lat) / 2), 2) + cos(radians(pickup_lat)) "
    "* cos(radians(dropoff_lat)) * pow(sin(radians(dropoff_lon - pickup_lon) / 2), 2)))"
)


DEAR_FARE = 60.0
"""From here on a trip is worth as much as any to the output that values fares."""
_HIGH_FARES = Value("fare", [(-20, 0, 0.0), (0, 10, 0.1), (10, 60, 0.1, 1.0), (60, 500, 1.0)], chunk=10)
_ANY_FARE = Value("fare", [(-20, 500, 1.0)])


def taxi_network(
    topic: Kafka | None = None, *, valued: bool = False, minima: Mapping[str, float] | None = None
) -> Network:
    """Parse, score the text against known complaints, compute the beeline; then three outputs of different worth.

    With a topic, trips are read from there, as `producer` sends them. `valued`: to `fares` a dear trip is worth more
    than a cheap one, in place of a loss graph. `minima` are minimum accuracies by output.
    """
    net, least = Network("taxi"), minima or {}
    if topic is None:
        trips = net.source("trips", schema=SCHEMA, event_time="pickup", id=["trip"], payload="json")
    else:
        trips = net.source("trips", replace(topic, schema=SCHEMA), event_time="pickup")
    paid = trips.where("fare > 0", name="paid")
    distances = ", ".join(f"levenshtein(substring(lower(note), 1, 12), '{complaint}')" for complaint in _COMPLAINTS)
    scored = paid.with_columns(
        {"complaint": f"least({distances})", "beeline_km": _HAVERSINE, "rider": "sha2(concat(trip, note), 256)"},
        name="scored",
    )
    scored.select("zone", "fare", "tip", "complaint", name="fare_columns").output(
        "fares",
        qos=QoS(
            loss=QoS().loss if valued else [(100, 1.0), (50, 0.8), (0, 0.0)],
            value=_HIGH_FARES if valued else None,
            min_accuracy=least.get("fares", 0.0),
        ),
    )
    scored.select("trip", "zone", "beeline_km", "distance_km", name="route_columns").output(
        "routes", qos=QoS(loss=[(100, 1.0), (50, 0.7), (0, 0.0)], min_accuracy=least.get("routes", 0.0))
    )
    alerts = scored.where("fare > 200 OR complaint < 5", name="suspicious")
    alerts.select("trip", "rider", "fare", "note", name="alert_columns").output(
        "alerts",
        qos=QoS(priority=5, value=_ANY_FARE if valued else None, min_accuracy=least.get("alerts", 0.0)),
    )
    return net
