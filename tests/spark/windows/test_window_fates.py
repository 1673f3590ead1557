"""Workers judge a window in SQL, the driver in Python: they must never disagree."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from jettison.network.columns.xxhash64 import hash_of_longs, hash_of_text
from jettison.plan.drops.window import Fate
from jettison.plan.windows.fates import BITS, Schedule, Segment, extend, keep
from jettison.spark.compile.drops import is_kept

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Every length up to two blocks of 32 bytes and beyond: each takes another way through the hash. Then other alphabets.
TEXTS = ["Zürich Höngg 8049, linke Straßenseite, Nähe Brücke; 東京 🚕"[:length] for length in range(56)] + [
    "a" * length for length in range(100)
]
LONGS = [0, 1, -1, 7, 2**31, -(2**31) - 1, 2**51 + 12345, -(2**62), 2**63 - 1, -(2**63)]


def test_the_hash_is_sparks(spark: SparkSession) -> None:
    pairs = [(text, LONGS[number % len(LONGS)]) for number, text in enumerate(TEXTS)]

    rows = spark.createDataFrame(pairs, "text string, number long").selectExpr(
        "text", "number", "xxhash64(text) AS of_text", "xxhash64('delays', text, number) AS of_all"
    )

    for row in rows.collect():
        assert np.array([hash_of_text(row.text)], np.uint64).view(np.int64)[0] == row.of_text, row.text
        seed = hash_of_text(row.text, hash_of_text("delays"))
        assert hash_of_longs(np.array([row.number]), seed).view(np.int64)[0] == row.of_all, row


def test_a_window_has_the_fate_in_sql_that_it_has_in_python(spark: SparkSession) -> None:
    segment = Segment(start=-7, drop_share=0.55, gap=4, seed="delays", into=3)
    windows = spark.range(-7, 400).selectExpr("id AS index", "concat('zone ', id % 3) AS zone")
    head = f"index - pmod(index - {segment.start}L + {segment.into}L, {segment.gap + 1}L)"
    drawn = f"shiftrightunsigned(xxhash64('{segment.seed}', zone, {head}), {64 - BITS})"

    judged = windows.selectExpr("index", "zone", f"index = {head} OR {drawn} >= {segment.limit} AS kept").collect()

    schedule = Schedule((segment,))
    assert {row.kept for row in judged} == {True, False}
    assert [row.kept for row in judged] == [keep(schedule, row["index"], row.zone) for row in judged]


@pytest.mark.parametrize("together", [0, 1, 4])
def test_trust_9_what_judges_results_in_sql_is_the_fate(spark: SparkSession, together: int) -> None:
    """Also from the beginning of all time on, where numbers are large, and where a segment goes on with a block."""
    schedule = extend(Schedule(), None, drop_share=0.55, gap=4, seed="delays", together=together)
    schedule = extend(schedule, 61, drop_share=0.3, gap=4, seed="delays", together=together)
    schedule = extend(schedule, 133, drop_share=1.0, gap=4, seed="delays", together=together)
    schedule = extend(schedule, 151, drop_share=0.8, gap=4, seed="delays", together=together)
    fate = Fate(10, schedule, 0.8)
    starts = spark.range(-50, 400).selectExpr("id AS index", "id * 10L AS at")
    judged = starts.selectExpr("index", f"{is_kept(fate, 'at', None)} AS kept").collect()
    assert [row.kept for row in judged] == [keep(schedule, row["index"]) for row in judged]
