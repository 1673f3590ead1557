"""The pages that users read, and the blocks of code in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

_FENCE = re.compile(r"^( *)```([^\n`]*)\n(.*?)^\1```$", flags=re.S | re.M)


@dataclass(frozen=True)
class Block:
    """A block of code: its language as written behind the fence, and its text."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[Path]:
    """README, ARCHITECTURE, what is in deploy/, and every page of docs/."""
    return [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "deploy" / "README.md", *sorted(DOCS.rglob("*.md"))]


def read(page: str) -> str:
    """The text of a page, by its path from the root."""
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(language: str | None = None, page: str | None = None) -> list[Block]:
    """All blocks of code of all pages, or of one, in any language or in one."""
    found = []
    for path in pages() if page is None else [ROOT / page]:
        text = path.read_text(encoding="utf-8")
        for match in _FENCE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            name = str(path.relative_to(ROOT))
            found.append(Block(name, line, match[2].strip(), match[3]))
    return [block for block in found if language in (None, block.language)]


def block(word: str, language: str = "python") -> str:
    """The text of the one block in this language with this word in it."""
    (found,) = (each.text for each in blocks(language) if word in each.text)
    return found


def program(page: str) -> str:
    """All Python of a page, as one program."""
    return "\n".join(each.text for each in blocks("python", page))


class _Loader(yaml.SafeLoader):
    """Reads mkdocs.yml as plain data: its tags are names of Python functions."""


def navigation() -> set[str]:
    """The pages of docs/ that the menu of the site names."""
    menu = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), _Loader)["nav"]

    def leaves(entry: object) -> set[str]:
        if isinstance(entry, str):
            return {entry}
        parts = entry.values() if isinstance(entry, dict) else entry
        return {leaf for part in parts for leaf in leaves(part)}

    return leaves(menu)
