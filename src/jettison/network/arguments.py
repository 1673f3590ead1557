"""What users give, checked where it is given: wrong types end in an error that names the element and the remedy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from jettison.errors import NetworkError
from jettison.network.columns.expressions import Expression


def check_text(element: str, what: str, value: object, example: str) -> None:
    """Raise unless a value is a text that is not empty.

    >>> check_text("network", "name", 5, "'taxi'")
    Traceback (most recent call last):
    jettison.errors.NetworkError: network: name is 5: give a text, such as 'taxi'.
    """
    if not isinstance(value, str) or not value.strip():
        raise NetworkError(f"{element}: {what} is {value!r}: give a text, such as {example}.")


def names_of(element: str, what: str, value: object) -> tuple[str, ...]:
    """Names of columns: one, or several.

    >>> names_of("join 'zones'", "on", "zone"), names_of("join 'zones'", "on", ["zone", "day"])
    (('zone',), ('zone', 'day'))
    """
    given = (value,) if isinstance(value, str) else value
    if not isinstance(given, Iterable) or isinstance(given, Mapping | bytes):
        raise NetworkError(f"{element}: {what} is {value!r}: give names of columns, such as ['zone'].")
    names = tuple(given)
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise NetworkError(f"{element}: {what} has {name!r}: give names of columns, such as ['zone'].")
    return names


def mapping_of(element: str, what: str, value: object, example: str) -> dict[str, Any]:
    """A mapping by name."""
    if not isinstance(value, Mapping):
        raise NetworkError(f"{element}: {what} is {value!r}: give a mapping, such as {example}.")
    for name in value:
        check_text(element, f"a name in {what}", name, example)
    return dict(value)


def check_expression(element: str, expression: Expression) -> None:
    """Raise for what is neither SQL nor a PySpark Column.

    >>> check_expression("where 'paid'", 5)
    Traceback (most recent call last):
    jettison.errors.NetworkError: where 'paid': 5 is no expression: give SQL, such as 'fare > 0', or a PySpark Column.
    """
    given = getattr(expression, "__name__", None) if callable(expression) else None
    of_spark = any(kind.__module__.startswith("pyspark.") for kind in type(expression).__mro__)
    if not isinstance(expression, str) and not of_spark:
        shown = f"function {given}" if given is not None else repr(expression)
        raise NetworkError(f"{element}: {shown} is no expression: give SQL, such as 'fare > 0', or a PySpark Column.")
