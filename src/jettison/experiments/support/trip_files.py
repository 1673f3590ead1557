"""Taxi trips as parquet files, in the order of event time: what a batch reads is known, and the same for everybody."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SCHEMA = "trip long, pickup timestamp, zone int, cents long"
FILES_PER_BATCH = 2
FIRST_US = 10**15
ZONES = 265


@dataclass(frozen=True)
class TripFiles:
    """So many batches of so many rows, whose event times go on by `batch_s` each.

    Few zones have most of the trips. Fares are whole cents, so that sums are the same in any order.
    """

    folder: Path
    rows: int
    batches: int
    batch_s: float

    def write(self, spark: Any) -> None:
        """All files in one job. Spark reads the file first that was changed first: each says when."""
        rows = self.rows * self.batches
        step_us = 1e6 * self.batch_s / self.rows
        trips = spark.range(0, rows, 1, self.batches * FILES_PER_BATCH).selectExpr(
            "id AS trip",
            f"timestamp_micros({FIRST_US} + bigint({step_us} * id)) AS pickup",
            f"int({ZONES} * pow(pmod(xxhash64(id), 1000) / 1000, 3)) AS zone",
            "300 + pmod(xxhash64(id, 1), 30000) AS cents",
        )
        trips.write.parquet(str(self.folder))
        for number, path in enumerate(sorted(self.folder.glob("part-*.parquet"))):
            os.utime(path, (1e9 + number, 1e9 + number))

    def stream(self, spark: Any) -> Any:
        reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", FILES_PER_BATCH)
        return reader.parquet(str(self.folder))

    def frames(self, spark: Any) -> list[Any]:
        """The rows of each batch, for those who run batches by hand."""
        files = [str(path) for path in sorted(self.folder.glob("part-*.parquet"))]
        parts = [files[at : at + FILES_PER_BATCH] for at in range(0, len(files), FILES_PER_BATCH)]
        return [spark.read.schema(SCHEMA).parquet(*part) for part in parts]
