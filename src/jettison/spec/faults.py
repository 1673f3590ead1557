"""What is wrong with a YAML file, in one line: the place, the value, and what is known there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError

from jettison.network.columns.words import meant
from jettison.options.moved import MOVED_KEYS

_MOST = 60
_TAGS = ("SQL", "own")
_REMEDIES = {
    "string": "write a text",
    "float": "give a number",
    "int": "give a whole number",
    "dict": "write `name: value` pairs",
    "model": "write `name: value` pairs",
    "tuple": "write a list, such as [a, b]",
    "list": "write a list, such as [a, b]",
    "greater_than_equal": "it is too small",
    "too_short": "it has too few items",
    "too_long": "it has too many items",
    "missing": "it is missing: add it",
}
_WORDS = ("str", "bool", "int", "float")


def syntax_fault(error: yaml.YAMLError) -> str:
    """What YAML's reader says, in one line, with the place."""
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error).splitlines()[0]
    mark = getattr(error, "problem_mark", None)
    place = f" (line {mark.line + 1}, column {mark.column + 1})" if mark is not None else ""
    return f"{problem}{place}"


def spec_faults(error: ValidationError, model: type[BaseModel], place: str = "") -> list[str]:
    """What does not fit a model, fault by fault; `place` is where the model stands in the file.

    Where a value may be of several kinds there is one fault, with all of them.
    """
    by_place: dict[str, list[Mapping[str, Any]]] = {}
    for fault in error.errors():
        by_place.setdefault(_where(fault["loc"], place), []).append(fault)
    return [_fault(where, faults, model) for where, faults in by_place.items()]


def _where(path: Sequence[Any], place: str) -> str:
    """The place in the file: the path without the kinds that were tried there."""
    parts = [str(part) for part in path]
    while parts and (parts[-1] in (*_TAGS, *_WORDS) or parts[-1].startswith("literal[")):
        parts.pop()
    if parts[-1:] == ["[key]"]:
        parts[-2:] = [f"the key {parts[-2]!r}"]
    shown = [part for part in parts if part not in _TAGS]
    return ".".join([*([place] if place else []), *shown]) or "the file"


def _fault(where: str, faults: Sequence[Mapping[str, Any]], model: type[BaseModel]) -> str:
    fault = faults[0]
    kind = str(fault["type"])
    if kind == "extra_forbidden":
        if where in MOVED_KEYS:
            return f"{where} is not known: {MOVED_KEYS[where]}"
        known = _known_at(model, fault["loc"][:-1])
        return f"{where} is not known{meant(fault['loc'][-1], known)}: use {', '.join(known)}"
    if kind == "missing":
        return f"{where} is missing: add it"
    if kind == "value_error":
        return f"{where}: {str(fault['msg']).removeprefix('Value error, ')}"
    shown = repr(fault["input"])
    shown = shown if len(shown) <= _MOST else f"{shown[:_MOST]}..."
    limit = fault.get("ctx", {}).get("ge")
    if limit is not None:
        return f"{where} is {shown}: give {limit:g} or more"
    choices = [choice for each in faults for choice in _choices(each)]
    if choices:
        listed = f"{', '.join(choices[:-1])} or {choices[-1]}" if len(choices) > 1 else choices[0]
        return f"{where} is {shown}{meant(fault['input'], choices)}: use {listed}"
    return f"{where} is {shown}: {', or '.join(dict.fromkeys(map(_remedy, faults)))}"


def _choices(fault: Mapping[str, Any]) -> list[str]:
    """The words that may stand here, where they are a few."""
    if str(fault["type"]).startswith("bool"):
        return ["true", "false"]
    expected = str(fault.get("ctx", {}).get("expected", "")) if fault["type"] == "literal_error" else ""
    return re.findall(r"'([^']*)'", expected)


def _remedy(fault: Mapping[str, Any]) -> str:
    kind = str(fault["type"])
    known = next((remedy for word, remedy in _REMEDIES.items() if kind.startswith(word)), None)
    return known or str(fault["msg"]).lower()


def _known_at(model: type[BaseModel], path: Sequence[Any]) -> list[str]:
    """The keys that a file may have at a place."""
    kind: Any = model
    for part in path:
        if part not in _TAGS:
            kind = _step(kind, part)
    found = _model_in(kind)
    return [] if found is None else [field.alias or name for name, field in found.model_fields.items()]


def _step(kind: Any, part: Any) -> Any:
    """The type of what stands under a key, or at a place of a list."""
    kind = _bare(kind)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        fields = {field.alias or name: field for name, field in kind.model_fields.items()}
        return fields[part].annotation if part in fields else None
    inner = get_args(kind)
    return inner[-1] if get_origin(kind) is dict else inner[0] if inner else None


def _bare(kind: Any) -> Any:
    """A type without what is said beside it, and of several the one that has parts."""
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if get_origin(kind) in (Union, UnionType):
        parts = [_bare(each) for each in get_args(kind)]
        models = [each for each in parts if isinstance(each, type) and issubclass(each, BaseModel)]
        return next(iter([*models, *(each for each in parts if get_args(each))]), None)
    return kind


def _model_in(kind: Any) -> type[BaseModel] | None:
    kind = _bare(kind)
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None
