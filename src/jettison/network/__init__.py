"""WHAT is declared: operators, quality of service, the graph, its YAML and its pictures. No Spark here."""

from jettison.network.arc import arc_head, arc_name
from jettison.network.declare import Network, Stream
from jettison.network.graph import Graph
from jettison.network.operators import (
    Aggregate,
    Apply,
    CountAggregate,
    Join,
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
    "Network",
    "Operator",
    "Output",
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
