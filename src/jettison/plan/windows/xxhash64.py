"""Spark SQL's `xxhash64`, computed on the driver: the same number here and in a query.

What a drop decides, both sides must decide alike: workers in SQL, the driver in Python. XXH64 mixes well, which a CRC
does not: the CRCs of two texts of one length differ by the same bits whatever follows them, so that two groups would
lose the same windows, or never the same. Spark hashes several values in a row, each with the hash so far as its seed,
from 42 on; a text by its UTF-8 bytes, a bigint by its eight, least first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SPARK_SEED = 42

_MASK = 2**64 - 1
_P1, _P2, _P3, _P4, _P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)


def hash_of_text(text: str, seed: int = SPARK_SEED) -> int:
    """XXH64 of a text's UTF-8 bytes, as a number from 0 to 2^64 - 1.

    >>> hex(hash_of_text("abc", seed=0))
    '0x44bc2cf5ad770999'
    """
    data = text.encode()
    size, at = len(data), 0
    if size >= 32:
        lanes = [(seed + _P1 + _P2) & _MASK, (seed + _P2) & _MASK, seed, (seed - _P1) & _MASK]
        while at + 32 <= size:
            words = (int.from_bytes(data[at + 8 * lane : at + 8 * lane + 8], "little") for lane in range(4))
            lanes = [_round(lane, word) for lane, word in zip(lanes, words, strict=True)]
            at += 32
        mixed = sum(_turned(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            mixed = ((mixed ^ _round(0, lane)) * _P1 + _P4) & _MASK
    else:
        mixed = (seed + _P5) & _MASK
    mixed = (mixed + size) & _MASK
    for word_at in range(at, size - 7, 8):
        word = int.from_bytes(data[word_at : word_at + 8], "little")
        mixed = (_turned(mixed ^ _round(0, word), 27) * _P1 + _P4) & _MASK
    at = size - size % 8
    if size % 8 >= 4:
        word = int.from_bytes(data[at : at + 4], "little")
        mixed = (_turned(mixed ^ (word * _P1 & _MASK), 23) * _P2 + _P3) & _MASK
        at += 4
    for byte in data[at:]:
        mixed = _turned(mixed ^ (byte * _P5 & _MASK), 11) * _P1 & _MASK
    mixed = (mixed ^ (mixed >> 33)) * _P2 & _MASK
    mixed = (mixed ^ (mixed >> 29)) * _P3 & _MASK
    return mixed ^ (mixed >> 32)


def hash_of_longs(values: NDArray[np.int64], seed: int) -> NDArray[np.uint64]:
    """XXH64 of each of these bigints. `xxhash64('a', 7L)` of Spark, which writes it as a signed number, is

    >>> hash_of_longs(np.array([7]), seed=hash_of_text("a")).astype(np.int64)
    array([6906419324712428799])
    """
    start, p1, p2, p3, p4 = (np.uint64(number) for number in ((seed + _P5 + 8) & _MASK, _P1, _P2, _P3, _P4))
    # Arrays of unsigned numbers overflow in silence, as is meant here; single numbers of NumPy would warn.
    mixed = start ^ (_all_turned(np.atleast_1d(values).astype(np.int64).view(np.uint64) * p2, 31) * p1)
    mixed = _all_turned(mixed, 27) * p1 + p4
    mixed = (mixed ^ (mixed >> np.uint64(33))) * p2
    mixed = (mixed ^ (mixed >> np.uint64(29))) * p3
    return mixed ^ (mixed >> np.uint64(32))


def _round(lane: int, word: int) -> int:
    return _turned((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _turned(number: int, bits: int) -> int:
    return (number << bits | number >> (64 - bits)) & _MASK


def _all_turned(numbers: NDArray[np.uint64], bits: int) -> NDArray[np.uint64]:
    return numbers << np.uint64(bits) | numbers >> np.uint64(64 - bits)
