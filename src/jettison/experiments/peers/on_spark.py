"""The three outputs on native Structured Streaming: a query for each, side by side, in the session of Jettison."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jettison.experiments.peers.engines import LiveRun, read_all, round_folders, watched_stream
from jettison.experiments.peers.inputs import Input
from jettison.experiments.peers.on_jettison import ESTIMATED
from jettison.experiments.speed.native import AGGREGATES, SCENARIOS, Windows
from jettison.experiments.support.trip_files import SCHEMA, TripFiles
from jettison.network.windows.time_windows import END, START
from jettison.spark.read.kafka import read_stream

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_STATE = "org.apache.spark.sql.execution.streaming.state"
STORES = {
    "state in memory": f"{_STATE}.HDFSBackedStateStoreProvider",
    "state in RocksDB": f"{_STATE}.RocksDBStateStoreProvider",
}


class OnSpark:
    """Every query reads the source for itself: native streaming has no way to share it."""

    name = "spark"

    def __init__(self, spark: Any, *, try_stores: bool) -> None:
        self._spark = spark
        self._stores = list(STORES) if try_stores else list(STORES)[:1]
        self.setting = self._for_files = self._stores[0]

    def rounds(self, given: Input, folder: Path, count: int) -> list[float]:
        """Each store is tried in a round that does not count; the better one has the others."""
        found = {}
        for store in self._stores:
            self.setting = store
            found[store] = self._round(given, folder / store.replace(" ", "-"))
        self.setting = max(found, key=lambda store: found[store])
        if isinstance(given, TripFiles):
            self._for_files = self.setting
        return [self._round(given, place) for place in round_folders(folder, count)]

    def _round(self, given: Input, folder: Path) -> float:
        def rows() -> Any:
            if isinstance(given, TripFiles):
                return given.stream(self._spark)
            parsed = f"from_json(string(_jt_value), '{SCHEMA}') AS trip"
            return read_stream(self._spark, given.kafka).selectExpr(parsed).select("trip.*")

        with self._queries(rows, folder, AGGREGATES, None) as queries:
            return read_all(queries, given, _Live(queries).check)

    @contextmanager
    def live(self, watched: Path, out: Path, trigger_ms: float) -> Iterator[LiveRun]:
        self.setting, trigger = self._for_files, f"{trigger_ms:.0f} milliseconds"
        with self._queries(lambda: watched_stream(self._spark, watched), out, ESTIMATED, trigger) as queries:
            yield _Live(queries)

    @contextmanager
    def _queries(
        self, rows: Callable[[], Any], folder: Path, aggregates: Mapping[str, str], trigger: str | None
    ) -> Iterator[list[Any]]:
        queries: list[Any] = []
        before = self._spark.conf.get(_PROVIDER)
        self._spark.conf.set(_PROVIDER, STORES[self.setting])
        try:
            for name, what in SCENARIOS["three_outputs"].items():
                frame = rows().where(what) if isinstance(what, str) else _windows(rows(), what, aggregates)
                writer = frame.writeStream.format("parquet").option("path", str(folder / name)).outputMode("append")
                writer = writer.option("checkpointLocation", str(folder / f"checkpoint-{name}"))
                queries.append((writer if trigger is None else writer.trigger(processingTime=trigger)).start())
            yield queries
        finally:
            self._spark.conf.set(_PROVIDER, before)
            for query in queries:
                query.stop()


def _windows(rows: Any, what: Windows, aggregates: Mapping[str, str]) -> Any:
    rows.withWatermark("pickup", "0 seconds").createOrReplaceTempView("peer_trips")
    made = ", ".join(f"{sql} AS {name}" for name, sql in aggregates.items())
    return rows.sparkSession.sql(
        f"SELECT zone, window.start AS {START}, window.end AS {END}, {made} FROM peer_trips "
        f"GROUP BY window(pickup, '{what.size}', '{what.slide}'), zone"
    )


@dataclass(frozen=True)
class _Live:
    queries: list[Any]

    def check(self) -> None:
        for query in self.queries:
            if not query.isActive:
                raise RuntimeError(f"a native query has ended: {query.exception()}")

    def takes_next(self, last: str) -> bool:
        return True

    def kept_shares(self, since_s: float, until_s: float) -> Mapping[str, float]:
        return {}
