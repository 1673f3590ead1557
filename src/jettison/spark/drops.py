"""Drops as Spark filters. Whether a row stays depends on its identity and the arc alone: read again, it is judged alike.

A random drop keeps a row when `hash(identity, seed of the arc) < keep share`. Levels are few (see plan.ladder), because
Spark compiles a filter anew when a constant in it changes.
"""

from __future__ import annotations

import hashlib

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from jettison.plan.plan import Drop

IDENTITY = "_jt_id"
TIME = "_jt_time"
HIDDEN = (IDENTITY, TIME)

_BITS = 20


def arc_seed(arc: str) -> int:
    """A number that is the same for an arc in every run and on every machine."""
    return int.from_bytes(hashlib.blake2b(arc.encode(), digest_size=4).digest(), "big")


def keeps(arc: str, drop: Drop) -> Column:
    """The condition under which a row passes the drop on an arc."""
    bucket = F.shiftrightunsigned(F.xxhash64(F.col(IDENTITY), F.lit(arc_seed(arc))), 64 - _BITS)
    return bucket < F.lit(round(drop.keep * 2**_BITS))


def with_identity(frame: DataFrame, columns: tuple[str, ...]) -> DataFrame:
    """Add the hidden identity: a hash of the named columns, or of all where none is named."""
    chosen = [frame[column] for column in (columns or tuple(c for c in frame.columns if c not in HIDDEN))]
    return frame.withColumn(IDENTITY, F.xxhash64(*chosen))
