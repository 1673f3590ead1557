"""Hooks of MkDocs (see mkdocs.yml): the page of decision records lists every record in docs/decisions by itself."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

LIST = "<!-- records -->"


def titles(folder: Path) -> list[tuple[str, str]]:
    """File name and title of every record, in the order of their numbers."""
    found = []
    for path in folder.glob("[0-9]*.md"):
        heading = path.read_text(encoding="utf-8").splitlines()[0]
        number, title = re.fullmatch(r"# (\d+)\. (.+)", heading).groups()
        found.append((int(number), path.name, title))
    return [(name, f"{number}. {title}") for number, name, title in sorted(found)]


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Put the list of records where the page has its mark."""
    if LIST not in markdown:
        return markdown
    folder = Path(page.file.abs_src_path).parent
    return markdown.replace(LIST, "\n".join(f"- [{title}]({name})" for name, title in titles(folder)))
