"""The three outputs as one job of Flink SQL: tables, and a statement set whose INSERTs share the source.

Windows are table-valued functions, which Flink computes in slices too; the mean is made from the sum and the count that
are there already. Settings are those that Flink's own tuning guide names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jettison.experiments.speed.native import ALERTS, SCENARIOS, Windows

PARALLELISM = 2
_AGGREGATES = {
    "n": ("BIGINT", "COUNT(*)"),
    "cents": ("BIGINT", "SUM(cents)"),
    "mean": ("DOUBLE", "CAST(SUM(cents) AS DOUBLE) / COUNT(*)"),
    "most": ("BIGINT", "MAX(cents)"),
}
_IN_ORDER = "INTERVAL '0.001' SECOND"  # Flink's word for ascending times: a row as old as the newest is not late
_ANY_ORDER = "INTERVAL '1' DAY"  # files of a bounded job come in any order: all windows close at its end

_BASE = {
    "parallelism.default": str(PARALLELISM),
    "taskmanager.numberOfTaskSlots": str(PARALLELISM),
    "table.exec.resource.default-parallelism": str(PARALLELISM),
    "pipeline.object-reuse": "true",
    "state.backend.type": "hashmap",
    "table.local-time-zone": "UTC",
    "execution.checkpointing.interval": "1 s",
    "restart-strategy.type": "none",
}
VARIANTS: dict[str, dict[str, str]] = {
    "one phase": {"table.optimizer.agg-phase-strategy": "ONE_PHASE"},
    "two phases": {"table.optimizer.agg-phase-strategy": "TWO_PHASE"},
    "two phases, mini-batches": {
        "table.optimizer.agg-phase-strategy": "TWO_PHASE",
        "table.exec.mini-batch.enabled": "true",
        "table.exec.mini-batch.allow-latency": "500 ms",
        "table.exec.mini-batch.size": "20000",
    },
}
"""Ways to aggregate, of which the fastest is taken."""


@dataclass(frozen=True)
class Job:
    """Statements that make tables, and INSERTs that run as one job."""

    tables: list[str]
    inserts: list[str]


def settings(variant: str) -> dict[str, str]:
    return {**_BASE, **VARIANTS[variant]}


def from_files(files: Path, out: Path, *, live: bool = False) -> Job:
    """Trips from parquet files: those that are there, or (`live`) also those that come, in the order they come."""
    more = {"source.monitor-interval": "20 ms"} if live else {}
    options = {"connector": "filesystem", "path": files.as_uri(), **_PARQUET, **more}
    columns = (
        "trip BIGINT, pickup TIMESTAMP(6), `zone` INT, cents BIGINT, moment AS CAST(pickup AS TIMESTAMP(3)), "
        f"WATERMARK FOR moment AS moment - {_IN_ORDER if live else _ANY_ORDER}"
    )
    return _job(f"CREATE TABLE trips ({columns}) WITH {_options(options)}", "moment", "pickup", out, most=not live)


def from_topic(servers: str, topic: str, ends: Mapping[str, int], out: Path) -> Job:
    """Trips from the records of a topic, up to these offsets."""
    options = {
        "connector": "kafka",
        "topic": topic,
        "properties.bootstrap.servers": servers,
        "properties.max.poll.records": "10000",  # as Jettison and Spark read here
        "properties.max.partition.fetch.bytes": str(8 * 2**20),
        "scan.startup.mode": "earliest-offset",
        "scan.bounded.mode": "specific-offsets",
        "scan.bounded.specific-offsets": ";".join(f"partition:{name},offset:{end}" for name, end in ends.items()),
        "format": "json",
        "json.timestamp-format.standard": "ISO-8601",
    }
    columns = (
        f"trip BIGINT, pickup TIMESTAMP_LTZ(3), `zone` INT, cents BIGINT, WATERMARK FOR pickup AS pickup - {_IN_ORDER}"
    )
    source = f"CREATE TABLE trips ({columns}) WITH {_options(options)}"
    return _job(source, "pickup", "CAST(pickup AS TIMESTAMP(6))", out, most=True)


_PARQUET = {"format": "parquet", "parquet.utc-timezone": "true"}


def _job(source: str, moment: str, pickup: str, out: Path, *, most: bool) -> Job:
    tables, inserts = [source], []
    for name, what in SCENARIOS["three_outputs"].items():
        sink = _options({"connector": "filesystem", "path": (out / name).as_uri(), **_PARQUET})
        if isinstance(what, str):
            columns = "trip BIGINT, pickup TIMESTAMP(6), `zone` INT, cents BIGINT"
            query = f"SELECT trip, {pickup}, `zone`, cents FROM trips WHERE {ALERTS}"
        else:
            made = {key: each for key, each in _AGGREGATES.items() if most or key != "most"}
            kinds = ", ".join(f"{key} {kind}" for key, (kind, _) in made.items())
            columns = f"`zone` INT, window_start TIMESTAMP(3), window_end TIMESTAMP(3), {kinds}"
            query = (
                f"SELECT `zone`, window_start, window_end, {', '.join(sql for _, sql in made.values())} "
                f"FROM TABLE({_windows(what, moment)}) GROUP BY `zone`, window_start, window_end"
            )
        tables.append(f"CREATE TABLE `{name}` ({columns}) WITH {sink}")
        inserts.append(f"INSERT INTO `{name}` {query}")
    return Job(tables, inserts)


def _windows(what: Windows, moment: str) -> str:
    """Flink's own words for windows.

    >>> _windows(Windows("60 seconds", "5 seconds"), "pickup")
    "HOP(TABLE trips, DESCRIPTOR(pickup), INTERVAL '5' SECOND, INTERVAL '60' SECOND)"
    """
    size, slide = (f"INTERVAL '{text.split()[0]}' SECOND" for text in (what.size, what.slide))
    if what.size == what.slide:
        return f"TUMBLE(TABLE trips, DESCRIPTOR({moment}), {size})"
    return f"HOP(TABLE trips, DESCRIPTOR({moment}), {slide}, {size})"


def _options(options: Mapping[str, str]) -> str:
    return "(" + ", ".join(f"'{name}' = '{value}'" for name, value in options.items()) + ")"
