"""A driver of its own for test_count_kills: `python -m tests.spark.count_driver FOLDER`, to be killed at any point.

It counts trips in windows until all are read, on the checkpoint in FOLDER, and says when it begins to write a batch.
"""

from __future__ import annotations

import sys
from typing import Any

from tests.spark import running

import jettison as jt
from jettison.spark.write.sinks import ParquetSink

BATCHES = 14
PER_BATCH = 300
SIZE, SLIDE = 12, 8


def network() -> jt.Network:
    net = jt.Network("taxi")
    trips = net.source("trips", **running.TRIPS)
    calls = {"n": "count(*)", "sum": "sum(trip)", "first": "first(trip)", "last": "last(trip)"}
    trips.window(f"{SIZE} rows", slide=f"{SLIDE} rows", by="zone").agg(calls, name="per_zone").output("zones")
    trips.window(f"{SIZE} rows", slide=f"{SLIDE} rows").agg(calls, name="all").output("everywhere")
    return net


class Announcing(ParquetSink):
    """Says on standard output when it begins to write."""

    def write(self, rows: Any, batch: int) -> None:
        print(f"writing {batch}", flush=True)
        super().write(rows, batch)


def main(folder: str) -> None:
    spark = jt.local_session("count-driver")
    run = jt.start(
        network(),
        {"trips": running.trips(spark, BATCHES * PER_BATCH, PER_BATCH)},
        {name: Announcing(f"{folder}/{name}") for name in ("zones", "everywhere")},
        trigger="10 milliseconds",
        checkpoint=f"{folder}/checkpoint",
        costs=running.FREE,
    )
    last = BATCHES - 1
    running.until(run, lambda: run.query.lastProgress is not None and run.query.lastProgress["batchId"] >= last)
    run.stop()
    print("finished", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
