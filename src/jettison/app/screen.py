"""What every command prints with: results go to stdout, everything about the way there to stderr."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from jettison.network.arc import arc_name
from jettison.network.graph import Graph
from jettison.plan.plan import Plan

out = Console(highlight=False, markup=False)
"""For tables: plain cells, no colours that nobody asked for."""

err = Console(stderr=True, highlight=False, markup=False)
"""For spinners and progress."""


def fault(message: str) -> None:
    """One line on stderr, however the message was laid out."""
    typer.echo(" ".join(message.split()), err=True)


def first_line(error: BaseException) -> str:
    """What a foreign exception says, without the pages that may follow.

    >>> first_line(RuntimeError("no Java\\n  at org.apache..."))
    'no Java'
    """
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def paragraph(text: str) -> None:
    """Indented text: as it is into files and pipes, wrapped below its own indentation on a terminal."""
    width = shutil.get_terminal_size((80, 24)).columns if sys.stdout.isatty() else 0
    for line in text.splitlines():
        indent = " " * (len(line) - len(line.lstrip()) + 4)
        typer.echo(textwrap.fill(line, width, subsequent_indent=indent) if 40 <= width < len(line) else line)


def plain_table(caption: str | None = None, title: str | None = None) -> Table:
    """A table without vertical lines: on 80 columns every one of them counts."""
    left: dict[str, Any] = {"title_justify": "left", "caption_justify": "left", "title_style": "bold"}
    return Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 0, 0, 1), caption=caption, title=title, **left)


def percent(share: float) -> str:
    """A share for reading, a third digit where it matters.

    >>> percent(1.0), percent(0.4633), percent(12.5)
    ('100 %', '46.3 %', '1250 %')
    """
    text = f"{100 * share:.1f}"
    return f"{text.removesuffix('.0')} %"


def number(value: float) -> str:
    """A measured number for reading.

    >>> number(1234567.8), number(0.123456), number(12)
    ('1,234,568', '0.1235', '12')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def figure(value: Any) -> str:
    """A metric for reading: a number, a name, or a list of them.

    >>> figure(0.25), figure("TM2"), figure(["TDSnk1.1", "TDSnk1.2"]), figure([1.23456, 2])
    ('0.25', 'TM2', 'TDSnk1.1, TDSnk1.2', '1.235, 2')
    """
    if isinstance(value, list | tuple):
        return ", ".join(map(figure, value)) or "none"
    return value if isinstance(value, str) else number(value)


def kept(plan: Plan) -> Mapping[str, str]:
    """What each drop of a plan lets through, by arc. Window drops that let all pass are left out."""
    return {arc: f"{percent(drop.keep)}{drop.named}" for arc, drop in plan.drops.items() if drop.keep < 1.0}


def closed(plan: Plan, reason: str) -> list[str]:
    """Which outputs get nothing under a plan, and why: one line, or none.

    >>> closed(Plan(delivered={"prices": 0.0, "alarms": 0.5}), "overload")
    ['closed, so that nothing is delivered: prices (overload: any part of it costs more utility elsewhere)']
    """
    names = [name for name, share in plan.delivered.items() if share == 0.0]
    why = f"{reason}: any part of it costs more utility elsewhere" if reason == "overload" else reason
    return [f"closed, so that nothing is delivered: {', '.join(names)} ({why})"] if names else []


def predicates(plan: Plan) -> list[str]:
    """What the drops by value of a plan let through, in words: one line for each."""
    return [f"{arc} keeps {drop}" for arc, drop in plan.drops.items() if drop.judges == "value"]


def depth_first(graph: Graph) -> Iterator[tuple[int, str, str, bool]]:
    """Every arc once, depth first from the sources: how deep, the operator it leads to, its name, first arc there?"""
    seen: set[str] = set()
    waiting = [(0, source.name, source.name) for source in reversed(graph.sources)]
    while waiting:
        depth, name, arc = waiting.pop()
        yield depth, name, arc, name not in seen
        if name not in seen:
            seen.add(name)
            waiting += [(depth + 1, head, arc_name(name, head)) for head in reversed(graph.consumers[name])]
