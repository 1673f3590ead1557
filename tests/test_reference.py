"""docs/reference.md names all that is public, and its programs and files are right."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import jettison as jt
from jettison.app.cli import app
from jettison.network.soundness import check_sql, check_types
from jettison.spec.models import OperatorSpec, ProfileSpec, QoSSpec, SourceSpec, ValueSpec
from jettison.spec.network_file import Spec
from jettison.spec.run_options import RunSpec

ROOT = Path(__file__).parent.parent
REFERENCE = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")

pytestmark = pytest.mark.core


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", REFERENCE, flags=re.S)


def test_trust_25_every_public_name_is_in_the_reference() -> None:
    missing = [name for name in jt.__all__ if not re.search(rf"\bjt\.{name}\b", REFERENCE)]
    assert not missing


def test_trust_25_every_parameter_is_in_the_reference() -> None:
    """Of functions that need Spark too: importing them starts no session."""
    rows = dict(re.findall(r"^\| `(\w+)` \| .* \| ?(.*?) ?\|$", REFERENCE, flags=re.M))
    parameters = inspect.signature(jt.start).parameters
    assert set(parameters) <= set(rows)
    for name, parameter in parameters.items():  # defaults as they are, where they are given in quotes or as a number
        if isinstance(parameter.default, str):
            assert rows[name] == f'"{parameter.default}"', name
    signatures = dict(re.findall(r"`(?:jt|net)\.(\w+)\((.*?)\)` \|", REFERENCE))
    public: list[Any] = [jt.generate, jt.kafka, jt.parquet, jt.console, jt.memory, jt.local_session, jt.aggregate]
    for function in (*public, jt.whole_window, jt.Network.source):
        wanted = [name for name in inspect.signature(function).parameters if name != "self"]
        assert re.findall(r"(\w+)(?:=[^,]*)?(?:,|$)", signatures[function.__name__]) == wanted, function.__name__
    for name in (each.name for each in fields(jt.QoS)):
        assert name in rows or f"| `{name}` |" in REFERENCE, name


def test_trust_25_every_method_of_a_stream_is_in_the_reference() -> None:
    methods = [name for name, _ in inspect.getmembers(jt.Stream, inspect.isfunction) if not name.startswith("_")]
    assert len(methods) >= 8
    for name in methods:
        assert f"| `{name}(" in REFERENCE, name
    for name in ("await_termination", "stop", "report", "ledger"):
        assert f"| `{name}(" in REFERENCE, name


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
    check_types(graph)
    check_sql(graph)
    assert {output.name for output in graph.outputs} == {"large", "shops"}


def test_the_readme_links_the_reference() -> None:
    assert "(docs/reference.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
