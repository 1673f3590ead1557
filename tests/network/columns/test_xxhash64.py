"""The vectorised hashes are the ones of one value, of any length and with any seed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.errors import NetworkError
from jettison.network.columns.xxhash64 import SPARK_SEED, hash_of_text
from jettison.statistics.sketches.key_hash import key_hash

pytestmark = pytest.mark.core


@given(st.lists(st.text(max_size=120)))
def test_texts_are_hashed_alike_one_by_one_and_together(texts: list[str]) -> None:
    assert key_hash([pa.array(texts, pa.string())]).tolist() == [hash_of_text(text) for text in texts]


def test_a_slice_of_an_array_hashes_its_own_values() -> None:
    texts = pa.array(["a", "bb", None, "c" * 70, "dd"])
    assert key_hash([texts[2:4]]).tolist() == key_hash([texts])[2:4].tolist()
    chunked = pa.chunked_array([texts[:1], texts[1:]])
    assert key_hash([chunked]).tolist() == key_hash([texts]).tolist()


def test_a_null_leaves_the_hash_as_it_is_and_zeros_and_nans_are_one() -> None:
    assert key_hash([pa.array([None, "a"])])[0] == SPARK_SEED
    zero, negative, nan, other = key_hash([np.array([0.0, -0.0, np.nan, -np.nan])]).tolist()
    assert zero == negative
    assert nan == other != zero


def test_keys_of_several_columns_differ_where_nulls_stand_elsewhere() -> None:
    first, second = pa.array(["a", None]), pa.array([None, "a"])
    both = key_hash([first, second])
    assert both[0] != both[1]


def test_large_decimals_are_hashed_by_the_least_bytes_that_hold_them() -> None:
    from decimal import Decimal

    numbers = [0, 1, -1, 127, 128, -128, -129, 255, 256, 10**37, -(10**37)]
    column = pa.array([Decimal(number) for number in numbers], pa.decimal128(38, 0))
    # as Java's BigInteger.toByteArray has it
    content = [number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True) for number in numbers]
    assert key_hash([column]).tolist() == key_hash([pa.array(content, pa.binary())]).tolist()


def test_a_type_that_cannot_be_a_key_is_named() -> None:
    with pytest.raises(NetworkError, match="list<item: int64> cannot be a key"):
        key_hash([pa.array([[1]])])
    with pytest.raises(NetworkError, match="at least one"):
        key_hash([])
