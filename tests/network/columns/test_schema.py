"""Schemas in Spark's words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks import steady

from jettison.errors import NetworkError
from jettison.network.columns.schema import parse_schema

pytestmark = pytest.mark.core


@pytest.mark.parametrize(
    ("ddl", "expected"),
    [
        ("a int", [("a", "int")]),
        ("a int,b string", [("a", "int"), ("b", "string")]),
        ("  a   int  ,\n  b\n string ", [("a", "int"), ("b", "string")]),
        ("a\tint", [("a", "int")]),
        ("a: int, b : string", [("a", "int"), ("b", "string")]),
        ("a:int", [("a", "int")]),
        ("a int NOT NULL", [("a", "int NOT NULL")]),
        ("m map<string, array<struct<x: int, y: decimal(10, 2)>>>, z int", [("m", None), ("z", "int")]),
        ("d decimal(10, 2), e varchar(5)", [("d", "decimal(10, 2)"), ("e", "varchar(5)")]),
        ("`a` int", [("a", "int")]),
        ("`my col` int, b int", [("my col", "int"), ("b", "int")]),
        ("`a,b` int", [("a,b", "int")]),
        ("a int COMMENT 'first, best', b int", [("a", None), ("b", "int")]),
        ("größe double", [("größe", "double")]),
        ("a TIMESTAMP_NTZ, b interval day to second, c time(6), d geometry(4326)", [(each, None) for each in "abcd"]),
        ("a struct<`x, y` int NOT NULL COMMENT 'a, b', z: array<long>>, b struct<>", [("a", None), ("b", "struct<>")]),
        ("a string COLLATE UTF8_LCASE, b variant, c void", [("a", None), ("b", "variant"), ("c", "void")]),
    ],
)
def test_names_and_types(ddl: str, expected: list[tuple[str, str | None]]) -> None:
    found = parse_schema(ddl, "source 's'")
    assert [name for name, _ in found] == [name for name, _ in expected]
    assert all(kind == wanted for (_, kind), (_, wanted) in zip(found, expected, strict=True) if wanted is not None)


@pytest.mark.parametrize("ddl", ["", " ", "a", "a int,", ",a int", "a int,,b int", "int,"])
def test_a_part_without_name_or_type_is_refused(ddl: str) -> None:
    with pytest.raises(NetworkError, match=r"source 's': schema part .*name type"):
        parse_schema(ddl, "source 's'")


@pytest.mark.parametrize("ddl", ["a int, b int, a string", "a int, A int"])
def test_a_column_that_stands_twice_is_refused(ddl: str) -> None:
    """Spark ignores case: a and A are the same column to it."""
    with pytest.raises(NetworkError, match=r"source 's': column '[aA]' stands twice"):
        parse_schema(ddl, "source 's'")


def test_every_type_of_pyspark_is_one_of_ours() -> None:
    from pyspark.sql import types

    abstract = {
        "data",
        "atomic",
        "numeric",
        "integral",
        "fractional",
        "datetime",
        "anytime",
        "spatial",
        "userdefinedtype",
    }
    kinds = [each for each in vars(types).values() if isinstance(each, type) and issubclass(each, types.DataType)]
    words = {each.typeName() for each in kinds if each is not types.StructField} - abstract
    intervals = {word for word in words if "interval" in word}  # in DDL: interval day to second, and the like
    assert len(words - intervals) > 15
    for word in words - intervals:
        assert parse_schema(f"a {word}", "source 's'") == (("a", word),)


def test_jettisons_own_prefix_is_refused() -> None:
    with pytest.raises(NetworkError, match="_jt_batch"):
        parse_schema("a int, _jt_batch long", "source 's'")


names = st.text("abcdefgh_123", min_size=1, max_size=5).filter(lambda name: not name.startswith("_jt_"))
simple = st.sampled_from(("int", "string", "timestamp", "decimal(10, 2)"))
types = st.recursive(
    simple,
    lambda inner: st.one_of(
        st.builds("array<{}>".format, inner),
        st.builds("map<string, {}>".format, inner),
        st.builds("struct<p: {}, q: {}>".format, inner, inner),
    ),
    max_leaves=6,
)


@steady(80)
@given(st.dictionaries(names, types, min_size=1, max_size=5))
def test_what_is_written_is_read_back(columns: dict[str, str]) -> None:
    ddl = ", ".join(f"{name} {kind}" for name, kind in columns.items())
    assert parse_schema(ddl, "source 's'") == tuple(columns.items())
