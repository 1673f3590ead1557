"""The parts of `peers` that need no engine: files at a rate, results compared, worth judged, ratios claimed."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from jettison.experiments.peers.feed import Arrivals, Phase, feed
from jettison.experiments.peers.flink.sql import VARIANTS, from_files, from_topic, settings
from jettison.experiments.peers.found import Found
from jettison.experiments.peers.in_time import PhaseResult, completeness, deliveries, judge
from jettison.experiments.peers.on_jettison import three_outputs
from jettison.experiments.peers.overload import Length, Overloaded
from jettison.experiments.peers.results import delivered_files, equal_results
from jettison.experiments.support.trip_files import FIRST_US, ZONES, TripFiles

pytestmark = pytest.mark.core


def times(micros: list[int], unit: str = "us") -> pa.Array:
    return pa.array([each * (1000 if unit == "ns" else 1) for each in micros], pa.timestamp(unit))


def windows(starts_s: list[int], size_s: int, sum_: int = 100, unit: str = "us") -> pa.Table:
    starts = [FIRST_US + 1_000_000 * each for each in starts_s]
    count = len(starts)
    return pa.table(
        {
            "zone": pa.array([3] * count, pa.int32()),
            "window_start": times(starts, unit),
            "window_end": times([each + 1_000_000 * size_s for each in starts], unit),
            "n": pa.array([2] * count, pa.int64()),
            "cents": pa.array([sum_] * count, pa.int64()),
            "mean": pa.array([50.0] * count),
            "most": pa.array([60] * count, pa.int64()),
        }
    )


def alerts(trips: list[int]) -> pa.Table:
    return pa.table(
        {
            "trip": pa.array(trips, pa.int64()),
            "pickup": times([FIRST_US + each for each in trips]),
            "zone": pa.array([3] * len(trips), pa.int32()),
            "cents": pa.array([25_000] * len(trips), pa.int64()),
        }
    )


def as_jettison(folder: Path, table: pa.Table) -> None:
    (folder / "batch=0").mkdir(parents=True)
    pq.write_table(table, folder / "batch=0" / "part-00000.parquet")
    (folder / "batch=0" / "_SUCCESS").touch()


def as_flink(folder: Path, table: pa.Table) -> None:
    folder.mkdir(parents=True)
    pq.write_table(table.slice(0, 1), folder / "part-1-0")
    pq.write_table(table.slice(1), folder / "part-0-0", use_deprecated_int96_timestamps=True)
    (folder / ".part-2.inprogress").write_text("half a file")


def as_spark(folder: Path, table: pa.Table) -> None:
    (folder / "_spark_metadata").mkdir(parents=True)
    pq.write_table(table, folder / "part-a.parquet")
    pq.write_table(table, folder / "part-of-a-task-that-failed.parquet")
    line = json.dumps({"path": f"file://{folder}/part-a.parquet", "size": 1})
    (folder / "_spark_metadata" / "0").write_text(f"v1\n{line}")
    os.utime(folder / "_spark_metadata" / "0", (1000.0, 1000.0))


def written(folder: Path, *, wrong: str | None = None) -> dict[str, Path]:
    """The same results as three engines write them, the last ones in another order and with one window more."""
    for engine, write in (("jettison", as_jettison), ("flink", as_flink), ("spark", as_spark)):
        order = [1, 2, 3] if engine == "jettison" else [3, 1, 2]
        write(folder / engine / "alerts", alerts([4, *order] if wrong == "alerts" and engine == "flink" else order))
        starts = [0, 10, 20] if engine == "flink" else [0, 10]
        sum_ = 101 if wrong == "tens" and engine == "flink" else 100
        write(folder / engine / "tens", windows(starts, 10, sum_, "ns" if engine == "spark" else "us"))
        write(folder / engine / "minutes", windows([-5, 0], 60))
    return {engine: folder / engine for engine in ("jettison", "flink", "spark")}


def test_results_are_compared_whatever_the_files_are_like(tmp_path: Path) -> None:
    assert equal_results(written(tmp_path)) == 3 + 2 + 2


@pytest.mark.parametrize("wrong", ["alerts", "tens"])
def test_a_result_that_differs_is_found(tmp_path: Path, wrong: str) -> None:
    assert equal_results(written(tmp_path, wrong=wrong)) == 0


def test_files_count_from_when_a_reader_sees_them(tmp_path: Path) -> None:
    folders = written(tmp_path)
    assert delivered_files(folders["spark"] / "alerts") == {folders["spark"] / "alerts" / "part-a.parquet": 1000.0}
    now = time.time()
    for engine in ("jettison", "flink"):
        found = delivered_files(folders[engine] / "alerts")
        assert found
        assert all(now - 60 < since < now + 1 for since in found.values())
    assert delivered_files(tmp_path / "nothing") == {}


def test_a_compacted_manifest_does_not_make_files_younger(tmp_path: Path) -> None:
    as_spark(tmp_path, alerts([1]))
    first = json.dumps({"path": f"file://{tmp_path}/part-a.parquet"})
    second = json.dumps({"path": f"file://{tmp_path}/part-b.parquet"})
    (tmp_path / "_spark_metadata" / "9.compact").write_text(f"v1\n{first}\n{second}")
    os.utime(tmp_path / "_spark_metadata" / "9.compact", (2000.0, 2000.0))
    (tmp_path / "_spark_metadata" / ".9.compact.crc").touch()
    assert list(delivered_files(tmp_path).values()) == [1000.0, 2000.0]


class Taking:
    """Takes every file at once, or (`slow`) one in a tenth of a second."""

    def __init__(self, watched: Path, *, slow: bool = False) -> None:
        self._watched, self._slow, self._since = watched, slow, time.time()

    def check(self) -> None: ...

    def takes_next(self, last: str) -> bool:
        assert (self._watched / last).exists(), "files come in their order"
        if not self._slow or time.time() >= self._since + 0.1:
            self._since = time.time()
            return True
        return False


@pytest.fixture
def pool(tmp_path: Path) -> TripFiles:
    trips = TripFiles(tmp_path / "pool", 200, 4, 2.0)
    trips.folder.mkdir()
    for number in range(8):
        (trips.folder / f"part-{number:05d}.parquet").touch()
    (tmp_path / "watched").mkdir()
    return trips


PHASES = [Phase("slow", 1000.0, 0.2), Phase("fast", 4000.0, 0.05)]


def test_files_come_at_the_rate_of_their_phase(tmp_path: Path, pool: TripFiles) -> None:
    watched = tmp_path / "watched"
    asked: list[int] = []

    def ready() -> bool:
        asked.append(len(list(watched.iterdir())))
        return len(asked) > 1

    arrivals = feed(pool, watched, PHASES, ready, Taking(watched), 0.1)
    assert asked == [1, 1], "one file comes before anything is timed"
    assert len(list(watched.iterdir())) == 1 + 2 + 2
    assert np.diff(arrivals.seconds) == pytest.approx([0.1, 0.1, 0.025, 0.025], abs=1e-5)
    assert arrivals.phases["fast"] == (FIRST_US + 3_000_000, FIRST_US + 5_000_000), "a file is a second of event time"
    assert time.time() >= arrivals.seconds[-1] + 0.1, "the engine has time for the last one"


def test_files_wait_for_an_engine_that_takes_them_one_by_one(tmp_path: Path, pool: TripFiles) -> None:
    watched = tmp_path / "watched"
    arrivals = feed(pool, watched, PHASES, lambda: True, Taking(watched, slow=True), 0.01)
    assert len(arrivals.seconds) == 5, "they arrive all the same"
    assert 1 < len(list(watched.iterdir())) < 5


def judged(tmp_path: Path, deadline_s: float, kept: dict[str, float]) -> PhaseResult:
    """A second of 100,000 trips a second, event time ten times as fast; all is delivered two seconds after its end."""
    pickups = [FIRST_US + 1 + int(each) for each in np.linspace(0, 9_999_990, round(100_000 * 10_299 / 30_000))]
    for output in ("alerts", "tens"):
        (tmp_path / output).mkdir()
    ends = times([FIRST_US + 10_000_000] * ZONES)
    pq.write_table(pa.table({"window_end": ends}), tmp_path / "tens" / "part-0")
    pq.write_table(pa.table({"pickup": times(pickups)}), tmp_path / "alerts" / "part-0")
    now = (tmp_path / "alerts" / "part-0").stat().st_ctime
    trips = TripFiles(tmp_path / "unused", 10_000, 20, 1.0)
    arrivals = Arrivals([FIRST_US, FIRST_US + 10_000_000], [now - 3, now - 2], {"all": (FIRST_US, FIRST_US + 1e7)})
    found = deliveries(tmp_path, arrivals)
    return judge(three_outputs(live=True).graph, trips, found, arrivals, "all", kept, deadline_s)


def test_worth_counts_what_came_in_time(tmp_path: Path) -> None:
    went = judged(tmp_path, 2.5, {"tens": 0.5})
    assert went.rows_per_s == pytest.approx(100_000)
    assert went.shares["alerts"] == pytest.approx(0.5, abs=0.001), "the later half is younger than the deadline"
    assert went.shares["tens"] == 0.5, "all windows, from half of their rows"
    assert went.shares["minutes"] == 0.0, "none came"
    assert went.worth_per_s == pytest.approx(100_000 * (went.shares["alerts"] + 0.5))
    assert went.worth_by_rows_per_s == pytest.approx(100_000 * (0.3433 * went.shares["alerts"] + 0.5))
    assert went.worth_share == pytest.approx(1 / 3, abs=0.001), "half of two of three outputs"
    assert went.worth_by_rows_share == pytest.approx((0.3433 * 0.5 + 0.5) / 2.3433, abs=0.001)
    assert (went.p50_s, went.p99_s) == pytest.approx((2.5, 2.99), abs=0.02)


def test_what_comes_late_is_worth_nothing(tmp_path: Path) -> None:
    went = judged(tmp_path, 1.0, {})
    assert went.worth_per_s == 0.0
    assert went.worth_share == 0.0
    assert went.worth_by_rows_per_s == went.worth_by_rows_share == 0.0


def test_windows_that_lost_trips_are_seen(tmp_path: Path) -> None:
    (tmp_path / "tens").mkdir()
    pq.write_table(windows([-10, 0, 10], 10), tmp_path / "tens" / "part-0")  # two trips in each
    assert completeness(tmp_path, TripFiles(tmp_path, 2, 1, 10.0)) == 1.0
    assert completeness(tmp_path, TripFiles(tmp_path, 4, 1, 10.0)) == 0.5


def phase(worth: float) -> PhaseResult:
    """By rows worth half as much."""
    return PhaseResult(1000.0, {"alerts": 1.0, "tens": 1.0, "minutes": 1.0}, worth, 1.0, 0.5 * worth, 1.0, 1.0, 2.0)


def found(*engines: str, same: int = 10) -> Found:
    """Jettison twice as fast as the others, and with ten times their worth in an overload."""
    result = Found(with_flink=True, compared={"parquet": same, "kafka": 10})
    for engine in ("jettison", *engines):
        for kind in result.compared:
            result.rates[engine, kind] = [200.0 if engine == "jettison" else 100.0]
            result.settings[engine, kind] = "as it is"
        table: list[dict[str, Any]] = [{"engine": engine, "second": 1.0, "output": "alerts", "p99_age_s": 1.0}]
        worth = phase(100.0), phase(80.0 if engine == "jettison" else 1.0)
        result.overloads[engine] = Overloaded(*worth, 1.0, table)
    return result


def test_the_worst_input_counts_and_worth_has_a_floor() -> None:
    result = found("spark", "flink")
    result.rates["jettison", "kafka"] = [150.0]
    by_rows = {"worth_vs_spark_by_rows": 16.0, "worth_vs_flink_by_rows": 16.0}
    claimed = {"vs_spark": 1.5, "vs_flink": 1.5, "worth_vs_spark": 16.0, "worth_vs_flink": 16.0}
    assert result.keys() == claimed | by_rows


def test_times_do_not_count_where_results_differ() -> None:
    result = found("spark", "flink", same=0).result(Length(1000.0, 1.0, 1.0, 1.0))
    assert result.metrics["vs_spark"] == 0.0
    assert not result.checks["parquet: all engines have the same results"]


def test_an_engine_that_is_missing_fails_its_checks_and_has_no_number() -> None:
    result = found("spark")
    result.without("flink", "pip cannot install it")
    made = result.result(Length(1000.0, 1.0, 1.0, 1.0))
    assert not {"vs_flink", "worth_vs_flink", "worth_vs_flink_by_rows"} & set(made.metrics)
    failed = [claim for claim, held in made.checks.items() if "flink" in claim and not held]
    assert len(failed) == 2
    assert all("not measured: pip cannot install it" in claim for claim in failed)


def test_flink_shares_its_source_and_is_tried_in_all_ways(tmp_path: Path) -> None:
    job = from_files(tmp_path, tmp_path / "out")
    assert len(job.inserts) == 3
    assert len([table for table in job.tables if "CREATE TABLE trips" in table]) == 1
    live = from_files(tmp_path, tmp_path / "out", live=True)
    assert "source.monitor-interval" in live.tables[0]
    assert "MAX(cents)" not in " ".join(live.inserts)
    assert "partition:0,offset:5" in from_topic("127.0.0.1:1", "t", {"0": 5}, tmp_path).tables[0]
    for variant in VARIANTS:
        assert settings(variant)["pipeline.object-reuse"] == "true"
        assert settings(variant)["parallelism.default"] == "2"
