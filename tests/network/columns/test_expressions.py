"""SQL read without Spark: the columns that it uses, the name that it gives, and no false alarms."""

from __future__ import annotations

import logging

import pytest

from jettison.errors import NetworkError
from jettison.network.columns.expressions import all_used_columns, check_columns, result_name, used_columns

pytestmark = pytest.mark.core


@pytest.mark.parametrize(
    ("expression", "columns"),
    [
        ("fare", "fare"),
        ("fare > 2 * tip AND NOT paid", "fare tip paid"),
        ("TRUE", ""),
        ("1 + 1", ""),
        ("a <=> b OR a % 2 = 0 OR a div c > 1", "a b c"),
        ("a BETWEEN b AND c", "a b c"),
        ("a IN (1, b)", "a b"),
        ("a LIKE 'b%' AND c RLIKE d AND e IS NOT NULL", "a c d e"),
        # text is no column, in either kind of quotes
        ("zone = 'Queens' AND borough = \"Manhattan\"", "zone borough"),
        ("a = 'it''s b'", "a"),
        # nested fields, maps, arrays
        ("zone.borough.name = 'x'", "zone"),
        ("tags['k'] > limits[i].low", "tags limits i"),
        ("arr[0].b.c", "arr"),
        # quoted names
        ("`my col` + `x.y`", "my col|x.y"),
        ("`my col`.field", "my col"),
        # functions and casts
        ("coalesce(a, b, round(c, 2))", "a b c"),
        ("cast(a AS decimal(10, 2)) + b::int + try_cast(c AS struct<p: int>).p", "a b c"),
        ("if(a > 1, b, c)", "a b c"),
        ("from_json(value, 'a int, b string')", "value"),
        ("struct(a AS p, b AS q).p", "a b"),
        ("window(ts, '10 seconds').start", "ts"),
        ("substring(a FROM 2 FOR 3) || trim(BOTH 'x' FROM b) || replace(c, 'x', 'y')", "a b c"),
        ("count(*)", ""),
        # time
        ("pickup + INTERVAL 2 HOURS > current_timestamp()", "pickup"),
        ("pickup > current_timestamp - INTERVAL '1' DAY", "pickup"),
        ("ts < timestamp '2020-01-01 00:00:00' AND d > date '2020-01-01'", "ts d"),
        ("extract(hour FROM ts) + datediff(day, a, b)", "ts a b"),
        ("timestampdiff(MINUTE, a, b) > 5", "a b"),
        ("date_trunc('hour', ts)", "ts"),
        # CASE
        ("CASE WHEN a > 1 THEN b ELSE c END", "a b c"),
        ("CASE a WHEN 1 THEN b WHEN d THEN 'e' END", "a b d"),
        # lambdas bind their arguments
        ("exists(tags, t -> t = wanted)", "tags wanted"),
        ("transform(trips, t -> t.fare + tip)", "trips tip"),
        ("aggregate(arr, 0, (acc, x) -> acc + x * rate)", "arr rate"),
        ("transform(rows, r -> filter(r, v -> v > low))", "rows low"),
        ("map_filter(m, (k, v) -> v > tip)", "m tip"),
        # stars
        ("*", ""),
        # comments
        ("a -- b\n + c /* d */", "a c"),
    ],
)
def test_used_columns(expression: str, columns: str) -> None:
    expected = columns.split("|") if "|" in columns or "my col" in columns else columns.split()
    assert used_columns(expression) == set(expected)


def test_a_lambda_binds_only_inside_itself() -> None:
    assert used_columns("x > 0 AND exists(tags, x -> x > 1)") == {"x", "tags"}


def test_lambda_arguments_ignore_case_as_spark_does() -> None:
    assert used_columns("filter(tags, T -> t > 1)") == {"tags"}


@pytest.mark.parametrize(
    "name",
    [
        "date",
        "timestamp",
        "time",
        "user",
        "end",
        "order",
        "key",
        "value",
        "type",
        "offset",
        "partition",
        "day",
        "zone",
        "comment",
        "load",
        "set",
        "show",
        "use",
        "cache",
        "values",
        "describe",
        "update",
        "copy",
        "drop",
        "grant",
    ],
)
def test_columns_named_like_words_of_sql(name: str) -> None:
    """Spark takes all of these as column names (its default is not ANSI-reserved)."""
    assert used_columns(name) == {name}
    assert result_name(name) == name
    assert used_columns(f"{name} > 5") == {name}
    assert result_name(f"{name} AS other") == "other"


def test_reading_an_expression_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        used_columns("comment = 'never parsed before'")
    assert not caplog.records


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("fare", "fare"),
        ("`my col`", "my col"),
        ("zone.borough", "borough"),
        ("fare AS cost", "cost"),
        ("fare cost", "cost"),
        ("fare AS `the cost`", "the cost"),
        ("CASE WHEN a > 1 THEN b END AS k", "k"),
        ("exists(tags, t -> t = 'x') AS has_x", "has_x"),
        ("cast(a AS int) AS a", "a"),
        ("struct(a AS p) AS s", "s"),
        ("window(ts, '10 seconds').start AS w", "w"),
        ("fare * 2", None),
        ("upper(a)", None),
        ("cast(a AS int)", None),
        ("1", None),
        ("*", None),
        ("zone.*", None),
        ("struct(a AS p)", None),
    ],
)
def test_result_name(expression: str, name: str | None) -> None:
    assert result_name(expression) == name


def test_columns_of_spark_are_left_to_spark() -> None:
    column = object()
    assert used_columns(column) == frozenset()
    assert result_name(column) is None
    check_columns("where 'w'", column, ("a",))


@pytest.mark.parametrize("text", ["fare >", "fare > > (", "a b c", "(((", "SELECT", "'open"])
def test_what_cannot_be_read_is_left_to_spark(text: str) -> None:
    used_columns(text)
    assert result_name(text) is None


def test_an_unknown_column_is_named_with_those_that_exist() -> None:
    with pytest.raises(NetworkError, match=r"where 'w'.*'fair'.*'fair > 2'.*Columns here: trip, fare\."):
        check_columns("where 'w'", "fair > 2", ("trip", "fare"))


def test_case_is_ignored() -> None:
    check_columns("where 'w'", "FARE > 2 AND Fare < 5", ("fare",))
    check_columns("where 'w'", "fare > 2", ("FARE",))


@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_an_empty_expression_is_refused(text: str) -> None:
    with pytest.raises(NetworkError, match=r"where 'w'.*empty"):
        check_columns("where 'w'", text, None)


def test_anything_goes_where_only_spark_knows_the_columns() -> None:
    check_columns("where 'w'", "anything > 2", None)


@pytest.mark.parametrize(
    "text", ["x IN (SELECT y FROM t)", "EXISTS (SELECT 1 FROM t WHERE t.a = b)", "a IN (VALUES 1)"]
)
def test_subqueries_are_left_to_spark(text: str) -> None:
    assert used_columns(text) == frozenset()
    assert all_used_columns(text) is None


def test_quoted_words_of_sql_stay_names_and_texts() -> None:
    assert used_columns("`values` > 1 AND drop = 'grant'") == {"values", "drop"}


@pytest.mark.parametrize(
    "text", ["*", "zone.*", "* EXCEPT (a)", "struct(*)", "count(1) + struct(*).a", "a >", object()]
)
def test_all_used_columns_are_unknown_where_a_star_or_spark_decides(text: object) -> None:
    assert all_used_columns(text) is None


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("FARE > `my col` AND x IN ('y')", {"fare", "my col", "x"}),
        ("count(*) + sum(tip) OVER (ORDER BY ts)", {"tip", "ts"}),
        ("fare `%`", {"fare"}),
        ("x > 0 AND exists(tags, x -> x > y)", {"x", "tags", "y"}),
    ],
)
def test_all_used_columns_miss_none(text: str, columns: set[str]) -> None:
    found = all_used_columns(text)
    assert found is not None
    assert found >= columns


def test_the_name_that_an_item_gives_is_none_that_it_uses() -> None:
    found = all_used_columns("fare * 2 AS tip")
    assert found is not None
    assert "tip" not in found
