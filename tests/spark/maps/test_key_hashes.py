"""A million keys of every type that a key may have: the same hash in Python workers, on the driver and in Spark SQL."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from jettison.spark.maps.mapped_rows import KEY_TYPES
from jettison.statistics.sketches.key_hash import key_hash, key_hash_sql

pytestmark = [pytest.mark.spark, pytest.mark.long]

ROWS = 1_000_000
NULL = "IF(id % 101 = 0, NULL, {})"
WILD = "xxhash64(id)"
COLUMNS = {
    "boolean": "id % 2 = 0",
    "tinyint": f"CAST(pmod({WILD}, 256) - 128 AS tinyint)",
    "smallint": f"CAST(pmod({WILD}, 65536) - 32768 AS smallint)",
    "int": f"CAST(pmod({WILD}, 4294967296) - 2147483648 AS int)",
    "bigint": WILD,
    "float": f"CASE id % 997 WHEN 1 THEN float('nan') WHEN 2 THEN float('-0.0') WHEN 3 THEN float('-infinity') "
    f"ELSE float({WILD} / 1e12) END",
    "double": f"CASE id % 997 WHEN 1 THEN double('nan') WHEN 2 THEN -0.0D WHEN 3 THEN double('infinity') "
    f"ELSE {WILD} / 1e9 END",
    "decimal(18,4)": f"CAST(pmod({WILD}, 1000000000000000000) - 500000000000000000 AS decimal(18,0)) / 10000",
    "decimal(38,10)": f"CAST({WILD} AS decimal(38,10)) * CAST(pmod({WILD}, 100000) - 50000 AS decimal(6,0))",
    "date": f"date_add(DATE'1970-01-01', int(pmod({WILD}, 200000) - 100000))",
    "timestamp": f"timestamp_micros(pmod({WILD}, 8000000000000000) - 4000000000000000)",
    "timestamp_ntz": f"CAST(timestamp_micros(pmod({WILD}, 8000000000000000)) AS timestamp_ntz)",
    "string": f"substr(concat(hex({WILD}), 'ünïcödé ', id, repeat('x', int(pmod({WILD}, 60)))), 1, int(id % 90))",
    "binary": f"unhex(substr(concat(hex({WILD}), hex(id), hex({WILD} * 0 + id * 7)), 1, int(2 * (id % 20))))",
}
"""By type, an expression of id."""
PARTS = 4
"""So many parts are brought to the driver, one after the other."""


def test_a_million_keys_of_every_type_are_hashed_alike_in_three_places(spark: SparkSession) -> None:
    names = [f"c{number}" for number in range(len(COLUMNS))]
    keys = [[name] for name in names] + [["c12", "c4"], ["c6", "c8", "c0"]]
    made = [f"CAST({NULL.format(text)} AS {kind}) AS c{n}" for n, (kind, text) in enumerate(COLUMNS.items())]
    hashes = [f"{key_hash_sql(key)} AS h{number}" for number, key in enumerate(keys)]

    def in_workers(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """How many keys there are, and how many of each kind have another hash here than in SQL."""
        for batch in batches:
            other = [_differing(batch, key, number) for number, key in enumerate(keys)]
            yield pa.RecordBatch.from_pydict({"rows": [batch.num_rows], "other": [other]})

    seen, wrong, distinct = 0, np.zeros((2, len(keys)), np.int64), np.zeros(len(keys), np.int64)
    for part in range(PARTS):
        ids = spark.range(part * ROWS // PARTS, (part + 1) * ROWS // PARTS, numPartitions=2)
        frame = ids.selectExpr(*made).selectExpr("*", *hashes).persist()
        told = frame.mapInArrow(in_workers, "rows bigint, other array<bigint>").collect()
        table = frame.toArrow()
        frame.unpersist()
        seen += sum(row["rows"] for row in told)
        wrong[0] += np.sum([row["other"] for row in told], axis=0)
        wrong[1] += [_differing(table, key, number) for number, key in enumerate(keys)]
        distinct = np.maximum(distinct, [len(np.unique(table[f"h{number}"].to_numpy())) for number in range(len(keys))])
    assert seen == ROWS
    assert wrong.tolist() == np.zeros_like(wrong).tolist()
    assert distinct[4] > 0.98 * ROWS / PARTS
    kinds = {type(field.dataType) for field in frame.schema.fields[: len(names)]}
    assert all(any(issubclass(kind, key) for kind in kinds) for key in KEY_TYPES), "a type of keys is missing"


def _differing(rows: pa.RecordBatch | pa.Table, key: list[str], number: int) -> int:
    mine = key_hash([rows[name] for name in key]).view(np.int64)
    return int((mine != rows[f"h{number}"].to_numpy()).sum())
