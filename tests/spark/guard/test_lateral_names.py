"""A bad row, and a name that is given earlier in the same select."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from tests.spark.windowing import Hand, S, source

import jettison as jt


def test_trust_12_a_bad_row_behind_a_name_of_the_same_select_is_rejected_alone(
    spark: SparkSession, tmp_path: Path
) -> None:
    net = jt.Network("lateral")
    source(net).select("trip", "int(kind) AS a", "a + 1 AS b", name="numbers").output("out")
    hand = Hand(spark, tmp_path, net)
    for batch, bad in enumerate((None, 3, None)):
        rows = [(n, n * S, 1, "zz" if n == bad else "7", 1.0) for n in range(20)]
        measured = hand.run(batch, rows)
        assert measured.unfit == ({} if bad is None else {"numbers": 1})
        assert measured.outputs["out"].rows == (20 if bad is None else 19)
    assert {row[1:] for row in hand.rows("out")} == {(7, 8)}
    hand.close()
