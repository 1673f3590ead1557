"""Spark's types by name, known without Spark: a misspelt one is refused where it is declared."""

from __future__ import annotations

import re

from jettison.network.columns.words import meant

TYPES = (
    *("boolean", "tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long", "float", "real", "double"),
    *("decimal", "dec", "numeric", "string", "char", "character", "varchar", "binary", "date", "time", "timestamp"),
    *("timestamp_ntz", "timestamp_ltz", "interval", "array", "map", "struct", "variant", "void", "geometry"),
    *("geography",),
)
"""What Spark 4.3 reads, in lower case."""

_QUOTED = r"`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_PIECE = re.compile(f"{_QUOTED}|.", re.DOTALL)
_TYPE = re.compile(r"\s*(\w*)\s*(?:<(.*)>)?", re.DOTALL)
_FIELD = re.compile(r"\s*(?:`(?:[^`]|``)+`|[^\s:`]+)(?:\s*:\s*|\s+)", re.DOTALL)


def unknown_type(kind: str) -> str | None:
    """The first word in a type that is none of Spark's, with what was probably meant; None where there is none.

    >>> unknown_type("array<struct<x: int, y: lng NOT NULL>>"), unknown_type("decimal(10, 2)")
    ("the unknown type 'lng' (did you mean 'long'?)", None)
    """
    found = _TYPE.match(kind)
    word, inside = (found[1], found[2] or "") if found else ("", "")
    if word.lower() not in TYPES:
        given = word or kind.strip()
        return f"the unknown type {given!r}{meant(given.lower(), TYPES)}"
    for part in split_outside_brackets(inside) if inside.strip() else ():
        field = _FIELD.match(part) if word.lower() == "struct" else None
        fault = unknown_type(part[field.end() :] if field else part)
        if fault is not None:
            return fault
    return None


def split_outside_brackets(text: str) -> list[str]:
    """Parts between the commas that stand in no brackets and no quotes.

    >>> split_outside_brackets("a map<int, int>, `b, c` int")
    ['a map<int, int>', ' `b, c` int']
    """
    parts, depth = [""], 0
    for piece in _PIECE.findall(text):
        depth += (piece in "<(") - (piece in ">)")
        if piece == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += piece
    return parts
