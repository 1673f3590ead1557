"""XML is parsed safely: nothing outside of a file, bounded work, and faults with their place."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.spec.xml.queries import AVERAGE

import jettison as jt
from jettison.errors import NetworkError
from jettison.spec.xml.elements import MOST_BYTES, MOST_DEPTH, parse_elements

pytestmark = pytest.mark.core

LAUGHS = (
    '<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY lol "lol">'
    + "".join(f'<!ENTITY lol{n} "{f"&lol{n - 1 or chr(0)};" * 10}">'.replace("\0", "") for n in range(1, 10))
    + "]><query name='&lol9;'/>"
)


@pytest.mark.parametrize(
    "bomb",
    [
        LAUGHS,
        '<!DOCTYPE q [<!ENTITY a "' + "x" * 50_000 + '">]><q>' + "&a;" * 50_000 + "</q>",  # quadratic blow-up
        '<!DOCTYPE q SYSTEM "http://127.0.0.1:1/q.dtd"><q/>',
        '<!DOCTYPE q [<!ENTITY a SYSTEM "file:///etc/passwd">]><q>&a;</q>',
        '<!DOCTYPE q [<!ENTITY % a SYSTEM "file:///etc/passwd"> %a;]><q/>',
        "<!DOCTYPE query><query name='a'/>",
    ],
)
def test_bombs_are_refused_at_once(bomb: str) -> None:
    begun = time.perf_counter()
    with pytest.raises(NetworkError, match=r"bomb.xml, line 1: a document type .* is not read.*remove it"):
        jt.from_xml(bomb, "bomb.xml")
    assert time.perf_counter() - begun < 1


def test_an_entity_that_nobody_declared_is_none() -> None:
    with pytest.raises(NetworkError, match=r"a.xml is not valid XML: undefined entity \(line 2, column 1\)"):
        parse_elements('\n<query name="a &b;"/>', "a.xml")


def test_depth_and_size_are_bounded(tmp_path: Path) -> None:
    deep = "<a>" * 100_000 + "</a>" * 100_000
    with pytest.raises(NetworkError, match=rf"nested deeper than {MOST_DEPTH} elements"):
        parse_elements(deep, "deep.xml")
    large = AVERAGE + " " * MOST_BYTES
    with pytest.raises(NetworkError, match=r"large.xml has 1,\d{3},\d{3} bytes, and 1,000,000 are read at most: write"):
        jt.from_xml(large, "large.xml")
    file = tmp_path / "large.xml"
    with file.open("wb") as opened:  # a hole of a terabyte: it is not read
        opened.truncate(10**12)
    with pytest.raises(NetworkError, match=r"has 1,000,000,000,000 bytes"):
        jt.read_spec(file)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", r"q.xml is no XML: begin with <query name=\"...\">. To read a file, give its path to jt.read_spec"),
        ("examples/average.xml", r"q.xml is no XML: begin with <query"),
        ("<!-- a -->", r"q.xml is not valid XML: no element found \(line 1"),
        ("<query", r"not valid XML: unclosed token"),
        ("<query name='a'></querry>", r"not valid XML: mismatched tag \(line 1"),
        ("<query name='a' name='b'/>", r"not valid XML: duplicate attribute"),
        ("<query name='a\x00'/>", r"not valid XML"),
        ("<query name='\ud800'/>", r"not valid XML: it has a character that is none"),
        ("<query name='a'>words</query>", r"line 1: the text 'words' stands between elements: write values as attrib"),
        ("<query name='a'><![CDATA[x]]></query>", r"the text 'x' stands between elements"),
    ],
)
def test_faults_have_their_place(text: str, words: str) -> None:
    with pytest.raises(NetworkError, match=words):
        parse_elements(text, "q.xml")


def test_what_is_said_of_the_encoding_does_not_matter_for_a_text(tmp_path: Path) -> None:
    text = AVERAGE.replace("MyOutput", "größe")
    assert jt.from_xml(text.replace("UTF-8", "UTF-16")).graph() == jt.from_xml(text).graph()
    file = tmp_path / "q.xml"
    file.write_bytes(text.encode("latin-1"))
    with pytest.raises(NetworkError, match=r"q.xml cannot be read: .*Give an XML file in UTF-8"):
        jt.read_spec(file)


def test_a_number_is_no_text() -> None:
    with pytest.raises(NetworkError, match=r"the XML is 7: give the text of a query"):
        jt.from_xml(7)  # type: ignore[arg-type]
