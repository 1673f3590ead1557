"""WHAT is declared: operators, quality of service, the graph and its pictures. No Spark here.

In come the calls of a user, or what `spec/` reads from a file. Out goes a `Graph`: frozen, checked, plain data, which
every other room reads and none changes.
"""

from jettison.network.arc import arc_head, arc_name
from jettison.network.declare import Network, Stream
from jettison.network.graph import Graph
from jettison.network.nodes.placement import Node, Placement
from jettison.network.operators import (
    Aggregate,
    Apply,
    CountAggregate,
    Join,
    Map,
    Operator,
    Output,
    Select,
    Source,
    StreamJoin,
    Union,
    Where,
    WithColumns,
    kind_of,
)
from jettison.network.qos import QoS
from jettison.network.value import Value
from jettison.network.windows.count_windows import CountSpec
from jettison.network.windows.time_windows import WindowSpec

__all__ = [
    "Aggregate",
    "Apply",
    "CountAggregate",
    "CountSpec",
    "Graph",
    "Join",
    "Map",
    "Network",
    "Node",
    "Operator",
    "Output",
    "Placement",
    "QoS",
    "Select",
    "Source",
    "Stream",
    "StreamJoin",
    "Union",
    "Value",
    "Where",
    "WindowSpec",
    "WithColumns",
    "arc_head",
    "arc_name",
    "kind_of",
]
