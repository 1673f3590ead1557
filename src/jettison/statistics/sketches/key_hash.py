"""A 64-bit hash of a key: the same number from Arrow columns, from NumPy arrays and as a Spark SQL expression.

It is Spark's `xxhash64` of the key's columns as they are, each by its own type. Text would not do instead: Java and
Python write a double differently. A null leaves the hash as it is, so a key of several columns also hashes
which of them are null: otherwise ('a', null) and (null, 'a') would be one key. -0.0 is 0.0, and all NaN are one NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from jettison.errors import NetworkError
from jettison.network.columns.xxhash64 import SPARK_SEED, Hashes, Seeds, hash_of_bytes, hash_of_ints, hash_of_longs

if TYPE_CHECKING:
    import pyarrow

KeyColumn = Any
"""An Arrow array (or chunked array), or a NumPy array of numbers; NumPy has no nulls."""

_LONG_DIGITS = 18
"""Decimals of no more digits are hashed as one bigint."""
_BLOCK = 32_768
"""So many keys at once: what is computed on the way stays in the processor's cache."""
_KINDS = "boolean, a number, a decimal, a date, a timestamp, a string or binary"


def key_hash_sql(columns: Sequence[str]) -> str:
    """The hash of a key as a SQL expression, of columns in SQL. It is a bigint, and never null.

    >>> key_hash_sql(["`entity`"])
    'xxhash64(`entity`)'
    >>> key_hash_sql(["a", "b"])
    'xxhash64(a, b, a IS NULL, b IS NULL)'
    """
    missing = [f"{column} IS NULL" for column in columns] if len(columns) > 1 else []
    return f"xxhash64({', '.join([*columns, *missing])})"


def key_hash(columns: Sequence[KeyColumn]) -> Hashes:
    """The hashes of keys, one for each row of these columns; `key_hash_sql` gives the same, as signed numbers.

    >>> key_hash([np.array([7, 8])]).astype(np.int64)
    array([-2864211556195259663, -8523786849548846197])
    >>> import pyarrow as pa
    >>> key_hash([pa.array(["a", None]), pa.array([0.5, -0.0])]).astype(np.int64)
    array([-1553084770502848242,  7707839879362509078])
    """
    if not columns:
        raise NetworkError("key hash: name at least one key column.")
    whole = [column if isinstance(column, np.ndarray) else _one_array(column) for column in columns]
    found = np.empty(len(whole[0]), np.uint64)
    for first in range(0, len(found), _BLOCK):
        block = slice(first, first + _BLOCK)
        found[block] = _hash_block([column[block] for column in whole])
    return found


def _hash_block(columns: Sequence[KeyColumn]) -> Hashes:
    hashes = np.full(len(columns[0]), SPARK_SEED, np.uint64)
    missing: list[NDArray[np.bool_] | None] = []
    for column in columns:
        if isinstance(column, np.ndarray):
            hashes, nulls = _hash_numbers(column, hashes), None
        else:
            hashes, nulls = _hash_arrow(column, hashes)
        missing.append(nulls)
    if len(columns) > 1:
        for nulls in missing:
            flags = np.zeros(len(hashes), np.int32) if nulls is None else nulls.astype(np.int32)
            hashes = hash_of_ints(flags, hashes)
    return hashes


def _hash_numbers(values: NDArray[Any], seed: Seeds) -> Hashes:
    """Numbers of NumPy, by the type that Spark has for them."""
    kind = values.dtype
    if kind == np.float64 or kind == np.float32:
        # adding 0 turns -0.0 into 0.0; NaN is written as the one that Java writes
        plain = np.where(np.isnan(values), kind.type(np.nan), values + kind.type(0.0))
        doubles = kind == np.float64
        return hash_of_longs(plain.view(np.int64), seed) if doubles else hash_of_ints(plain.view(np.int32), seed)
    if kind == np.int64:
        return hash_of_longs(values, seed)
    if kind == np.bool_ or (kind.kind == "i" and kind.itemsize < 8):
        return hash_of_ints(values.astype(np.int32), seed)
    raise NetworkError(f"key hash: a column of NumPy's {kind} has no type in Spark: give an Arrow array, or numbers.")


def _one_array(column: Any) -> pyarrow.Array:
    """An Arrow column as one array of its values."""
    import pyarrow as pa

    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # combining no chunks gives none
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _hash_arrow(array: pyarrow.Array, seed: Hashes) -> tuple[Hashes, NDArray[np.bool_] | None]:
    """Hashes of an Arrow array's values, and which of them are null; those leave the seed as it is."""
    import pyarrow as pa

    nulls = None if array.null_count == 0 else array.is_null().to_numpy(zero_copy_only=False)
    if pa.types.is_null(array.type):
        return seed, nulls
    hashes = _hash_values(array, seed)
    return (hashes, None) if nulls is None else (np.where(nulls, seed, hashes), nulls)


def _hash_values(array: pyarrow.Array, seed: Hashes) -> Hashes:
    """Hashes of values by their type; what it gives for nulls means nothing."""
    import pyarrow as pa

    kind = array.type
    if kind in (pa.string(), pa.binary(), pa.large_string(), pa.large_binary()):
        return _hash_pieces(array, seed)
    if kind in (pa.string_view(), pa.binary_view()):
        return _hash_pieces(array.cast(pa.large_string() if kind == pa.string_view() else pa.large_binary()), seed)
    if pa.types.is_decimal128(kind):
        return _hash_decimals(array, kind.precision, seed)
    if pa.types.is_timestamp(kind):
        return hash_of_longs(_numbers(array.cast(pa.timestamp("us", kind.tz)).view(pa.int64())), seed)
    if pa.types.is_date32(kind):
        return hash_of_ints(_numbers(array.view(pa.int32())), seed)
    if pa.types.is_boolean(kind):
        return hash_of_ints(_numbers(array.cast(pa.int32())), seed)
    if pa.types.is_signed_integer(kind) or pa.types.is_float32(kind) or pa.types.is_float64(kind):
        return _hash_numbers(_numbers(array), seed)
    raise NetworkError(f"key hash: a column of type {kind} cannot be a key: use {_KINDS}.")


def _numbers(array: pyarrow.Array) -> NDArray[Any]:
    found: NDArray[Any] = (array.fill_null(0) if array.null_count else array).to_numpy(zero_copy_only=False)
    return found


def _hash_pieces(array: pyarrow.Array, seed: Hashes) -> Hashes:
    """Texts and bytes, from the buffers that Arrow keeps them in."""
    import pyarrow as pa

    wide = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    _, places, content = array.buffers()
    if places is None or len(array) == 0:
        return np.empty(0, np.uint64)
    found = np.frombuffer(places, np.int64 if wide else np.int32)[array.offset : array.offset + len(array) + 1]
    ends = found.astype(np.int64)
    first = int(ends[0])
    data = np.frombuffer(content, np.uint8)[first : int(ends[-1])] if content is not None else np.empty(0, np.uint8)
    return hash_of_bytes(data, ends[:-1] - first, np.diff(ends), seed)


def _hash_decimals(array: pyarrow.Array, digits: int, seed: Hashes) -> Hashes:
    """Decimals: the unscaled number as a bigint; where it may not fit, its least bytes, from first to last."""
    content = np.frombuffer(array.buffers()[1], np.uint8).reshape(-1, 16)[array.offset : array.offset + len(array)]
    if digits <= _LONG_DIGITS:
        return hash_of_longs(np.ascontiguousarray(content[:, :8]).view(np.int64)[:, 0], seed)
    ordered = content[:, ::-1]
    sign = np.where(ordered[:, :1] >= 0x80, np.uint8(0xFF), np.uint8(0))
    # a leading byte is left out while it repeats the sign, and the next one has the sign's bit
    spare = (ordered[:, :-1] == sign) & ((ordered[:, 1:] >= 0x80) == (sign >= 0x80))
    skipped = np.logical_and.accumulate(spare, axis=1).sum(axis=1)
    starts = 16 * np.arange(len(ordered), dtype=np.int64) + skipped
    return hash_of_bytes(np.ascontiguousarray(ordered).reshape(-1), starts, 16 - skipped, seed)
