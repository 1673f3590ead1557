"""Schemas in Spark's own words ("trip long, pickup timestamp"), read without Spark."""

from __future__ import annotations

from jettison.errors import NetworkError

Column = tuple[str, str]


def parse_schema(ddl: str, element: str) -> tuple[Column, ...]:
    """Names and types of a DDL string; `element` is named in errors.

    >>> parse_schema("trip long, tags map<string, int>, price decimal(10, 2)", "source 'trips'")
    (('trip', 'long'), ('tags', 'map<string, int>'), ('price', 'decimal(10, 2)'))
    """
    columns: list[Column] = []
    for part in _split(ddl):
        name, _, kind = part.strip().replace("\n", " ").partition(" ")
        name, kind = name.strip("`").rstrip(":"), kind.strip()
        if not name or not kind:
            raise NetworkError(f'{element}: schema part {part.strip()!r} is not "name type", such as "fare double".')
        if name in (seen for seen, _ in columns):
            raise NetworkError(f"{element}: column {name!r} stands twice in the schema.")
        if name.startswith("_jt_"):
            raise NetworkError(f"{element}: column {name!r} begins with _jt_, which Jettison keeps for itself.")
        columns.append((name, kind))
    return tuple(columns)


def _split(ddl: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for position, char in enumerate(ddl):
        depth += (char in "<(") - (char in ">)")
        if char == "," and depth == 0:
            parts.append(ddl[start:position])
            start = position + 1
    return [*parts, ddl[start:]]
