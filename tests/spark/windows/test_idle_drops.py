"""What a window drop costs when it drops nothing: where all windows stay, Spark is given the very same to do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from jettison.experiments.support.by_hand import ByHand, shapes_of
from jettison.experiments.support.trip_files import TripFiles
from jettison.experiments.windows.table_4_4 import SHAPES, network_of, plan_of
from jettison.spark.state.slice_store import SliceStore
from jettison.spark.write.batch_jobs import BatchJobs, Written

pytestmark = pytest.mark.spark

BATCHES, ROWS, SECONDS = 4, 500, 10.0


def work(frame: DataFrame, folder: Path) -> str:
    """What Spark will do, without what differs from run to run: its numbers of columns and plans, names, the folder."""
    plan = frame._jdf.queryExecution().executedPlan().toString().replace(str(folder), "")
    return re.sub(r"#\d+L?|plan_id=\d+|_common_expr_\d+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "#", plan)


def done(spark: SparkSession, shape: str, variant: str, folder: Path, trips: TripFiles) -> dict[str, list[str]]:
    """All that is computed of some batches under the plans of a variant: slices by group, results by output."""
    found: dict[str, list[str]] = {}
    network = network_of(shape)
    frames = trips.frames(spark)
    run = ByHand(spark, network, shapes_of(spark, network, frames[0]), folder)
    write_slices, write_results = SliceStore.write, BatchJobs._write

    def slices(store: SliceStore, name: str, part: str, rows: DataFrame, **how: Any) -> None:
        found.setdefault(f"slices {name}", []).append(work(rows, folder))
        write_slices(store, name, part, rows, **how)

    def results(jobs: BatchJobs, name: str, again: Any, rows: DataFrame, *others: Any) -> Written:
        found.setdefault(f"results of batch {jobs._batch}", []).append(work(rows, folder))
        return write_results(jobs, name, again, rows, *others)

    spark.conf.set("spark.sql.maxMetadataStringLength", 10_000)  # whole paths
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(SliceStore, "write", slices)
        patched.setattr(BatchJobs, "_write", results)
        try:
            for batch, frame in enumerate(frames):
                run.run(frame, trips.rows, plan_of(network, variant, batch))
        finally:
            spark.conf.unset("spark.sql.maxMetadataStringLength")
            run.close()
    return {name: sorted(each) for name, each in found.items()}  # outputs are written side by side, in any order


@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES)
def test_where_all_windows_stay_the_work_is_the_same(spark: SparkSession, tmp_path: Path, shape: str) -> None:
    """Slices of rows always; results from the second batch on that has any: which close in the first is not known."""
    trips = TripFiles(tmp_path / "trips", ROWS, BATCHES, SECONDS)
    trips.write(spark)
    none, kept, judged = (
        done(spark, shape, variant, tmp_path / variant, trips) for variant in ("none", "kept", "judged")
    )
    assert none.keys() == kept.keys()
    of_rows = "slices fives" if shape == "nested" else next(iter(none))
    assert none[of_rows] != judged[of_rows], "where every row is judged it shows"
    first = next(name for name in none if name.startswith("results"))
    others = [name for name in none if none[name] != kept[name] and name != first]
    # results of inner windows are counted on their way to the outer ones, where a drop might stand
    assert others == (["slices tens"] if shape == "nested" else [])
    assert len(none[of_rows]) == BATCHES
