"""SQL expressions, read without Spark: which columns they use and what they are called.

Spark checks them again, with types, when a run starts; this finds a misspelt column while the network is declared.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import sqlglot
from sqlglot import expressions as sql

from jettison.errors import NetworkError

Expression = Any
"""A SQL string, or a PySpark Column, which only Spark can look into."""


@lru_cache(maxsize=4096)
def _parse(text: str) -> sql.Expression | None:
    try:
        return sqlglot.parse_one(text, dialect="spark", into=None)
    except sqlglot.errors.SqlglotError:
        return None


def used_columns(expression: Expression) -> frozenset[str]:
    """Names of the columns that a SQL string reads; nothing for what cannot be known without Spark.

    >>> sorted(used_columns("fare > 2 * tip AND zone.borough = 'Queens'"))
    ['fare', 'tip', 'zone']
    """
    return _used_columns(expression) if isinstance(expression, str) else frozenset()


@lru_cache(maxsize=4096)
def _used_columns(text: str) -> frozenset[str]:
    tree = _parse(text)
    if tree is None:
        return frozenset()
    names = set()
    bound = {arg.name for fn in tree.find_all(sql.Lambda) for arg in fn.expressions}
    for column in tree.find_all(sql.Column):
        parts = [part.name for part in column.parts]
        if parts[0] not in bound and not isinstance(column.this, sql.Star):
            names.add(parts[0])
    return frozenset(names)


def all_used_columns(expression: Expression) -> frozenset[str] | None:
    """Like `used_columns`, but None where only Spark can tell, and for a star.

    >>> all_used_columns("fare * 2 AS twice"), all_used_columns("*"), all_used_columns(object())
    (frozenset({'fare'}), None, None)
    """
    tree = _parse(expression) if isinstance(expression, str) else None
    if tree is None or (tree.find(sql.Star) and not tree.find(sql.Count)):
        return None
    return used_columns(expression)


def result_name(expression: Expression) -> str | None:
    """The column name that a select item gives, or None where only Spark knows it.

    >>> result_name("fare"), result_name("fare * 2 AS double_fare"), result_name("fare * 2")
    ('fare', 'double_fare', None)
    """
    tree = _parse(expression) if isinstance(expression, str) else None
    if isinstance(tree, sql.Alias):
        return tree.alias
    if isinstance(tree, sql.Column) and not isinstance(tree.this, sql.Star):
        return tree.name
    return None


def check_columns(element: str, expression: Expression, available: tuple[str, ...] | None) -> None:
    """Raise when a SQL string uses a column that does not exist. Case is ignored, as Spark does."""
    if isinstance(expression, str) and not expression.strip():
        raise NetworkError(f"{element}: the expression is empty.")
    if available is None:
        return
    known = {name.lower() for name in available}
    for name in sorted(used_columns(expression)):
        if name.lower() not in known:
            raise NetworkError(
                f"{element}: unknown column {name!r} in {expression!r}. Columns here: {', '.join(available)}."
            )
