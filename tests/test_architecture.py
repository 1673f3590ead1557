"""ARCHITECTURE.md names functions and rooms that exist, and every room says what it is for."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from tests.conftest import ROOT

SOURCE = ROOT / "src" / "jettison"
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
NAMES = sorted(set(re.findall(r"`([a-z_]+(?:\.[A-Za-z_]+)+)`", TEXT)) - {"detect.py", "__init__.py"})
ROOMS = sorted(path.parent for path in SOURCE.rglob("__init__.py"))

pytestmark = pytest.mark.core


def defined(name: str) -> bool:
    """Whether a module defines a class or a function, or a class has a member, of this dotted name."""
    parts = name.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        module = SOURCE.joinpath(*parts[:cut]).with_suffix(".py")
        if module.exists():
            body = ast.parse(module.read_text(encoding="utf-8")).body
            for part in parts[cut:]:
                found = [each for each in body if getattr(each, "name", None) == part]
                if not found:
                    return False
                body = getattr(found[0], "body", [])
            return True
    return False


@pytest.mark.parametrize("name", NAMES)
def test_names_exist(name: str) -> None:
    assert defined(name), f"ARCHITECTURE.md says {name}, which is not there"


def test_the_test_can_fail() -> None:
    assert len(NAMES) > 20
    assert not defined("control.loop.Controller.guess")
    assert not defined("control.nowhere.Controller")


def test_the_map_has_every_room() -> None:
    top = {path.name for path in ROOMS if path.parent == SOURCE}
    assert {name for name in top if f"`{name}/`" in TEXT} == top


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: str(Path(room).relative_to(ROOT)))
def test_every_room_says_what_it_is_for(room: Path) -> None:
    said = ast.get_docstring(ast.parse((room / "__init__.py").read_text(encoding="utf-8"))) or ""
    assert len(said.split()) >= 8, f"{room}: the docstring of its __init__.py says too little"
