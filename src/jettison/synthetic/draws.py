"""Random draws without state: the draw for row i is a hash of (key, i), so any range of rows can be drawn again.

The hash is the finaliser of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014)
over a Weyl sequence: z = key + i * 0x9E3779B97F4A7C15, then two rounds of xor-shift and multiply.
"""

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Rows = NDArray[np.int64]
Draws = NDArray[np.uint64]
Shares = NDArray[np.float64]

_WEYL = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_BINS = 1 << 14


def key_of(seed: int, *names: str) -> int:
    """The key of a column: 64 bits that differ for every seed and name.

    >>> key_of(7, "fare") == key_of(7, "fare"), key_of(7, "fare") == key_of(8, "fare")
    (True, False)
    """
    text = "\x1f".join([str(seed), *names])
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def draw64(rows: Rows, key: int) -> Draws:
    """64 random bits for each row.

    >>> draw64(np.array([0, 1]), key=0)
    array([                   0, 16294208416658607535], dtype=uint64)
    """
    z: Draws = rows.astype(np.uint64)
    z *= _WEYL
    z += np.uint64(key)
    shifted = z >> np.uint64(30)
    z ^= shifted
    z *= _MIX_1
    np.right_shift(z, np.uint64(27), out=shifted)
    z ^= shifted
    z *= _MIX_2
    np.right_shift(z, np.uint64(31), out=shifted)
    z ^= shifted
    return z


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
    array([1, 1, 2, 2, 1, 1])
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
