"""Frozen dataclasses as plain dicts with a `kind`, for YAML files and for the options of a data source (JSON)."""

import dataclasses
import math
import re
from collections.abc import Mapping
from typing import Any, TypeVar

from jettison.errors import NetworkError
from jettison.network.columns.words import meant

T = TypeVar("T")


def kind_name(cls: type) -> str:
    """The name of a class in a declaration.

    >>> class RowNumber: ...
    >>> kind_name(RowNumber)
    'row_number'
    """
    return re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()


def by_kind(*classes: type[T]) -> dict[str, type[T]]:
    """The classes that a declaration may name, by their kind."""
    return {kind_name(cls): cls for cls in classes}


def to_kind_dict(value: Any) -> dict[str, Any]:
    """The fields of a dataclass and its kind; fields that hold None are left out."""
    pairs = ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
    plain = {name: list(held) if isinstance(held, tuple) else held for name, held in pairs if held is not None}
    return {"kind": kind_name(type(value)), **plain}


def from_kind_dict(data: Mapping[str, Any], kinds: Mapping[str, type[T]], what: str) -> T:
    """The inverse of `to_kind_dict`; `what` names the declared element in error messages."""
    if not isinstance(data, Mapping) or "kind" not in data:
        raise NetworkError(f"{what} {data!r} has no kind: give a mapping with 'kind', one of {', '.join(kinds)}")
    cls = kinds.get(data["kind"]) if isinstance(data["kind"], str) else None
    if cls is None:
        raise NetworkError(
            f"{what} has the unknown kind {data['kind']!r}{meant(data['kind'], kinds)}: use one of {', '.join(kinds)}"
        )
    known = dataclasses.fields(cls)  # type: ignore[arg-type]  # every kind is a dataclass
    given = {name: value for name, value in data.items() if name != "kind"}
    unknown = [name for name in given if name not in {field.name for field in known}]
    if unknown:
        known_names = [field.name for field in known]
        names = ", ".join(known_names)
        raise NetworkError(
            f"{what} {data['kind']!r} has no setting {unknown[0]!r}{meant(unknown[0], known_names)}: use {names}"
        )
    without_default = (
        f for f in known if f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
    )
    missing = [field.name for field in without_default if field.name not in given]
    if missing:
        raise NetworkError(f"{what} {data['kind']!r} lacks the setting {missing[0]!r}: add it")
    return cls(**given)


def require_number(
    owner: object,
    name: str,
    value: object,
    *,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
) -> None:
    """Raise NetworkError unless `value` is a finite number within the bounds.

    >>> require_number("Constant", "rows_per_s", -5, least=0)
    Traceback (most recent call last):
    jettison.errors.NetworkError: Constant: rows_per_s is -5, give a number of at least 0
    """
    bounds = (("above", above), ("of at least", least), ("of at most", most))
    wanted = "give a number" + " and".join(f" {word} {bound:g}" for word, bound in bounds if bound is not None)
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if (
        not is_number
        or (above is not None and value <= above)  # type: ignore[operator]
        or (least is not None and value < least)  # type: ignore[operator]
        or (most is not None and value > most)  # type: ignore[operator]
    ):
        label = owner if isinstance(owner, str) else type(owner).__name__
        raise NetworkError(f"{label}: {name} is {value!r}, {wanted}")
