"""Select items that make several rows of one (`explode` and its like), taken apart: their arguments are computed of one
row each, and can be tried."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pyspark import SparkContext
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.classic.column import Column as ClassicColumn

_CALL = re.compile(r"\s*((?:pos)?explode|inline|stack)(_outer)?\s*\(", re.IGNORECASE)
_OPEN, _CLOSE, _QUOTES = "([", ")]", "'\"`"


@dataclass(frozen=True)
class Generator:
    """A function that makes rows: its arguments, and how it is written with others in their place."""

    arguments: tuple[Any, ...]
    written: Callable[[list[Column]], Column]


def taken_apart(item: Any) -> Generator | None:
    """A select item as a generator and its arguments; None where it is none, or cannot be taken apart."""
    if not isinstance(item, str):
        return _of_column(item)
    call = _CALL.match(item)
    found = None if call is None else split_call(item[call.end() :])
    if call is None or found is None:
        return None
    name, (arguments, rest) = item[: call.end()].strip(" (").strip(), found
    alias = re.fullmatch(r"\s*(?:AS\s+)?(\(.*\)|\S+)?\s*", rest, re.IGNORECASE | re.DOTALL)
    if alias is None:
        return None
    names = [each.strip().strip("`") for each in (alias[1] or "").strip("()").split(",") if each.strip()]
    return Generator(tuple(arguments), _writer(name, names))


def split_call(text: str) -> tuple[list[str], str] | None:
    """The arguments of a call, from behind its bracket on, and what follows; None where the bracket is never closed.

    >>> split_call("split(x, ','), 2) AS y")
    (["split(x, ',')", '2'], ' AS y')
    """
    depth, quote, begins, arguments, at = 0, "", 0, list[str](), 0
    while at < len(text):
        char = text[at]
        if quote:
            at += char == "\\" and quote != "`"
            quote = "" if char == quote else quote
        elif char in _QUOTES:
            quote = char
        elif char in _OPEN:
            depth += 1
        elif char in _CLOSE and depth:
            depth -= 1
        elif char == ")" or (char == "," and not depth):
            arguments.append(text[begins:at].strip())
            begins = at + 1
            if char == ")":
                return arguments, text[at + 1 :]
        at += 1
    return None


def _of_column(item: Any) -> Generator | None:
    """The same of a Column, which Spark's own tree tells of."""
    try:
        node, names = item._jc.node(), list[str]()
        if node.getClass().getSimpleName() == "Alias":
            given = node.name()
            node, names = node.child(), [given.apply(number) for number in range(given.size())]
        if node.getClass().getSimpleName() != "UnresolvedFunction" or not _CALL.match(f"{node.functionName()}("):
            return None
        arguments, jvm = node.arguments(), SparkContext._jvm
        columns = [_column(jvm, arguments.apply(number)) for number in range(arguments.size())]
        return Generator(tuple(columns), _writer(node.functionName(), names))
    except Exception:  # another Spark has other trees: then it is not tried
        return None


def _column(jvm: Any, node: Any) -> Column:
    return ClassicColumn(jvm.org.apache.spark.sql.Column(node))


def _writer(name: str, names: list[str]) -> Callable[[list[Column]], Column]:
    def written(arguments: list[Column]) -> Column:
        made = F.call_function(name, *arguments)
        return made.alias(*names) if names else made

    return written
