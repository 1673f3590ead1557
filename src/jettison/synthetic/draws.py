"""Random draws without state: the draw for row i is a hash of (key, i), so any range of rows can be drawn again.

The hash is Spark SQL's `xxhash64(key, i)` of two bigints, so that Spark can draw the same numbers without Python
(`spark.read.generated_rows`).
"""

import hashlib
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from jettison.network.columns.xxhash64 import SPARK_SEED, hash_of_longs

Rows = NDArray[np.int64]
Draws = NDArray[np.uint64]
Shares = NDArray[np.float64]

_BINS = 1 << 14


def key_of(seed: int, *names: str) -> int:
    """The key of a column: 64 bits, as a signed number, that differ for every seed and name.

    >>> key_of(7, "fare") == key_of(7, "fare"), key_of(7, "fare") == key_of(8, "fare")
    (True, False)
    """
    text = "\x1f".join([str(seed), *names])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little", signed=True)


def draw64(rows: Rows, key: int) -> Draws:
    """64 random bits for each row. As signed numbers they are `xxhash64(7L, 0L)` and `xxhash64(7L, 1L)` of Spark:

    >>> draw64(np.array([0, 1]), key=7).astype(np.int64)
    array([-4457042067931036189,  3110148328363424865])
    """
    return hash_of_longs(rows, _seed_of(key))


@lru_cache(maxsize=256)
def _seed_of(key: int) -> int:
    return int(hash_of_longs(np.array([key]), SPARK_SEED)[0])


def share_of(draws: Draws) -> Shares:
    """Uniform numbers in [0, 1), from the upper 53 bits of each draw.

    >>> share_of(np.array([0, 1 << 63], np.uint64))
    array([0. , 0.5])
    """
    shares: Shares = (draws >> np.uint64(11)).astype(np.float64)
    shares *= 2.0**-53
    return shares


def draw_share(rows: Rows, key: int) -> Shares:
    """A uniform number in [0, 1) for each row."""
    return share_of(draw64(rows, key))


def draw_below(rows: Rows, key: int, count: int) -> Rows:
    """A uniform integer in [0, count) for each row.

    >>> draw_below(np.arange(6), 1, 3)
    array([2, 2, 1, 1, 1, 2])
    """
    return (draw_share(rows, key) * count).astype(np.int64)


@dataclass(frozen=True)
class Table:
    """Which of several intervals of [0, 1) a share falls into: a binary search, made fast by a guide table.

    [0, 1) is cut into 16,384 bins. A bin inside one interval gives the answer at once; only shares in a bin with a
    border in it are searched, 2 % of them for the 265 values of `TAXI`'s zone.
    """

    ends: Shares
    first: NDArray[np.int32]
    has_border: NDArray[np.bool_]

    @classmethod
    def of_weights(cls, weights: ArrayLike) -> "Table":
        """Intervals as long as their weights.

        >>> Table.of_weights([2, 1, 1]).pick(np.array([0.0, 0.49, 0.5, 0.99]))
        array([0, 0, 1, 2], dtype=int32)
        """
        ends = np.cumsum(np.asarray(weights, np.float64))
        return cls.of_ends(ends / ends[-1])

    @classmethod
    def of_ends(cls, ends: ArrayLike) -> "Table":
        """Intervals from each end to the next; the last end is taken as 1."""
        borders = np.asarray(ends, np.float64).copy()
        borders[-1] = 1.0
        edges = np.searchsorted(borders, np.arange(_BINS + 1) / _BINS, side="right").astype(np.int32)
        return cls(borders, edges[:-1], edges[:-1] != edges[1:])

    def pick(self, shares: Shares) -> NDArray[np.int32]:
        """The index of the interval that holds each share."""
        bins = (shares * _BINS).astype(np.int32)
        picked: NDArray[np.int32] = self.first[bins]
        unsure = np.flatnonzero(self.has_border[bins])
        picked[unsure] = np.searchsorted(self.ends, shares[unsure], side="right")
        return picked
