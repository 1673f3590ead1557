"""Columns that would change their meaning on the way to a reader: names that are added to a result, or that hide one.

Each function gives the fault in words, or None. Case is ignored, as in Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

KEPT, BATCH, SIC = "_kept", "_batch", "_sic"
QUALITY = (KEPT, BATCH, SIC)
"""What `quality=True` adds to every row."""
PREFIX = "_jt_"


def added(element: str, columns: Iterable[str], *, quality: bool) -> str | None:
    """A column that `quality=True` would overwrite.

    >>> added("output 'fares'", ["fare", "_Kept"], quality=True)  # doctest: +ELLIPSIS
    "output 'fares': quality=True adds a column '_kept', and there is one already: rename '_Kept' before it, ..."
    >>> added("output 'fares'", ["fare", "_kept"], quality=False)
    """
    for name in columns:
        if quality and name.lower() in QUALITY:
            return (
                f"{element}: quality=True adds a column {name.lower()!r}, and there is one already: rename {name!r} "
                f"before it, such as .select(..., '{name} AS own{name.lower()}'), or leave quality out."
            )
    return None


def twice(element: str, columns: Sequence[str]) -> str | None:
    """Two columns of one name.

    >>> twice("output 'fares'", ["fare", "Fare"])
    "output 'fares': columns 'fare' and 'Fare' have one name to Spark, which ignores case: rename one of them."
    """
    seen: dict[str, str] = {}
    for name in columns:
        if name.lower() in seen:
            first = seen[name.lower()]
            return (
                f"{element}: columns {first!r} and {name!r} have one name to Spark, which ignores case: rename one of "
                f"them."
            )
        seen[name.lower()] = name
    return None


def ours(element: str, columns: Iterable[str]) -> str | None:
    """A name of those that Jettison gives to columns of its own while a batch runs.

    >>> ours("join 'zones': its table", ["zone", "_jt_id"])
    "join 'zones': its table has a column '_jt_id', and names that begin with _jt_ are Jettison's own: rename it."
    """
    for name in columns:
        if name.lower().startswith(PREFIX):
            return f"{element} has a column {name!r}, and names that begin with {PREFIX} are Jettison's own: rename it."
    return None


def hidden_by_folders(element: str, columns: Iterable[str], folder: str) -> str | None:
    """A column that reads back as the number in a folder's name.

    >>> hidden_by_folders("output 'fares'", ["fare", "Batch"], "batch")  # doctest: +ELLIPSIS
    "output 'fares': its column 'Batch' would read back as the number of the folder batch=0, ...: rename it ..."
    """
    for name in columns:
        if name.lower() == folder:
            return (
                f"{element}: its column {name!r} would read back as the number of the folder {folder}=0, which a "
                f"parquet sink writes: rename it before the output, such as .select(..., '{name} AS own_{folder}'), or "
                f"write it with another sink."
            )
    return None
