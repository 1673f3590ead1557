"""Schemas in Spark's own words ("trip long, pickup timestamp"), read without Spark."""

from __future__ import annotations

import re
from collections.abc import Iterable

from jettison.errors import NetworkError
from jettison.network.columns.types import split_outside_brackets, unknown_type

Column = tuple[str, str]

_PLAIN = re.compile(r"\w+")
_COLUMN = re.compile(r"(`(?:[^`]|``)+`|[^\s:`]+)(?:\s*:\s*|\s+)([^\s:].*)", re.DOTALL)


def parse_schema(ddl: str, element: str) -> tuple[Column, ...]:
    """Names and types of a DDL string; `element` is named in errors.

    >>> parse_schema("trip long, tags map<string, int>, price decimal(10, 2)", "source 'trips'")
    (('trip', 'long'), ('tags', 'map<string, int>'), ('price', 'decimal(10, 2)'))
    >>> parse_schema("`my zone`: int, note string COMMENT 'short, or none'", "source 'trips'")
    (('my zone', 'int'), ('note', "string COMMENT 'short, or none'"))
    """
    columns: list[Column] = []
    if not isinstance(ddl, str):
        raise NetworkError(f'{element}: schema is {ddl!r}: give a text, such as "trip long, fare double".')
    for part in split_outside_brackets(ddl):
        found = _COLUMN.fullmatch(part.strip())
        if found is None:
            raise NetworkError(f'{element}: schema part {part.strip()!r} is not "name type", such as "fare double".')
        name, kind = found.groups()
        if name.startswith("`"):
            name = name[1:-1].replace("``", "`")
        if (fault := unknown_type(kind)) is not None:
            raise NetworkError(
                f"{element}: column {name!r} has {fault}: use one of Spark's, such as long, double or timestamp."
            )
        columns.append((name, " ".join(line.strip() for line in kind.splitlines())))
    check_names(element, [name for name, _ in columns])
    return tuple(columns)


def as_ddl(columns: Iterable[Column]) -> str:
    """The DDL string that `parse_schema` reads back to these columns.

    >>> as_ddl((("trip", "long"), ("my zone", "int")))
    'trip long, `my zone` int'
    """
    return ", ".join(f"{name if _PLAIN.fullmatch(name) else quoted(name)} {kind}" for name, kind in columns)


def literal(text: str) -> str:
    """A text as a SQL literal.

    >>> print(literal("one's"))
    'one\\'s'
    """
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def quoted(name: str) -> str:
    """A column name in SQL's backquotes.

    >>> quoted("my zone")
    '`my zone`'
    """
    return f"`{name.replace('`', '``')}`"


def check_names(element: str, names: Iterable[str]) -> None:
    """Raise when a name stands twice (case is ignored, as Spark does) or is one of Jettison's own."""
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise NetworkError(f"{element}: column {name!r} stands twice: give one another name.")
        if name.lower().startswith("_jt_"):
            raise NetworkError(f"{element}: column {name!r} begins with _jt_, which Jettison keeps for itself.")
        seen.add(name.lower())
