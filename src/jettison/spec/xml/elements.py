"""XML as plain elements, parsed safely: a file can name nothing outside of itself, and its size bounds the work.

A document type is refused, and with it everything that it could declare: entities (the "billion laughs"), external
files, addresses. What is left of XML is elements, attributes and comments.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NoReturn
from xml.parsers import expat

from jettison.errors import NetworkError
from jettison.network.columns.words import meant

MOST_BYTES = 1_000_000
"""The size of a file: some thousand queries."""
MOST_DEPTH = 8
"""Elements inside elements; a query has four levels."""

_MOST_SHOWN = 40


@dataclass(frozen=True)
class Element:
    """An element with its attributes; `place` is the file and the line, for errors."""

    tag: str
    attributes: Mapping[str, str]
    place: str
    children: tuple[Element, ...] = ()

    def fault(self, text: str) -> NetworkError:
        """An error that begins with the place."""
        return NetworkError(f"{self.place}: {text}")

    def attribute(self, name: str) -> str:
        """An attribute that must be there, and not be empty."""
        value = self.attributes.get(name, "")
        if not value.strip():
            fault = "is empty" if name in self.attributes else "is missing"
            raise self.fault(f'<{self.tag}>: the attribute {name!r} {fault}: write <{self.tag} {name}="...">.')
        return value

    def check(self, attributes: Iterable[str], children: Iterable[str] = ()) -> None:
        """Raise for an attribute or a child that is none of these."""
        for kind, given, known in (
            ("attribute", list(self.attributes), list(attributes)),
            ("element", [child.tag for child in self.children], list(children)),
        ):
            for name in given:
                if name not in known:
                    there = ", ".join(known) or "none"
                    raise self.fault(f"<{self.tag}> has no {kind} {name!r}{meant(name, known)}; there are: {there}.")

    def named(self, tag: str) -> list[Element]:
        """The children with this tag."""
        return [child for child in self.children if child.tag == tag]


def parse_elements(text: str, origin: str) -> Element:
    """The root element of an XML text; `origin` is named in errors.

    >>> root = parse_elements('<query name="a"><operator name="o" type="Output"/></query>', "a.xml")
    >>> root.tag, root.children[0].attributes, root.children[0].place
    ('query', {'name': 'o', 'type': 'Output'}, 'a.xml, line 1')
    >>> parse_elements('<!DOCTYPE q [<!ENTITY a "b">]><q>&a;</q>', "a.xml")
    Traceback (most recent call last):
    jettison.errors.NetworkError: a.xml, line 1: a document type (<!DOCTYPE>) is not read, as it could declare \
entities: remove it.
    """
    if not text.lstrip("\ufeff \t\r\n").startswith("<"):
        raise NetworkError(
            f'{origin} is no XML: begin with <query name="...">. To read a file, give its path to jt.read_spec.'
        )
    check_size(len(text.encode("utf-8", "replace")), origin)
    return _Reading(origin).read(text)


def check_size(size_bytes: int, origin: str) -> None:
    """Raise for a file that is too large to be a query."""
    if size_bytes > MOST_BYTES:
        raise NetworkError(
            f"{origin} has {size_bytes:,} bytes, and {MOST_BYTES:,} are read at most: write several files, and give "
            f"their folder."
        )


class _Reading:
    """One pass over a text: the elements that are open, each with the children found so far."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._parser = expat.ParserCreate()
        self._open: list[tuple[str, dict[str, str], str, list[Element]]] = []
        self._roots: list[Element] = []
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text
        self._parser.StartDoctypeDeclHandler = self._refuse_doctype

    def read(self, text: str) -> Element:
        try:
            self._parser.Parse(text, True)
        except expat.ExpatError as error:
            words = expat.errors.messages[error.code]
            where = f"line {error.lineno}, column {error.offset + 1}"
            raise NetworkError(f"{self._origin} is not valid XML: {words} ({where}).") from error
        except UnicodeEncodeError as error:
            raise NetworkError(
                f"{self._origin} is not valid XML: it has a character that is none ({error})."
            ) from error
        return self._roots[0]

    @property
    def _place(self) -> str:
        return f"{self._origin}, line {self._parser.CurrentLineNumber}"

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if len(self._open) >= MOST_DEPTH:
            raise NetworkError(f"{self._place}: <{tag}> is nested deeper than {MOST_DEPTH} elements: a query has four.")
        self._open.append((tag, attributes, self._place, []))

    def _end(self, _: str) -> None:
        tag, attributes, place, children = self._open.pop()
        siblings = self._open[-1][3] if self._open else self._roots
        siblings.append(Element(tag, attributes, place, tuple(children)))

    def _text(self, data: str) -> None:
        if data.strip():
            shown = data.strip()[:_MOST_SHOWN]
            raise NetworkError(
                f"{self._place}: the text {shown!r} stands between elements: write values as attributes, such as "
                f'<parameter name="field" value="cpu"/>.'
            )

    def _refuse_doctype(self, *_: object) -> NoReturn:
        raise NetworkError(
            f"{self._place}: a document type (<!DOCTYPE>) is not read, as it could declare entities: remove it."
        )
