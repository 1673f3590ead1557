"""Drops as Spark filters. Whether a row stays depends on its identity and the arc alone: read again, it fares alike.

A random drop keeps a row when `hash(identity, seed of the arc) < keep share`. Spark compiles a filter anew when a
number in it changes. So the share stands in an array, which compiled code gets as an object, and the index is no
constant. A drop by key hashes the key's columns, as text, so that an int and a long of the same value fare alike.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

from jettison.network.schema import quoted
from jettison.plan.plan import ByKey, Drop

IDENTITY = "_jt_id"
TIME = "_jt_time"
HIDDEN = (IDENTITY, TIME)
KEY = "_jt_key"
RECORD = ("_jt_topic", "_jt_partition", "_jt_offset")
"""What identifies a record of Kafka, in the columns of a stream that is read from there."""

_BITS = 20


def arc_seed(arc: str) -> int:
    """A number that is the same for an arc in every run and on every machine."""
    return int.from_bytes(hashlib.blake2b(arc.encode(), digest_size=4).digest(), "big")


def keeps(arc: str, drop: Drop, column: Callable[[str], str] = quoted) -> str:
    """The condition, in SQL, under which a row passes the drop on an arc; `column` is the SQL of a column there.

    >>> from jettison.plan.plan import Random
    >>> keeps("trips", Random(0.25))
    'shiftrightunsigned(xxhash64(_jt_id, 4148347162L), 44) < array(262144)[int(_jt_id & 0)]'
    >>> from jettison.plan.plan import ByKey
    >>> keeps("trips", ByKey(("zone",), 0.25, "trips"))
    'shiftrightunsigned(xxhash64(string(`zone`), 4148347162L), 44) < array(262144)[int(_jt_id & 0)]'
    """
    threshold = round(drop.keep * 2**_BITS)
    if threshold == 0:
        return "false"
    share = f"array({threshold})[int({IDENTITY} & 0)]"
    if isinstance(drop, ByKey):
        judged, seed = ", ".join(f"string({column(name)})" for name in drop.columns), arc_seed(drop.seed)
    else:
        judged, seed = IDENTITY, arc_seed(arc)
    return f"shiftrightunsigned(xxhash64({judged}, {seed}L), {64 - _BITS}) < {share}"


def identity_of(columns: Sequence[str]) -> str:
    """The hidden identity, in SQL: a hash of these columns.

    >>> identity_of(["trip", "zone"])
    'xxhash64(`trip`, `zone`) AS _jt_id'
    """
    return f"xxhash64({', '.join(map(quoted, columns))}) AS {IDENTITY}"
