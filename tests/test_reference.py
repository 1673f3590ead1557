"""docs/reference.md names all that is public, and its programs and files are right."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

import jettison as jt
from jettison import testing
from jettison.app.cli import app
from jettison.network.soundness import check_sql
from jettison.spec.models import OperatorSpec, ProfileSpec, QoSSpec, SourceSpec, ValueSpec
from jettison.spec.network_file import Spec
from jettison.spec.run_options import RunSpec

ROOT = Path(__file__).parent.parent
REFERENCE = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")

pytestmark = pytest.mark.core


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", REFERENCE, flags=re.S)


def signature(function: Any) -> str:
    """Parameters as the page writes them: without types, texts in double quotes, what a factory makes as `...`."""
    parts, keyword_only = [], False
    for each in inspect.signature(function).parameters.values():
        if each.name == "self":
            continue
        if each.kind is each.KEYWORD_ONLY and not keyword_only:
            parts.append("*")
        keyword_only |= each.kind in (each.KEYWORD_ONLY, each.VAR_POSITIONAL)
        star = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        default = "" if each.default is each.empty else f"={each.default!r}".replace("'", '"')
        parts.append(f"{star}{each.name}{'=...' if '<factory>' in default else default}")
    return f"({', '.join(parts)})"


MADE_BY_US = {"BatchEvent", "Report", "Run", "Stream"}
"""Classes that a user gets and never makes: their members are in the reference."""


def is_error(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Exception)


def test_trust_25_every_public_name_is_in_the_reference() -> None:
    missing = [name for name in jt.__all__ if not re.search(rf"\bjt\.{name}\b", REFERENCE)]
    assert not missing


def test_the_house_every_signature_is_in_the_reference() -> None:
    """Of functions that need Spark too: importing them starts no session."""
    made: dict[str, Any] = {f"jt.{name}": getattr(jt, name) for name in jt.__all__ if name not in MADE_BY_US}
    functions = {name: value for name, value in made.items() if callable(value) and not is_error(value)}
    kinds = {name: value for name, value in vars(jt.rates).items() if inspect.isclass(value) and name[0] != "_"}
    kinds = {name: value for name, value in kinds.items() if value.__module__ == jt.rates.__name__ and name != "Rate"}
    functions |= {f"jt.rates.{name}": value for name, value in kinds.items()}
    functions |= {name: getattr(testing, name) for name in testing.__all__}
    functions |= {"net.source": jt.Network.source}
    functions |= {name: getattr(jt.Stream, name) for name in dir(jt.Stream) if callable(getattr(jt.Stream, name))}
    found = {name: value for name, value in functions.items() if not name.startswith("_")}
    assert len(found) > 40
    for name, value in found.items():
        assert f"`{name}{signature(value)}`" in REFERENCE, f"{name}{signature(value)}"
    for name in jt.presets.__all__:
        assert f"`{name}`" in REFERENCE or f"jt.presets.{name}" in REFERENCE, name


def section(title: str) -> str:
    return REFERENCE[REFERENCE.index(title) :].split("\n#")[0]


def test_the_house_every_parameter_is_explained() -> None:
    for title, kind in (
        ("`jt.start(", jt.start),
        ("`jt.QoS(", jt.QoS),
        ("`jt.Shedding(", jt.Shedding),
        ("`jt.Costs(", jt.Costs),
        ("`jt.Checkpoint(", jt.Checkpoint),
        ("`jt.Profile(", jt.Profile),
    ):
        rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|(?:.*\|)?$", section(title), flags=re.M))
        for name in inspect.signature(kind).parameters:
            assert name in rows, f"{title}{name}"
    defaults = dict(re.findall(r"^\| `(\w+)` \| .* \| ?(.*?) ?\|$", section("`jt.start("), flags=re.M))
    for name, parameter in inspect.signature(jt.start).parameters.items():  # as they are, where they are texts
        if isinstance(parameter.default, str):
            assert defaults[name] == f'"{parameter.default}"', name


def test_the_house_every_member_of_what_a_run_gives_is_in_the_reference() -> None:
    own = {"begin", "close_if_abandoned"}  # called by the start
    for kind, title in (
        (jt.Run, "`jt.Run` is"),
        (jt.Report, "`jt.Report` has"),
        (jt.BatchEvent, "`jt.BatchEvent` says"),
    ):
        members = {name for name in dir(kind) if not name.startswith("_")} - own
        if is_dataclass(kind):
            members |= {each.name for each in fields(kind)}
        text = section(title)
        missing = [name for name in sorted(members) if not re.search(rf"`{name}(\(|`)", text)]
        assert not missing, f"{kind.__name__}: {missing}"


def test_trust_25_every_key_of_a_file_is_in_the_reference() -> None:
    for model in (Spec, SourceSpec, OperatorSpec, QoSSpec, ValueSpec, ProfileSpec, RunSpec):
        for name, field in model.model_fields.items():
            assert f"`{field.alias or name}`" in REFERENCE, f"{model.__name__}.{name}"


def test_trust_25_every_command_is_in_the_reference() -> None:
    for command in app.registered_commands:
        assert command.callback is not None
        assert f"`jettison {command.callback.__name__}" in REFERENCE


def test_the_programs_of_the_reference_run(capsys: pytest.CaptureFixture[str]) -> None:
    programs = blocks("python")
    assert len(programs) >= 2
    for code in programs:
        exec(code, {})
    shown = capsys.readouterr().out
    assert "busy: aggregate 10 seconds by shop, delay 2 seconds" in shown
    assert "0.9\n" in shown


def test_the_file_of_the_reference_is_sound() -> None:
    (text,) = blocks("yaml")
    graph = jt.from_yaml(text).graph()
    check_sql(graph)
    assert {output.name for output in graph.outputs} == {"large", "shops"}


def test_the_readme_links_the_reference() -> None:
    assert "(docs/reference.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
