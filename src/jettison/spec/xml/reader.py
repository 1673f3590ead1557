"""Read query files: one query, several in one file, or a folder of files."""

from __future__ import annotations

from os.path import exists, getsize, isdir, isfile
from pathlib import Path
from typing import Any

from jettison.errors import NetworkError
from jettison.network.calls import checked_call
from jettison.spec.network_file import Spec, checked_spec
from jettison.spec.xml.content import check_tuples, query_content, section_content
from jettison.spec.xml.elements import MOST_BYTES, Element, check_size, parse_elements
from jettison.spec.xml.operator_types import PROFILE, RUN
from jettison.spec.xml.query import Schemas, read_query, read_schemas, read_section
from jettison.spec.xml.several import merged, with_sections


@checked_call("jt.from_xml")
def from_xml(text: str, origin: str = "the XML") -> Spec:
    """Read a query file: a <query>, or a <network> of several; `origin` is named in errors.

    >>> spec = from_xml('''<query name="hot">
    ...   <schema name="reading"> <field type="long" name="ts"/> <field type="double" name="tmp"/> </schema>
    ...   <operator name="sensors" type="Input">
    ...     <next name="above"/> <parameter name="tuple" value="reading"/>
    ...   </operator>
    ...   <operator name="above" type="Filter">
    ...     <next name="alarms"/> <parameter name="where" value="tmp &gt; 30"/>
    ...   </operator>
    ...   <operator name="alarms" type="Output"/>
    ... </query>''')
    >>> spec.graph().arcs
    ('sensors', 'sensors>above', 'above>alarms')
    """
    if not isinstance(text, str):
        raise NetworkError(f"{origin} is {text!r}: give the text of a query; jt.read_spec(path) reads a file.")
    root = parse_elements(text, origin)
    if root.tag == "query":
        return checked_spec(_content(root, {}), origin)
    if root.tag != "network":
        raise root.fault(f'the file begins with <{root.tag}>: begin with <query name="...">, or <network> for several.')
    root.check(("name",), ("schema", "query", "run", "profile"))
    if not root.named("query"):
        raise root.fault("<network> has no <query>: add one.")
    shared = read_schemas(root, {})
    content = merged(root.attribute("name"), [(each.place, _content(each, shared)) for each in root.named("query")])
    sections = {"run": read_section(root, "run", RUN), "profile": read_section(root, "profile", PROFILE)}
    around = {name: section_content(given) for name, given in sections.items()}
    return checked_spec(with_sections(content, around, root.place), origin)


def read_queries(path: Path) -> Spec:
    """A query file, or all query files of a folder as one network with the folder's name."""
    if not is_query_folder(path):
        return from_xml(_text(path), str(path))
    queries = []
    for file in sorted(each for each in path.iterdir() if each.suffix.lower() == ".xml"):
        root = parse_elements(_text(file), str(file))
        if root.tag != "query":
            raise root.fault(f'the file begins with <{root.tag}>: in a folder each file is one <query name="...">.')
        queries.append((root.place, _content(root, {})))
    return checked_spec(merged(path.resolve().name, queries), str(path))


def is_query_folder(path: Path) -> bool:
    """Whether a path is that of a folder with query files and no YAML, which would be networks of their own."""
    try:
        endings = {each.suffix.lower() for each in path.iterdir()} if isdir(path) else set()
    except OSError:  # it may not be read
        return False
    return ".xml" in endings and not endings & {".yaml", ".yml"}


def _content(element: Element, shared: Schemas) -> dict[str, Any]:
    """The content of a query that is a sound network by itself."""
    query = read_query(element, shared)
    content = query_content(query)
    try:
        graph = checked_spec(content, element.place).graph()
    except NetworkError as error:
        told = str(error)
        raise NetworkError(told if told.startswith(element.place) else f"{element.place}: {told}") from error
    check_tuples(query, graph)
    return content


def _text(file: Path) -> str:
    """The text of a file. A pipe or a device is refused: reading one may wait for ever, or never end."""
    try:
        if exists(file) and not isfile(file):
            raise NetworkError(f"{file} is no regular file: give one, or take it out of the folder.")
        check_size(getsize(file), str(file))
        with file.open("rb") as opened:  # it may have grown since, or say that it has no bytes, as in /proc
            content = opened.read(MOST_BYTES + 1)
        check_size(len(content), str(file))
        return content.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise NetworkError(f"{file} cannot be read: {error}. Give an XML file in UTF-8.") from error
