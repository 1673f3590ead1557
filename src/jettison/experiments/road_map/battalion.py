"""The battalion case of thesis 3.9 as a network: four queries that share a union, valued by where a unit is."""

from __future__ import annotations

from jettison.network.declare import Network
from jettison.network.qos import QoS
from jettison.network.value import Value

SCHEMA = "report long, seen timestamp, side string, kind string, x double, y double"

_SIGNATURE = "sha2(sha2(sha2(concat_ws('-', report, side, kind, x, y), 512), 512), 512)"
_TRACK = "sha2(sha2(concat(report, kind), 512), 512)"


def battalion_network() -> Network:
    """As in examples/battalion.yaml."""
    net = Network("battalion")
    friendly = net.source("friendly", SCHEMA, event_time="seen", id=["side", "report"])
    enemy = net.source("enemy", SCHEMA, event_time="seen", id=["side", "report"])
    reports = friendly.union(enemy, name="reports")
    reports.with_columns({"signature": _SIGNATURE}, name="signed").output(
        "analysis", qos=QoS(value=Value("x", [(0, 200, 0.1), (200, 350, 0.5, 1.0), (350, 500, 0.3)], chunk=25))
    )
    tanks = reports.where("side = 'enemy' AND kind = 'tank'", name="enemy_tanks")
    tanks.with_columns({"track": _TRACK}, name="tank_tracks").output(
        "tanks", qos=QoS(value=Value("x", [(0, 350, 1.0), (350, 500, 0.2)]))
    )
    aircraft = reports.where("side = 'enemy' AND kind = 'aircraft'", name="enemy_aircraft")
    aircraft.with_columns({"track": _TRACK}, name="aircraft_tracks").output(
        "aircraft", qos=QoS(value=Value("x", [(0, 350, 1.0), (350, 500, 0.4)]))
    )
    reports.where("side = 'enemy' AND x < 350", name="crossed").output(
        "across_the_line", qos=QoS(priority=2, value=Value("x", [(0, 350, 1.0)])), quality=True
    )
    return net
