"""Pages are found, links lead somewhere, and every block of code is run, checked, or marked as output or shell."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
from pathlib import Path

import pytest
import yaml
from tests.docs.pages import DOCS, ROOT, blocks, navigation, pages, read
from typer.testing import CliRunner

import jettison as jt
from jettison.app.cli import app
from jettison.experiments.harness import EXPERIMENTS
from jettison.network.soundness import check_sql
from jettison.plan.reasons import KINDS
from jettison.spec.network_file import from_yaml
from jettison.spec.xml.operator_types import TYPES

pytestmark = pytest.mark.core

RUN, CHECKED, QUERY, SHELL, OUTPUT = "python", "yaml", "xml", "sh", "text"

_FRAGMENTS = {"agg", "scrape_configs", "score"}
"""Top keys of YAML that is part of a file: `agg` is compared with the example, `score` is an operator of another page,
the third is Prometheus's."""


def slug(heading: str) -> str:
    """The anchor of a heading, as the site makes it."""
    return re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip())


def test_every_page_is_in_the_navigation() -> None:
    there = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    records = {page for page in there if re.match(r"decisions/\d", page)}  # the page of records lists them
    assert there - records == navigation()


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_every_guide_is_found_from_the_first_pages(page: str) -> None:
    text = read(page)
    missing = [guide.name for guide in sorted((DOCS / "guides").glob("*.md")) if f"guides/{guide.name})" not in text]
    assert not missing


def test_the_page_of_records_lists_all_of_them() -> None:
    """In the order of their numbers, by the title that each has: the page is read in a clone as well as on the site."""
    titles = {page.name: read(f"docs/decisions/{page.name}").splitlines()[0] for page in _records()}
    listed = re.findall(r"^- \[(.+)\]\((.+)\)$", read("docs/decisions/index.md"), flags=re.M)
    assert listed == [(title.removeprefix("# "), name) for name, title in titles.items()]


def _records() -> list[Path]:
    return sorted((DOCS / "decisions").glob("[0-9]*.md"), key=lambda page: int(page.name.partition("-")[0]))


def test_graphs_in_tables_are_ones_that_qos_takes() -> None:
    graphs = re.findall(r"^\| `(\[\(100, .+\])` \|", read("docs/guides/qos.md"), flags=re.M)
    assert len(graphs) == 3
    for graph in graphs:
        assert jt.QoS(loss=ast.literal_eval(graph)).loss


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"```.*?```", "", text, flags=re.S)):
        if link.startswith("http"):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        assert target.exists(), link
        if page.is_relative_to(DOCS):
            assert target.resolve().is_relative_to(DOCS), f"{link} leaves docs/, and is not on the site"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", target.read_text(encoding="utf-8"), flags=re.M)
            assert anchor in {slug(heading) for heading in headings}, link


def test_every_block_of_code_says_what_it_is() -> None:
    """Blocks in Python are run by test_programs.py and test_reference.py, all of them; those in YAML are checked
    below, and so are queries in XML; those in sh are commands, and text is what a program shows."""
    wrong = [
        f"{block}: {block.language!r}"
        for block in blocks()
        if block.language not in {RUN, CHECKED, QUERY, SHELL, OUTPUT}
    ]
    assert not wrong
    assert {block.language for block in blocks()} == {RUN, CHECKED, QUERY, SHELL, OUTPUT}


def test_files_that_are_shown_are_sound() -> None:
    whole = 0
    for block in blocks(CHECKED):
        content = yaml.safe_load(block.text)
        if "network" in content:
            graph = from_yaml(block.text, str(block)).graph()
            check_sql(graph)
            whole += 1
        else:
            assert set(content) & _FRAGMENTS, f"{block}: show a whole file, or say above what part of one it is"
    assert whole


def test_queries_that_are_shown_are_sound_and_become_the_yaml_that_is_shown() -> None:
    shown = blocks(QUERY)
    assert len(shown) >= 2
    for block in shown:
        check_sql(jt.from_xml(block.text, str(block)).graph())
    page = "docs/guides/dissp-files.md"
    (query,) = (block.text for block in blocks(QUERY, page) if "MyAvgCpu" in block.text)
    (same,) = (block.text for block in blocks(CHECKED, page))
    assert jt.from_xml(query).graph() == from_yaml(same).graph()


def test_every_type_and_parameter_of_query_files_is_on_their_page() -> None:
    text = read("docs/guides/dissp-files.md")
    for name, kind in TYPES.items():
        rows = re.findall(rf"^\|[^|]*`{name}`[^|]*\|(.*)$", text, flags=re.M)
        assert rows, name
        for parameter in kind.known:
            assert any(f"`{parameter}`" in row for row in rows) or parameter == "tuple", f"{name}.{parameter}"


def test_functions_of_your_own_in_yaml_are_those_of_the_example() -> None:
    (shown,) = (block for block in blocks(CHECKED) if "whole_window" in block.text)
    example = ROOT / "examples" / "fares.yaml"
    whole = yaml.safe_load(example.read_text(encoding="utf-8"))
    assert yaml.safe_load(shown.text)["agg"] == whole["operators"]["fares"]["agg"]


def test_the_commands_that_need_no_spark_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    lines = [line for block in blocks(SHELL) for line in block.text.splitlines()]
    commands = {line.partition("#")[0].strip() for line in lines if line.startswith("jettison ")}
    assert len(commands) >= 5
    for command in sorted(commands):
        words = shlex.split(command)[1:]
        if words[0] in ("check", "plan", "explain", "simulate", "convert") or words[:2] == ["experiment", "list"]:
            result = CliRunner().invoke(app, words)
        else:  # these take long: their options are parsed, and what they say of themselves is shown
            result = CliRunner().invoke(app, [*words, "--help"])
        assert result.exit_code == 0, f"{command}: {result.output}"


def test_every_command_shows_an_example_of_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    names = [command.callback.__name__ for command in app.registered_commands if command.callback]
    assert len(names) >= 7
    for words in [*([name] for name in names), ["experiment", "run"]]:
        shown = CliRunner().invoke(app, [*words, "--help"]).output
        examples = re.findall(rf"^ *(jettison {' '.join(words)}\b(?! \[).*?) *$", shown, flags=re.M)
        assert examples, words
        for example in examples:
            for word in shlex.split(example):
                assert not word.endswith((".yaml", ".xml")) or Path(word).exists() or "--out" in example, example


def test_make_has_the_targets_that_are_named() -> None:
    makefile = read("Makefile")
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages())
    named = {*re.findall(r"^make ([\w-]+)", text, flags=re.M), *re.findall(r"`make ([\w-]+)`", text)}
    assert {"demo", "test", "docs", "kafka"} <= named
    for target in named:
        assert re.search(rf"^{target}:", makefile, flags=re.M), target


def test_the_readme_is_short_and_leads_on() -> None:
    readme = read("README.md")
    assert len(readme.splitlines()) <= 130
    for page in ("docs/tutorial.md", "docs/reference.md", "docs/glossary.md", "docs/experiments.md"):
        assert f"({page})" in readme, page


def test_every_public_name_has_its_docstring_on_the_generated_page() -> None:
    shown = re.findall(r"^::: ([\w.]+)$", read("docs/api.md"), flags=re.M)
    errors = {name for name in jt.__all__ if name.endswith("Error")}
    assert {*jt.__all__} - errors <= {name.removeprefix("jettison.") for name in shown}
    assert "jettison.errors" in shown
    for name in shown:
        module, _, last = name.rpartition(".")
        assert getattr(importlib.import_module(module), last).__doc__ or last in ("errors", "presets"), name


def test_every_experiment_is_on_its_page() -> None:
    text = read("docs/experiments.md")
    for each in EXPERIMENTS:
        assert f"jettison experiment run {each.name}" in text, each.name


def test_every_kind_of_reason_is_explained() -> None:
    text = read("docs/figures.md")
    for kind in KINDS:
        assert f"| `{kind}` |" in text, kind


def test_pictures_are_there_and_shown() -> None:
    shown = set(re.findall(r"!\[[^\]]+\]\((pictures/[^)]+)\)", read("docs/experiments.md")))
    assert shown == {str(path.relative_to(DOCS)) for path in (DOCS / "pictures").glob("*.png")}
