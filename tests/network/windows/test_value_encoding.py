"""Values that a checkpoint keeps: read back as they were, and never run."""

from __future__ import annotations

import datetime as dt
import math
import os
import pickle
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from jettison.network.windows.value_encoding import decode, encode

pytestmark = pytest.mark.core

ZONES = st.none() | st.just(dt.UTC) | st.just(ZoneInfo("Europe/Zurich")) | st.just(dt.timezone(dt.timedelta(hours=-3)))
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None))
    | st.binary()
    | st.datetimes(timezones=ZONES)
    | st.dates()
    | st.times()
    | st.timedeltas()
    | st.decimals()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.lists(inner, max_size=4).map(deque)
        | st.dictionaries(SCALARS.filter(hashable := lambda x: not _is_snan(x)), inner, max_size=4)
        | st.sets(SCALARS.filter(hashable), max_size=4)
        | st.frozensets(SCALARS.filter(hashable), max_size=4)
    ),
    max_leaves=12,
)


def _is_snan(value: Any) -> bool:
    return isinstance(value, Decimal) and value.is_snan()


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal, with their types; nan is nan."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list | tuple | deque):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return same(list(one.items()), list(other.items()))
    if isinstance(one, set | frozenset):
        return same(sorted(one, key=repr), sorted(other, key=repr))
    if isinstance(one, float):
        return repr(one) == repr(other)
    if isinstance(one, Decimal):
        return str(one) == str(other)
    if isinstance(one, dt.datetime):
        return one.replace(tzinfo=None) == other.replace(tzinfo=None) and str(one.tzinfo) == str(other.tzinfo)
    return bool(one == other)


@given(VALUES)
@example({"a": (float("inf"), float("nan"), -0.0)})
def test_trust_17_values_come_back_as_they_were(value: Any) -> None:
    assert same(decode(encode(value)), value)


@pytest.mark.parametrize(
    "value",
    [
        10**400,
        -(2**63) - 1,
        -0.0,
        math.nan,
        -math.inf,
        "\ud800 lone",
        bytearray(b"\x00\xff"),
        (1, [2, {3: (4,), None: {5}}]),
        {True: 1, "1": 2, (1, 2): 3, 2.5: 4},
        Counter({"a": 2, "b": -1}),
        OrderedDict([("z", 1), ("a", 2)]),
        deque([1, 2], maxlen=2),
        dt.datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Zurich")),
        dt.time(1, 2, 3, tzinfo=dt.UTC),
        Decimal("1.10"),
        Decimal("sNaN"),
    ],
)
def test_trust_17_types_are_kept(value: Any) -> None:
    found = decode(encode(value))
    assert same(found, value)
    if isinstance(value, deque):
        assert found.maxlen == value.maxlen
    if isinstance(value, dt.datetime):
        assert found.fold == 1


@pytest.mark.parametrize(
    "value",
    [
        np.float64(1.5),
        np.int32(-7),
        np.datetime64("2026-01-01T00:00:01.000001"),
        np.bool_(True),
        np.arange(6.0).reshape(2, 3)[:, ::2],
        np.array([], dtype="int8"),
        np.array(3 + 4j),
    ],
)
def test_trust_17_numbers_of_numpy_are_kept(value: Any) -> None:
    found = decode(encode([value]))[0]
    assert type(found) is type(value)
    assert (found.dtype, found.shape) == (value.dtype, value.shape)
    assert np.array_equal(found, value)


def test_trust_17_a_whole_number_may_have_any_size() -> None:
    assert decode(encode(10**5000)) == 10**5000


class Mine:
    pass


@pytest.mark.parametrize(
    ("value", "named"),
    [
        (Mine(), r"test_value_encoding\.Mine, which cannot be kept"),
        ({"a": [1, defaultdict(int)]}, r"collections\.defaultdict \(at \['a'\]\[1\]\)"),
        (namedtuple("Pair", "x y")(1, 2), "Pair"),
        (len, "builtin_function_or_method"),
        (np.array([Mine()]), "numpy"),
        (1 + 2j, "complex"),
    ],
)
def test_trust_17_what_cannot_be_kept_is_named_with_the_remedy(value: Any, named: str) -> None:
    with pytest.raises(TypeError, match=named) as caught:
        encode(value)
    assert "encoding='pickle'" in str(caught.value)


class Bomb:
    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.mkdir, (self.path,)


def test_trust_17_a_pickle_is_not_read(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb"
    with pytest.raises(ValueError, match="written by pickle, which is not read"):
        decode(pickle.dumps(Bomb(str(bomb))))
    with pytest.raises(ValueError, match="is not what was written"):
        decode(b"")
    with pytest.raises((KeyError, ValueError)):
        decode(b'J1{"p":"os.mkdir"}')
    with pytest.raises(ValueError, match="not one of numbers"):
        decode(b'J1{"a":["|O",[1],"AAAAAAAAAAA="]}')
    assert not bomb.exists()
