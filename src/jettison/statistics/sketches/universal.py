"""Hash functions of a sketch: one per row, drawn from a 2-universal family, alike in NumPy and in Spark SQL.

A key's 64-bit hash gives two numbers below 2^30, `high` and `low`. Row i puts it into column

    h = (a_i * high + b_i * low + c_i) mod p,   p = 2^31 - 1        column = (h * columns) >> 31

With a, b, c drawn from 0 .. p - 1, two different pairs share a column with a probability of at most 1 / columns + 1 / p
(Carter and Wegman, 1979). No step leaves 63 bits, so that Spark in ANSI mode can do it too; a shift would need
multiplications that wrap around, which ANSI mode refuses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from jettison.errors import NetworkError
from jettison.network.columns.xxhash64 import Hashes, hash_of_longs, hash_of_text

_PRIME = 2**31 - 1
_PART_BITS = 30
_HIGH_SHIFT = 64 - _PART_BITS
_BLOCK = 16_384
"""So many keys at once stay in the processor's cache."""
_MOST_ROWS, _MOST_COLUMNS = 64, 2**20

Places = NDArray[np.int64]


@dataclass(frozen=True)
class HashFunctions:
    """`rows` functions onto `columns` places each; the same seed gives the same functions everywhere.

    >>> functions = HashFunctions(rows=2, columns=4)
    >>> keys = hash_of_longs(np.arange(6), seed=42)
    >>> [places.tolist() for places in functions.places(keys)]
    [[2, 2, 0, 0, 0, 0], [1, 0, 3, 0, 1, 0]]
    """

    rows: int
    columns: int
    seed: int = 0

    def __post_init__(self) -> None:
        for word, number, most in (("rows", self.rows, _MOST_ROWS), ("columns", self.columns, _MOST_COLUMNS)):
            if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= most:
                raise NetworkError(f"sketch has {number!r} {word}: give a whole number from 1 to {most:,}.")

    @cached_property
    def coefficients(self) -> tuple[tuple[int, int, int], ...]:
        """a, b and c of every row."""
        drawn = hash_of_longs(np.arange(3 * self.rows), hash_of_text("sketch", self.seed)) % np.uint64(_PRIME)
        a, b, c = drawn.reshape(3, self.rows).tolist()
        return tuple(zip(a, b, c, strict=True))

    def places(self, keys: Hashes) -> list[Places]:
        """The columns of keys, given by their hashes: an array for every row."""
        found = [np.empty(len(keys), np.int64) for _ in range(self.rows)]
        for block, places in self.blocks(keys):
            for row, at in enumerate(places):
                found[row][block] = at
        return found

    def blocks(self, keys: Hashes) -> Iterator[tuple[slice, list[Places]]]:
        """The same, block by block."""
        prime, shift, columns = np.uint64(_PRIME), np.uint64(31), np.uint64(self.columns)
        for first in range(0, len(keys), _BLOCK):
            block = slice(first, first + _BLOCK)
            high, low = keys[block] >> np.uint64(_HIGH_SHIFT), keys[block] & np.uint64(2**_PART_BITS - 1)
            places, spare = [], np.empty_like(high)
            for a, b, c in self.coefficients:
                sums = np.uint64(a) * high
                sums += np.multiply(low, np.uint64(b), out=spare)
                sums += np.uint64(c)
                for _ in range(2):  # 2^31 is 1, modulo 2^31 - 1: the upper bits are added to the lower ones
                    np.right_shift(sums, shift, out=spare)
                    sums &= prime
                    sums += spare
                np.minimum(sums, np.subtract(sums, prime, out=spare), out=sums)  # below the prime, it wraps around
                sums *= columns
                sums >>= shift
                places.append(sums.view(np.int64))
            yield block, places

    def places_sql(self, key: str) -> tuple[str, ...]:
        """The columns of a key as SQL expressions of type int, one for every row; `key` is its hash in SQL, a bigint.

        >>> print(HashFunctions(rows=1, columns=54).places_sql("h")[0])
        int(shiftright((1086157036L * shiftrightunsigned(h, 34) + 2109387033L * (h & 1073741823L) + 1929869753L)
        % 2147483647L * 54L, 31))
        """
        high, low = f"shiftrightunsigned({key}, {_HIGH_SHIFT})", f"({key} & {2**_PART_BITS - 1}L)"
        sums = [f"({a}L * {high} + {b}L * {low} + {c}L)" for a, b, c in self.coefficients]
        return tuple(f"int(shiftright({each} % {_PRIME}L * {self.columns}L, 31))" for each in sums)
