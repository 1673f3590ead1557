"""Values of parameters: lists of names or SQL, and what is written as in YAML."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from jettison.errors import NetworkError
from jettison.network.columns.schema import quoted
from jettison.network.columns.words import meant
from jettison.spec.faults import syntax_fault
from jettison.spec.network_file import load_yaml
from jettison.spec.xml.elements import Element

_PIECE = re.compile(r"`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|.", re.DOTALL)
_MOST_SHOWN = 60
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Parameters:
    """The <parameter> elements of an element, by name."""

    owner: str
    """The element, for errors: "operator 'MyAvgCpu' (Average)"."""
    by_name: Mapping[str, Element]

    def __contains__(self, name: str) -> bool:
        return name in self.by_name

    def text(self, name: str) -> str:
        return self.by_name[name].attributes["value"]

    def names(self, name: str) -> list[str]:
        """A list of column names, without their backquotes."""
        parts = self.parts(name)
        return [part[1:-1].replace("``", "`") if part.startswith("`") else part for part in parts]

    def parts(self, name: str) -> list[str]:
        """What stands between commas; raises for nothing between two."""
        parts = split_sql(self.text(name))
        if not all(parts):
            raise self.fault(name, "a part between commas is empty: write names such as 'idx, tmp'")
        return parts

    def yaml(self, name: str) -> Any:
        """A value that is written as in YAML; an alias could make a short text a large value, so there are none."""
        try:
            if any(isinstance(token, yaml.AliasToken) for token in yaml.scan(self.text(name))):
                raise self.fault(name, "it has an alias (*): write out what the alias stands for")
            return load_yaml(self.text(name))
        except yaml.YAMLError as error:
            raise self.fault(name, f"it is not valid YAML: {syntax_fault(error)}") from error
        except RecursionError as error:
            raise self.fault(name, "it is nested too deeply to be read") from error

    def fault(self, name: str, text: str) -> NetworkError:
        """An error about one parameter, with its place and value."""
        found = self.by_name[name]
        value = found.attributes["value"]
        shown = value if len(value) <= _MOST_SHOWN else f"{value[:_MOST_SHOWN]}..."
        return found.fault(f"{self.owner}: parameter {name!r} is {shown!r}: {text}.")


def read_parameters(owner: str, element: Element, needed: Iterable[str], known: Iterable[str]) -> Parameters:
    """The parameters of an element: each known, and said once."""
    known, by_name = list(known), dict[str, Element]()
    for child in element.named("parameter"):
        child.check(("name", "value"))
        name = child.attribute("name")
        child.attribute("value")
        if name not in known:
            raise child.fault(f"{owner} has no parameter {name!r}{meant(name, known)}; there are: {', '.join(known)}.")
        if name in by_name:
            raise child.fault(f"{owner} says parameter {name!r} twice: keep one of them.")
        by_name[name] = child
    for name in needed:
        if name not in by_name:
            raise element.fault(f'{owner} lacks parameter {name!r}: add <parameter name="{name}" value="..."/>.')
    return Parameters(owner, by_name)


def split_sql(text: str) -> list[str]:
    """Parts between the commas that stand in no brackets and no quotes.

    >>> split_sql("idx, greatest(tmp, 0) AS tmp, 'a, b' AS note, tmp < 3 AS cold")
    ['idx', 'greatest(tmp, 0) AS tmp', "'a, b' AS note", 'tmp < 3 AS cold']
    """
    parts, depth = [""], 0
    for piece in _PIECE.findall(text):
        depth += (piece in "([{") - (piece in ")]}")
        if piece == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += piece
    return [part.strip() for part in parts]


def name_in_sql(name: str) -> str:
    """A column's name as SQL and lists have it: as it is, or in backquotes.

    >>> name_in_sql("cpu"), name_in_sql("my cpu")
    ('cpu', '`my cpu`')
    """
    return name if _WORD.fullmatch(name) else quoted(name)


def in_yaml(value: object) -> str:
    """A value as YAML in one line, as parameters have it.

    >>> in_yaml({"preset": "taxi", "rate": {"kind": "constant", "rows_per_s": 500}}), in_yaml(True), in_yaml("on")
    ('{preset: taxi, rate: {kind: constant, rows_per_s: 500}}', 'true', "'on'")
    """
    text: str = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=float("inf"))
    return text.removesuffix("\n").removesuffix("\n...")
