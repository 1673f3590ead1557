"""What test_killed_las kills: `python -m tests.spark.maps.las_driver FOLDER ORDER BATCH`.

It runs a map under `las` until all is read. FOLDER/kept gets the trips that each attempt at a batch has kept. When
batch BATCH has been kept, and is not committed, the whole process group gets SIGKILL; -1 lets it live.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from tests.spark.maps.test_map import by_zone, network, trips
from tests.spark.running import ended

import jettison as jt
from jettison.spark.run.session import local_session

BATCHES, PER_BATCH = 7, 1200


def main(folder: Path, order: str, killed: int) -> None:
    kept = folder / "kept"
    kept.mkdir(parents=True, exist_ok=True)
    done = len(list(kept.glob("*.0.json")))

    def keep(frame: Any, batch: int) -> None:
        ids = sorted(row["trip"] for row in frame.select("trip").collect())
        attempt = len(list(kept.glob(f"{batch}.*.json")))
        (kept / f"{batch}.{attempt}.json").write_text(json.dumps(ids))
        if batch == killed:
            os.killpg(0, signal.SIGKILL)

    spark = local_session("las-killed", cores=2)
    files = folder / "trips"
    stream = trips(spark, files, BATCHES, PER_BATCH) if not files.exists() else trips(spark, files, 0, 0)
    learning = jt.CostLearning(window=300, tolerance=2.0, epsilon=0.05)
    las = jt.Las(order=order, check="each", learning=learning)
    run = jt.start(
        network(by_zone, schema="half double"), {"trips": stream},
        {"rides": keep}, trigger="500 milliseconds", checkpoint=str(folder / "checkpoint"),
        shedding=jt.Shedding(shedder=las), costs=jt.Costs(jt.Profile({"score": 1500.0}, {})),
    )  # fmt: skip
    if killed < 0:
        ended(run, PER_BATCH * (BATCHES - done + 1))  # the last one that was kept is repeated
    else:
        run.await_termination(timeout=400.0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
