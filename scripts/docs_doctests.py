"""An extension of griffe (see mkdocs.yml): examples in docstrings, which doctest runs, are shown as code."""

from __future__ import annotations

import re
from typing import Any

import griffe


def fenced(text: str) -> str:
    """The text with a fence around every example, from `>>>` up to the next empty line.

    Behind a section such as Parameters an example begins a section of its own: it would belong to the last parameter.
    """
    lines: list[str] = []
    inside, sections = False, False
    for line in text.splitlines():
        sections |= re.fullmatch(r"\s*-{3,}", line) is not None
        if sections and line.lstrip().startswith(">>>") and lines[-1:] == [""]:
            lines += ["Examples", "--------"]
        elif sections:
            pass
        elif not inside and line.lstrip().startswith(">>>"):
            lines += ["", "```pycon"]
            inside = True
        elif inside and not line.strip():
            lines.append("```")
            inside = False
        lines.append(line)
    return "\n".join([*lines, "```"] if inside else lines)


class Doctests(griffe.Extension):
    """Fence the examples of every object that is loaded."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
