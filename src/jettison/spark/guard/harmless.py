"""Expressions that throw on no row: they need no guard, and cost nothing beside themselves.

Spark tells an analysed expression as JSON: its nodes in preorder, each with its class and the number of its children.
An expression is harmless where every node is of a kind that never throws in ANSI mode, whatever its children give. What
is not in the lists below may throw.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_SAFE = frozenset(
    {
        *("AttributeReference", "Literal", "Alias", "CurrentDate", "CurrentTimestamp", "Now", "Rand", "Randn", "Pi"),
        *(
            "EqualTo",
            "EqualNullSafe",
            "LessThan",
            "LessThanOrEqual",
            "GreaterThan",
            "GreaterThanOrEqual",
            "In",
            "InSet",
        ),
        *(
            "And",
            "Or",
            "Not",
            "IsNull",
            "IsNotNull",
            "IsNaN",
            "NaNvl",
            "Coalesce",
            "If",
            "CaseWhen",
            "Greatest",
            "Least",
        ),
        *("Between", "Nvl", "Nvl2", "NullIf", "NullIfZero", "ZeroIfNull", "With", "CommonExpressionRef"),
        *("CommonExpressionDef", "AtLeastNNonNulls", "KnownNullable", "KnownNotNull"),
        *("Upper", "Lower", "Length", "StringTrim", "StringTrimLeft", "StringTrimRight", "StartsWith", "EndsWith"),
        *("Contains", "Substring", "StringInstr", "InitCap", "Md5", "Sha1", "XxHash64", "Murmur3Hash"),
        *("GetStructField", "CreateNamedStruct", "CreateArray", "Size", "ArrayContains", "ArrayExists", "ArrayForAll"),
        *("LambdaFunction", "NamedLambdaVariable", "ArrayFilter", "ArrayTransform"),
        *("Year", "Month", "DayOfMonth", "DayOfWeek", "DayOfYear", "Quarter", "Hour", "Minute", "UnixMicros"),
        *("Sqrt", "Cbrt", "Exp", "Log", "Log10", "Log2", "Log1p", "Sin", "Cos", "Tan", "Signum", "BitwiseAnd"),
        *("BitwiseOr", "BitwiseXor", "BitwiseNot", "ShiftLeft", "ShiftRight", "ShiftRightUnsigned"),
    }
)
"""Kinds that throw on no value of any type."""
_OF_DOUBLES = frozenset({"Add", "Subtract", "Multiply", "UnaryMinus", "UnaryPositive", "Abs"})
"""Kinds that throw on none but whole numbers and decimals, which may overflow."""
_MATCHING = frozenset({"Like", "RLike"})
"""Kinds that throw on a pattern that is none: harmless where it is a literal, which Spark has looked at."""
_DIVIDING = frozenset({"Divide", "IntegralDivide", "Remainder", "Pmod"})
_FLOATS = ("float", "double")
_DIGITS = {"boolean": 1, "byte": 3, "short": 5, "integer": 10, "long": 19}
"""Whole numbers, the narrowest first, and how many digits they have."""
_DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)")
_AS_TEXT = ("string", "boolean", *_DIGITS, *_FLOATS, "date", "timestamp", "timestamp_ntz")


@dataclass(frozen=True)
class _Node:
    kind: str
    type: Any
    value: Any
    children: tuple[_Node, ...]


def is_harmless(tree: str) -> bool:
    """Whether an expression throws on no row; `tree` is what Spark's `toJSON` gives of it, analysed.

    >>> column = '{"class": "a.AttributeReference", "num-children": 0, "dataType": "double"}'
    >>> two = '{"class": "a.Literal", "num-children": 0, "value": "2", "dataType": "double"}'
    >>> is_harmless('[{"class": "a.Divide", "num-children": 2}, %s, %s]' % (column, two))
    True
    >>> is_harmless('[{"class": "a.Divide", "num-children": 2}, %s, %s]' % (two, column))
    False
    """
    node, _ = _read(json.loads(tree), 0)
    return _is_harmless(node)


def has_python(tree: str) -> bool:
    """Whether a function in Python is in an expression: Spark runs it beforehand, outside of any guard.

    >>> has_python('[{"class": "org.apache.spark.sql.catalyst.expressions.PythonUDF", "num-children": 0}]')
    True
    """
    return "PythonUDF" in tree


def never_throws(source: Any, target: Any) -> bool:
    """Whether a conversion between two of Spark's types, as JSON has them, throws on no value.

    >>> never_throws("integer", "long"), never_throws("string", "long"), never_throws("long", "decimal(20,0)")
    (True, False, True)
    """
    if source == target or source == "void":
        return True
    if not isinstance(source, str) or not isinstance(target, str):
        return False
    if target == "string":
        return source in _AS_TEXT or bool(_DECIMAL.match(source))
    if target in _FLOATS:
        return source in (*_DIGITS, *_FLOATS) or bool(_DECIMAL.match(source))
    if target in _DIGITS:
        return source in _DIGITS and _DIGITS[source] <= _DIGITS[target] and target != "boolean"
    wide, narrow = _DECIMAL.match(target), _DECIMAL.match(source)
    if wide is None:
        return False
    whole, part = int(wide[1]) - int(wide[2]), int(wide[2])
    if narrow is None:
        return source in _DIGITS and whole >= _DIGITS[source]
    return whole >= int(narrow[1]) - int(narrow[2]) and part >= int(narrow[2])


def _read(nodes: Sequence[Mapping[str, Any]], at: int) -> tuple[_Node, int]:
    """The node at a place, and the place behind its last child."""
    given, children, behind = nodes[at], list[_Node](), at + 1
    for _ in range(given["num-children"]):
        child, behind = _read(nodes, behind)
        children.append(child)
    kind = str(given["class"]).rpartition(".")[2]
    own = given.get("dataType")
    inherited = children[0].type if own is None and children and (kind == "Alias" or kind in _OF_DOUBLES) else own
    return _Node(kind, inherited, given.get("value"), tuple(children)), behind


def _is_harmless(node: _Node) -> bool:
    if not all(map(_is_harmless, node.children)):
        return False
    if node.kind in _SAFE:
        return True
    if node.kind == "Concat":
        return all(child.type == "string" for child in node.children)
    if node.kind in _OF_DOUBLES:
        return all(child.type in _FLOATS for child in node.children)
    if node.kind in _MATCHING:
        return node.children[1].kind == "Literal"
    if node.kind in _DIVIDING:
        return _divides_safely(node)
    return node.kind == "Cast" and never_throws(node.children[0].type, node.type)


def _divides_safely(node: _Node) -> bool:
    """Whether what is divided by is a number above 0: by -1 the least whole number overflows."""
    by = node.children[1]
    while by.kind == "Cast":
        by = by.children[0]
    try:
        above = by.kind == "Literal" and float(by.value) > 0
    except (TypeError, ValueError):
        return False
    decimal = isinstance(node.children[1].type, str) and bool(_DECIMAL.match(node.children[1].type))
    return above and not decimal
