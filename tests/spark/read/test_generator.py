"""The generated source: what is streamed can be read again, survives a restart, and stops where it should."""

import json
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from jettison.errors import NetworkError
from jettison.spark.read import generator
from jettison.spark.read.generator import GeneratorStreamReader, RowRange, generate, generated
from jettison.spark.read.generator_columns import record_batches
from jettison.spark.read.generator_options import GeneratorOptions
from jettison.synthetic.fields import (
    TAXI,
    TAXI_PAYLOAD,
    Arrival,
    Choice,
    Field,
    Normal,
    Payload,
    RowNumber,
    fields_to_dict,
)
from jettison.synthetic.rates import Burst, Constant, Rate

pytestmark = pytest.mark.spark

START_US = 1_700_000_000_000_000
ALL_KINDS: dict[str, Field] = {
    **TAXI,
    "paid": Choice(("card", "cash"), weights=(3, 1)),
    "seats": Choice((2, 4)),
    "value": Payload({"fare": Normal(13, 4)}, pool=100, bad_share=0.1),
}


def read_stream(stream: DataFrame, checkpoint: Path) -> tuple[list[Row], list[int]]:
    """All rows that are there now, and the size of each batch."""
    rows: list[Row] = []
    sizes: list[int] = []

    def keep(batch: DataFrame, batch_id: int) -> None:
        collected = batch.collect()
        rows.extend(collected)
        sizes.append(len(collected))

    writer = stream.writeStream.option("checkpointLocation", str(checkpoint)).foreachBatch(keep)
    writer.trigger(availableNow=True).start().awaitTermination(400)
    return rows, sizes


@pytest.mark.long
def test_a_stream_can_be_read_again(spark: SparkSession, tmp_path: Path) -> None:
    rate = Burst(1000, 4000, at_s=1, length_s=1, end_s=3)
    stream = generate(spark, ALL_KINDS, rate=rate, seed=7, rows_per_batch=2500, start_us=START_US)
    rows, sizes = read_stream(stream, tmp_path / "checkpoint")
    again = generated(spark, ALL_KINDS, 0, 6000, rate=rate, seed=7, partitions=3, start_us=START_US)
    assert sizes == [2500, 2500, 1000]
    assert sorted(rows) == sorted(again.collect())


def test_a_part_can_be_read_alone(spark: SparkSession) -> None:
    whole = generated(spark, ALL_KINDS, 0, 1000, start_us=START_US).where("trip between 300 and 399")
    part = generated(spark, ALL_KINDS, 300, 400, start_us=START_US)
    assert sorted(part.collect()) == sorted(whole.collect())
    assert generated(spark, ALL_KINDS, 5, 5, start_us=START_US).count() == 0


def test_a_restart_goes_on_where_it_was_with_the_same_epoch(spark: SparkSession, tmp_path: Path) -> None:
    fields = {"trip": RowNumber(), "pickup": Arrival()}
    before = datetime.now()  # what Spark collects is local time, too
    first, _ = read_stream(generate(spark, fields, rows_per_batch=800, limit_rows=1000), tmp_path)
    second, sizes = read_stream(generate(spark, fields, rows_per_batch=800, limit_rows=2500), tmp_path)
    assert [row.trip for row in sorted(first)] == list(range(1000))
    assert [row.trip for row in sorted(second)] == list(range(1000, 2500))
    assert sizes == [800, 700]
    epochs = {row.pickup - timedelta(microseconds=row.trip) for row in first + second}
    offset = json.loads((tmp_path / "offsets" / "3").read_text().splitlines()[-1])
    epoch = datetime.fromtimestamp(offset["start_us"] / 1e6)
    assert offset["rows"] == 2500
    assert epochs == {epoch}
    assert before <= epoch <= before + timedelta(seconds=60)


def test_a_running_query_stops_reading_at_the_limit(spark: SparkSession, tmp_path: Path) -> None:
    stream = generate(spark, TAXI, rows_per_batch=700, limit_rows=1000)
    query = stream.writeStream.format("memory").queryName("limited").option("checkpointLocation", str(tmp_path)).start()
    try:
        query.processAllAvailable()
        query.processAllAvailable()
        assert spark.table("limited").selectExpr("count(*)", "max(trip)").first() == (1000, 999)
    finally:
        query.stop()


def test_bad_payloads_do_not_parse(spark: SparkSession) -> None:
    rows = generated(spark, ALL_KINDS, 0, 5000, start_us=START_US)
    parsed = rows.selectExpr("avg(int(from_json(value, 'fare double').fare is null)) as bad").first()
    assert parsed is not None
    assert parsed.bad == pytest.approx(0.1, abs=0.03)


def test_the_schema_names_spark_types(spark: SparkSession) -> None:
    kinds = generated(spark, ALL_KINDS, 0, 1, start_us=START_US).dtypes
    assert dict(kinds) == {
        "trip": "bigint",
        "pickup": "timestamp",
        "zone": "int",
        "fare": "double",
        "paid": "string",
        "seats": "bigint",
        "value": "string",
    }


def test_mistakes_are_told_where_they_are_made(spark: SparkSession) -> None:
    with pytest.raises(NetworkError, match="option partitions is '0', give an integer of at least 1"):
        generate(spark, TAXI, partitions=0)
    with pytest.raises(NetworkError, match="option rows_per_batch is '-5'"):
        generate(spark, TAXI, rows_per_batch=-5)
    with pytest.raises(NetworkError, match=r"fields are \{\}, give a mapping"):
        generate(spark, {})
    with pytest.raises(NetworkError, match="from_row is 5 and to_row 4"):
        generated(spark, TAXI, 5, 4, start_us=0)
    with pytest.raises(NetworkError, match="row 100 never arrives at Constant"):
        generated(spark, TAXI, 0, 101, start_us=0, rate=Constant(100, end_s=1))


# --- the reader alone, with the clock in hand -----------------------------------------------------------------------


def options_of(fields: dict[str, Field], rate: Rate | None = None, **others: int) -> GeneratorOptions:
    options = {"fields": json.dumps(fields_to_dict(fields))} | {name: str(value) for name, value in others.items()}
    return GeneratorOptions.of(options | ({} if rate is None else {"rate": json.dumps(rate.to_dict())}))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    now_us = [START_US]
    monkeypatch.setattr(generator, "_now_us", lambda: now_us[0])
    return now_us


def test_an_open_loop_follows_the_clock(clock: list[int]) -> None:
    reader = GeneratorStreamReader(options_of(TAXI, Constant(100), limit_rows=1000))
    start = reader.initialOffset()
    assert start == {"rows": 0, "start_us": START_US}
    clock[0] += 2_000_000
    assert reader.initialOffset() == start
    assert reader.latestOffset(start, ReadMaxRows(50)) == {"rows": 50, "start_us": START_US}
    assert reader.latestOffset(start, ReadAllAvailable()) == {"rows": 200, "start_us": START_US}
    assert reader.reportLatestOffset() == {"rows": 200, "start_us": START_US}
    clock[0] += 60_000_000
    assert reader.latestOffset({"rows": 990, "start_us": START_US}, ReadMaxRows(50))["rows"] == 1000


def test_a_clock_that_goes_back_takes_no_rows_back(clock: list[int]) -> None:
    reader = GeneratorStreamReader(options_of(TAXI, Constant(100)))
    offset = {"rows": 500, "start_us": START_US}
    assert reader.latestOffset(offset, ReadAllAvailable()) == offset


def test_a_closed_loop_ignores_the_clock(clock: list[int]) -> None:
    reader = GeneratorStreamReader(options_of(TAXI, rows_per_batch=300))
    assert reader.getDefaultReadLimit() == ReadMaxRows(300)
    offset = reader.initialOffset()
    for rows in (300, 600, 900):
        offset = reader.latestOffset(offset, ReadMaxRows(300))
        assert offset == {"rows": rows, "start_us": START_US}
    assert reader.reportLatestOffset() is None


def test_available_now_ends(clock: list[int]) -> None:
    for rate, expected in ((Constant(100), 500), (None, 300)):
        reader = GeneratorStreamReader(options_of(TAXI, rate, rows_per_batch=300))
        clock[0] = START_US + 5_000_000
        reader.prepareForTriggerAvailableNow()
        offset = {"rows": 0, "start_us": START_US}
        for _ in range(5):
            clock[0] += 1_000_000
            offset = reader.latestOffset(offset, ReadMaxRows(300))
        assert offset["rows"] == expected


@pytest.mark.parametrize("rows", [0, 1, 2, 3, 1000, 1001])
def test_partitions_cover_the_range_once(rows: int) -> None:
    reader = GeneratorStreamReader(options_of(TAXI, partitions=3))
    # Spark asks anew for the initial offset when it repeats a first batch: the epoch that was logged counts.
    ranges = reader.partitions({"rows": 10, "start_us": 999}, {"rows": 10 + rows, "start_us": START_US})
    assert len(ranges) == min(rows, 3)
    covered: list[int] = []
    for each in ranges:
        assert isinstance(each, RowRange)
        assert each.start_us == START_US
        covered.extend(range(each.from_row, each.to_row))
    assert covered == list(range(10, 10 + rows))


def test_arrow_batches_do_not_depend_on_where_a_read_begins() -> None:
    options = options_of(ALL_KINDS, Burst(1000, 9000, at_s=2, length_s=3))
    whole = pa.Table.from_batches(record_batches(options, 0, 20_000, START_US))
    tail = pa.Table.from_batches(record_batches(options, 12_345, 20_000, START_US))
    assert tail.equals(whole.slice(12_345))


def test_another_seed_gives_other_rows() -> None:
    seeds = [
        pa.Table.from_batches(record_batches(options_of(ALL_KINDS, seed=seed), 0, 100, START_US)) for seed in (1, 2)
    ]
    same = [name for name in ALL_KINDS if seeds[0][name].equals(seeds[1][name])]
    assert same == ["trip", "pickup"]


def test_rows_carry_the_time_at_which_they_arrive() -> None:
    fields: dict[str, Field] = {"pickup": Arrival(), "unsure": Arrival(null_share=0.25)}
    table = pa.Table.from_batches(record_batches(options_of(fields, Constant(1000)), 0, 10_000, START_US))
    assert table["pickup"].cast(pa.int64()).to_pylist() == [START_US + 1000 * row for row in range(10_000)]
    assert table["unsure"].null_count / 10_000 == pytest.approx(0.25, abs=0.02)


def test_the_payload_preset_is_json() -> None:
    table = pa.Table.from_batches(record_batches(options_of(TAXI_PAYLOAD), 0, 100, START_US))
    parsed = [json.loads(text) for text in table["value"].to_pylist()]
    assert all(1 <= trip["passengers"] <= 6 and 0 <= trip["zone"] < 265 for trip in parsed)
