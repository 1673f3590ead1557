"""Load shedding for Apache Spark Structured Streaming.

What needs Spark is loaded when it is first used: declaring, planning and the command line work without it.
"""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any

from jettison.errors import (
    CheckpointError,
    JettisonError,
    NetworkError,
    OperatorError,
    PlanError,
    SessionError,
    SinkError,
    SourceError,
    StartError,
    UnknownNameError,
)
from jettison.network import Graph, Network, Node, QoS, Stream, Value
from jettison.network.columns.words import meant
from jettison.network.kafka import Kafka, kafka
from jettison.network.windows.user_aggregates import aggregate, whole_window
from jettison.options.checkpoint import Checkpoint
from jettison.options.costs import Costs
from jettison.options.shedding import Shedding
from jettison.plan.shedders.fair.network_competition import Elsewhere
from jettison.plan.shedders.fair.shedder import Fair
from jettison.plan.shedders.las import Las
from jettison.plan.shedders.qod import Qod
from jettison.spec.as_yaml import to_yaml
from jettison.spec.network_file import from_yaml, read_spec
from jettison.spec.xml.as_xml import to_xml
from jettison.spec.xml.reader import from_xml
from jettison.statistics.profile import Profile
from jettison.statistics.sketches.cost_learner import CostLearning
from jettison.synthetic import presets, rates
from jettison.telemetry.events import BatchEvent
from jettison.telemetry.report import Report

if TYPE_CHECKING:
    from jettison.spark.read.generator import generate
    from jettison.spark.run.run import Run
    from jettison.spark.run.session import local_session
    from jettison.spark.run.start import start
    from jettison.spark.write.sinks import console, memory, parquet, spark_format

_ON_SPARK = {
    "Run": "run.run",
    "start": "run.start",
    "generate": "read.generator",
    "local_session": "run.session",
    "console": "write.sinks",
    "memory": "write.sinks",
    "parquet": "write.sinks",
    "spark_format": "write.sinks",
}

__all__ = [
    "BatchEvent",
    "Checkpoint",
    "CheckpointError",
    "CostLearning",
    "Costs",
    "Elsewhere",
    "Fair",
    "Graph",
    "JettisonError",
    "Kafka",
    "Las",
    "Network",
    "NetworkError",
    "Node",
    "OperatorError",
    "PlanError",
    "Profile",
    "QoS",
    "Qod",
    "Report",
    "Run",
    "SessionError",
    "Shedding",
    "SinkError",
    "SourceError",
    "StartError",
    "Stream",
    "UnknownNameError",
    "Value",
    "aggregate",
    "console",
    "from_xml",
    "from_yaml",
    "generate",
    "kafka",
    "local_session",
    "memory",
    "parquet",
    "presets",
    "rates",
    "read_spec",
    "spark_format",
    "start",
    "to_xml",
    "to_yaml",
    "whole_window",
]

logging.getLogger("jettison").addHandler(logging.NullHandler())  # who wants to see the log says so


def __getattr__(name: str) -> Any:
    if name in _ON_SPARK:
        return getattr(importlib.import_module(f"jettison.spark.{_ON_SPARK[name]}"), name)
    raise AttributeError(f"module 'jettison' has no attribute {name!r}{meant(name, __all__)}")


def __dir__() -> list[str]:
    """The public names, those that need Spark included: they are loaded when they are first used."""
    return sorted({*globals(), *__all__})
