"""What a run is made of, and how it was asked to run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession

from jettison.control.catch_up import SHED
from jettison.control.loop import Settings
from jettison.network.graph import Graph
from jettison.spark.batch.runner import BatchRunner
from jettison.spark.checkpoint.checkpoint import Checkpoint
from jettison.spark.read.reading import Reader
from jettison.statistics.profile import Profile
from jettison.telemetry.metrics import Metrics


@dataclass(frozen=True)
class RunParts:
    """What a run works with: who sizes batches, who runs them, and where it is written down."""

    spark: SparkSession
    graph: Graph
    settings: Settings
    checkpoint: Checkpoint
    reader: Reader
    runner: BatchRunner
    tables: Mapping[str, DataFrame]


@dataclass(frozen=True)
class RunOptions:
    """What was asked for: costs and `shared` operators as given, where the run is shown, `notes` on its state (more
    come while it runs), what becomes of a backlog, whether plans are only made (`dry_run`), and whether the run ends
    with the data that is there (`available_now`)."""

    profile: Profile | None = None
    shared: Iterable[str] | None = None
    metrics: Metrics | None = None
    live: bool = False
    notes: list[str] = field(default_factory=list)
    catch_up: str = SHED
    dry_run: bool = False
    available_now: bool = False
