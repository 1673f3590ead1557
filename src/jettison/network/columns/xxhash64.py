"""Spark SQL's `xxhash64`, computed with NumPy: the same number in a query, in a Python worker and on the driver.

What a drop decides, all sides must decide alike. XXH64 mixes well, which a CRC does not: the CRCs of two texts of one
length differ by the same bits whatever follows them, so that two groups would lose the same windows, or never the same.
Spark hashes several values in a row, each with the hash so far as its seed, from 42 on; a text by its UTF-8 bytes, a
bigint by its eight, least first, an int by its four.

Arrays of unsigned numbers overflow in silence, as is meant here; single numbers of NumPy would warn. So every function
works on arrays of one dimension.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]
Seeds = int | Hashes
"""One seed for all values, or one for each."""

SPARK_SEED = 42

_MASK = 2**64 - 1
_P1, _P2, _P3, _P4, _P5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_N1, _N2, _N3, _N4, _N5 = (np.uint64(number) for number in (_P1, _P2, _P3, _P4, _P5))
_STRIPE = 32


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
            lanes = [_round_one(lane, word) for lane, word in zip(lanes, words, strict=True)]
            at += 32
        mixed = sum(_turned_one(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            mixed = ((mixed ^ _round_one(0, lane)) * _P1 + _P4) & _MASK
    else:
        mixed = (seed + _P5) & _MASK
    mixed = (mixed + size) & _MASK
    for word_at in range(at, size - 7, 8):
        word = int.from_bytes(data[word_at : word_at + 8], "little")
        mixed = (_turned_one(mixed ^ _round_one(0, word), 27) * _P1 + _P4) & _MASK
    at = size - size % 8
    if size % 8 >= 4:
        word = int.from_bytes(data[at : at + 4], "little")
        mixed = (_turned_one(mixed ^ (word * _P1 & _MASK), 23) * _P2 + _P3) & _MASK
        at += 4
    for byte in data[at:]:
        mixed = _turned_one(mixed ^ (byte * _P5 & _MASK), 11) * _P1 & _MASK
    mixed = (mixed ^ (mixed >> 33)) * _P2 & _MASK
    mixed = (mixed ^ (mixed >> 29)) * _P3 & _MASK
    return mixed ^ (mixed >> 32)


def hash_of_longs(values: NDArray[np.int64], seed: Seeds) -> Hashes:
    """XXH64 of each of these bigints. `xxhash64('a', 7L)` of Spark, which writes it as a signed number, is

    >>> hash_of_longs(np.array([7]), seed=hash_of_text("a")).astype(np.int64)
    array([6906419324712428799])
    """
    numbers = np.atleast_1d(values).astype(np.int64, copy=False).view(np.uint64)
    mixed = _started(seed, _P5 + 8) ^ _round(numbers * _N2)
    return _avalanche(_turned(mixed, 27) * _N1 + _N4)


def hash_of_ints(values: NDArray[np.int32], seed: Seeds) -> Hashes:
    """XXH64 of each of these ints. `xxhash64(7)` of Spark is

    >>> hash_of_ints(np.array([7], np.int32), SPARK_SEED).astype(np.int64)
    array([2786828215451145335])
    """
    numbers = np.atleast_1d(values).astype(np.int32, copy=False).view(np.uint32).astype(np.uint64)
    mixed = _started(seed, _P5 + 4) ^ (numbers * _N1)
    return _avalanche(_turned(mixed, 23) * _N2 + _N3)


def hash_of_bytes(data: NDArray[np.uint8], starts: NDArray[np.int64], sizes: NDArray[np.int64], seed: Seeds) -> Hashes:
    """XXH64 of each of these pieces of `data`, which begin at `starts` and are so many bytes long."""
    # Words are read at any byte. Seven bytes more, which no hash uses, so that one can be read at the last byte too.
    padded = np.concatenate([data, np.zeros(8, np.uint8)])
    words: Hashes = np.ndarray((len(data) + 1,), "<u8", padded, strides=(1,))
    mixed, at = _striped(words, starts, sizes, seed)
    mixed += sizes.view(np.uint64)
    return _avalanche(_with_tails(mixed, words, at, sizes % _STRIPE))


def _with_tails(mixed: Hashes, words: Hashes, at: NDArray[np.int64], left: NDArray[np.int64]) -> Hashes:
    """Hashes with the last bytes of each piece, fewer than a stripe: pieces with as many bytes left go together."""
    order = np.argsort(left.astype(np.uint8), kind="stable")
    ends = np.cumsum(np.bincount(left, minlength=_STRIPE)).tolist()
    for length, (first, last) in enumerate(pairwise([0, *ends])):
        if length and last > first:
            some = order[first:last]
            hashed, place = mixed[some], at[some]
            for _ in range(length // 8):
                hashed, place = _mix_long(hashed, words[place]), place + 8
            if length % 8 >= 4:
                hashed, place = _mix_int(hashed, words[place]), place + 4
            for _ in range(length % 4):
                hashed, place = _mix_byte(hashed, words[place]), place + 1
            mixed[some] = hashed
    return mixed


def _striped(
    words: Hashes, starts: NDArray[np.int64], sizes: NDArray[np.int64], seed: Seeds
) -> tuple[Hashes, NDArray[np.int64]]:
    """The hash of whole stripes of 32 bytes, piece by piece, and where each piece goes on behind them."""
    mixed = np.broadcast_to(_started(seed, _P5), sizes.shape).copy()
    long = np.flatnonzero(sizes >= _STRIPE)
    if not len(long):
        return mixed, starts
    seeds = np.broadcast_to(_started(seed, 0), sizes.shape)[long]
    lanes = [seeds + np.uint64((_P1 + _P2) & _MASK), seeds + _N2, seeds.copy(), seeds - _N1]
    stripes = sizes[long] // _STRIPE
    for number in range(int(stripes.max())):
        some = np.flatnonzero(stripes > number)
        for lane, hashed in enumerate(lanes):
            word = words[starts[long[some]] + _STRIPE * number + 8 * lane]
            hashed[some] = _round(hashed[some] + word * _N2)
    together = _turned(lanes[0], 1) + _turned(lanes[1], 7) + _turned(lanes[2], 12) + _turned(lanes[3], 18)
    for hashed in lanes:
        together = (together ^ _round(hashed * _N2)) * _N1 + _N4
    mixed[long] = together
    at = starts.copy()
    at[long] += _STRIPE * stripes
    return mixed, at


def _mix_long(mixed: Hashes, word: Hashes) -> Hashes:
    return _turned(mixed ^ _round(word * _N2), 27) * _N1 + _N4


def _mix_int(mixed: Hashes, word: Hashes) -> Hashes:
    return _turned(mixed ^ ((word & np.uint64(0xFFFFFFFF)) * _N1), 23) * _N2 + _N3


def _mix_byte(mixed: Hashes, word: Hashes) -> Hashes:
    return _turned(mixed ^ ((word & np.uint64(0xFF)) * _N5), 11) * _N1


def _started(seed: Seeds, plus: int) -> Hashes:
    """The seeds, as an array, with a number added."""
    if isinstance(seed, int):
        return np.array([(seed + plus) & _MASK], np.uint64)
    return seed + np.uint64(plus & _MASK)


def _round(hashed: Hashes) -> Hashes:
    return _turned(hashed, 31) * _N1


def _avalanche(mixed: Hashes) -> Hashes:
    mixed = (mixed ^ (mixed >> np.uint64(33))) * _N2
    mixed = (mixed ^ (mixed >> np.uint64(29))) * _N3
    return mixed ^ (mixed >> np.uint64(32))


def _turned(numbers: Hashes, bits: int) -> Hashes:
    return numbers << np.uint64(bits) | numbers >> np.uint64(64 - bits)


def _round_one(lane: int, word: int) -> int:
    return _turned_one((lane + word * _P2) & _MASK, 31) * _P1 & _MASK


def _turned_one(number: int, bits: int) -> int:
    return (number << bits | number >> (64 - bits)) & _MASK
