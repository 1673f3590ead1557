"""Slices that the driver writes itself, where they are few, are those that Hadoop's way writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType
from tests.spark.windowing import Hand, Row, S, by_spark, frame_of, source, trips_of

import jettison as jt
from jettison.network.row_bounds import most_rows_of
from jettison.spark.state import slice_writer
from jettison.spark.state.slice_store import fits_driver

pytestmark = pytest.mark.spark

BATCHES = trips_of(5, 40, step_s=4, late_s=3)


def network() -> jt.Network:
    net = jt.Network("kinds")
    by = {
        "day": "date_sub(date(at), 200000)",
        "hour": "date_trunc('HOUR', at)",
        "local": "to_timestamp_ntz('1066-01-01 00:00:00')",
        "price": "CAST(fare AS decimal(9, 2))",
        "odd": "zone % 2 = 1",
        "small": "CAST(zone AS tinyint)",
        "rate": "IF(zone = 1, float('NaN'), float(zone) * -0.0F)",
    }
    trips = source(net).with_columns(by)
    sums = {"n": "count(*)", "sum": "sum(price)", "mean": "avg(fare)", "most": "max(hour)", "first": "min(day)"}
    names = ["day", "hour", "local", "price", "odd", "small", "rate", "kind"]
    trips.window("4 seconds", by=names, delay="4 seconds").agg(sums, name="busy").output("table")
    sets = trips.window("4 seconds", by="price", delay="4 seconds").agg(kinds="collect_set(kind)", name="sets")
    sets.output("lists")
    wide = trips.window("2 seconds", by="kind", delay="4 seconds").agg(n="count(*)", name="twos")
    wide.window("4 seconds", by="kind").agg(n="sum(n)", name="fours").output("nested")
    return net


def run(spark: SparkSession, folder: Path, *, broken: bool = False) -> tuple[dict[str, list[Row]], dict[str, set[str]]]:
    """All results, and the names of files with slices in the end, by aggregate; a new process in the middle.

    A batch that is `broken` has left half of a file, and is done again, twice: the second time its record is there.
    """
    hand = Hand(spark, folder, network())
    for batch, rows in enumerate(BATCHES):
        if broken:
            (folder / "busy" / f"{batch}-0").mkdir(parents=True)
            (folder / "busy" / f"{batch}-0" / "rows.parquet").write_bytes(b"PAR1 half of a file")
            hand.run(batch, rows)
        hand.run(batch, rows)
        hand = hand.again() if batch == 2 else hand
    found = {name: hand.rows(name) for name in hand.sinks}
    hand.close()
    names = ("busy", "sets", "fours")
    return found, {name: {path.name for path in (folder / name).rglob("*.parquet")} for name in names}


@pytest.mark.long
def test_both_ways_give_the_same(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results, files = run(spark, tmp_path / "few of%41 them")
    assert "rows.parquet" in files["busy"]
    assert "rows.parquet" not in files["sets"], "what may be long does not come to the driver"
    assert "rows.parquet" in files["fours"], "nothing bounds them, but there were few of late"
    assert repr(run(spark, tmp_path / "broken", broken=True)[0]) == repr(results)  # NaN is not equal to itself
    monkeypatch.setattr(slice_writer, "_FEW", -1)
    others, files = run(spark, tmp_path / "many")
    assert "rows.parquet" not in files["busy"]
    assert repr(others) == repr(results)
    assert all(len(rows) > 5 for rows in results.values())


@pytest.mark.parametrize("tags", ["posexplode_outer(array(1, 2)) AS (at_, tag)", "EXPLODE (array(1, 2)) AS tag"])
def test_what_makes_several_rows_of_one_is_not_as_read(tags: str) -> None:
    net = jt.Network("tags")
    trips = source(net).where("fare > 0", name="paid").select("at", "zone", "fare AS explode", name="few")
    trips.output("table")
    source_of_many = net.source("others", "at timestamp", event_time="at").select("at", tags, name="many")
    source_of_many.where("at IS NOT NULL", name="timed").output("lists")
    rows = {"trips": 10, "others": 10}
    assert most_rows_of(net.graph, "few", rows) == 10
    assert most_rows_of(net.graph, "timed", rows) is None


def test_no_more_come_than_the_driver_bears(spark: SparkSession) -> None:
    def fits(columns: str, rows: int = 10) -> bool:
        return fits_driver(StructType.fromDDL(columns), ["zone", "name"], rows)

    assert fits("zone int, name string, at timestamp, sum decimal(20, 2)", 2_500_000)
    assert not fits("zone int, name string, at timestamp, sum decimal(20, 2)", 2_500_001)
    assert not fits("zone int, name string, least string")
    assert not fits("zone int, sketch binary")
    assert not fits("zone array<int>, n long")


def test_a_checkpoint_whose_name_looks_like_a_pattern(spark: SparkSession, tmp_path: Path) -> None:
    net = jt.Network("pairs")
    trips = source(net)
    kinds = trips.where("fare >= 0").select("trip", "kind")
    pairs = trips.select("trip", "fare").join(kinds, on="trip", within="2 seconds", delay="4 seconds")
    pairs.window("4 seconds", by="kind", delay="4 seconds").agg(n="count(*)", sum="sum(fare)").output("table")
    hand = Hand(spark, tmp_path / "run [1] {a,b} *?", net)
    for batch, rows in enumerate(BATCHES[:4]):
        hand.run(batch, rows)
    found = hand.rows("table")
    hand.close()
    everything = frame_of(spark, [row for batch in BATCHES[:4] for row in batch]).where("fare >= 0")
    wanted = by_spark(everything, "4 seconds", None, ["kind"], 100 * S, n="count(*)", sum="sum(fare)")
    assert len(found) > 2
    assert set(found) <= set(wanted)
