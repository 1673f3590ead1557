"""Which functions Spark's SQL has, known without starting Spark: what a misspelt one was meant to be."""

from __future__ import annotations

import ast
import importlib.util
from functools import cache
from pathlib import Path

from sqlglot import expressions as sql

from jettison.network.columns.expressions import Expression, parsed

_TYPES = frozenset({"bigint", "binary", "boolean", "date", "decimal", "double", "float", "int", "smallint", "string"})
"""Types that are also functions: bigint(zone) is a cast."""


@cache
def spark_functions() -> frozenset[str]:
    """The functions that the installed PySpark names, read from its file: importing it takes seconds. None of them
    where there is no PySpark, or its file looks different."""
    found = importlib.util.find_spec("pyspark")
    path = None if found is None or found.origin is None else Path(found.origin).parent / "sql/functions/__init__.py"
    if path is None or not path.is_file():
        return frozenset()
    lists = [
        node.value.elts
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.List | ast.Tuple)
    ]
    return frozenset(str(item.value) for items in lists for item in items if isinstance(item, ast.Constant))


def unknown_functions(expression: Expression) -> list[str]:
    """Functions of a SQL string that neither Spark nor the reader here has; a user may have registered them.

    >>> unknown_functions("shaa2(name, 256)"), unknown_functions("xxhash64(name) + bigint(zone)")
    (['shaa2'], [])
    """
    tree = parsed(expression) if isinstance(expression, str) else None
    known = spark_functions()
    if tree is None or not known:
        return []
    called = [str(each.name) for each in tree.find_all(sql.Anonymous)]
    return [name for name in called if name.lower() not in known | _TYPES]
