"""`jettison convert`, and the other commands on DISSP's query files."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.app.commands import ROOT, TAXI, changed, jettison

import jettison as jt
from jettison.spec.whole_file import file_content

pytestmark = pytest.mark.core

AVERAGE = ROOT / "examples" / "average.xml"


def test_check_and_explain_take_a_query_file() -> None:
    shown = jettison("check", AVERAGE)
    assert shown.exit_code == 0, shown.stderr
    assert "  MyAvgCpu: aggregate 10 seconds by idx, delay 1 second: cpu = avg(cpu)\n" in shown.stdout
    assert shown.stdout.endswith("ok: 1 source, 2 operators, 2 outputs\n")
    assert "row 0 suffices" in jettison("explain", AVERAGE).stdout
    assert "road map of network average" in jettison("plan", AVERAGE, "--rows-per-s", "MyInput=1000000").stdout


def test_a_query_file_becomes_yaml_and_xml_again(tmp_path: Path) -> None:
    there, back = tmp_path / "average.yaml", tmp_path / "average.xml"
    assert jettison("convert", AVERAGE, "--out", there).exit_code == 0
    assert jettison("convert", there, "--out", back).exit_code == 0
    expected = file_content(jt.read_spec(AVERAGE))
    assert file_content(jt.read_spec(there)) == file_content(jt.read_spec(back)) == expected
    assert jettison("convert", there).stdout == back.read_text(encoding="utf-8")
    assert jettison("check", back).stdout == jettison("check", AVERAGE).stdout


def test_a_folder_of_queries_becomes_one_network(tmp_path: Path) -> None:
    (tmp_path / "average.xml").write_bytes(AVERAGE.read_bytes())
    shown = jettison("convert", tmp_path)
    assert jt.from_yaml(shown.stdout).graph() == jt.read_spec(tmp_path).graph()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["convert", TAXI], 1, "cannot be written as XML"),
        (["convert", "nowhere.xml"], 2, "no file that is there"),
        (["convert", AVERAGE, "--out", TAXI], 2, "is there already: remove it"),
        (["convert", AVERAGE, "--out", "/nowhere/a.yaml"], 2, "cannot be written"),
        (["check", ROOT / "examples"], 2, "a folder that has only query files"),
    ],
)
def test_what_cannot_be_converted_is_refused_in_one_line(arguments: list[object], code: int, words: str) -> None:
    told = jettison(*arguments)
    assert told.exit_code == code, told.output
    assert words in told.stderr
    assert (told.stdout, told.stderr.count("\n")) == ("", 1)


def test_a_run_section_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    told = jettison("convert", changed(tmp_path, "run", "sources", "trips", to=None))
    assert (told.exit_code, "run.sources lacks 'trips'" in told.stderr) == (1, True)


def test_a_bomb_is_refused_in_one_line(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.xml"
    bomb.write_text('<!DOCTYPE q [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]><query name="&b;"/>', encoding="utf-8")
    told = jettison("check", bomb)
    assert (told.exit_code, told.stderr.count("\n")) == (1, 1)
    assert "bomb.xml, line 1: a document type (<!DOCTYPE>) is not read" in told.stderr
