"""Reports and runs in a notebook: small tables of HTML, everything escaped, nothing loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from jettison.telemetry.report import Report
from jettison.telemetry.report_text import TITLES, output_cells, remarks, summary

_CELL = "padding:2px 10px;text-align:{side}"


def report_html(report: Report, *, above: Sequence[str] = ()) -> str:
    """A report: its summary, the table of outputs, its remarks. `above` are lines that come first."""
    shown = [*above, *summary(report)]
    rows = [output_cells(report, name) for name in report.outputs]
    return (
        '<div style="font-size:90%">'
        + _lines(shown[:1], weight="bold")
        + _lines(shown[1:])
        + f'<table style="border-collapse:collapse;margin:6px 0">{_row(TITLES, "th")}'
        + "".join(_row(cells, "td") for cells in rows)
        + "</table>"
        + _lines(remarks(report))
        + "</div>"
    )


def run_html(report: Report, *, state: str, checkpoint: str) -> str:
    """A run: whether it runs, where its checkpoint is, and its report."""
    return report_html(report, above=[f"Run of network {report.network}: {state}", f"checkpoint {checkpoint}"])


def _lines(lines: Iterable[str], weight: str = "normal") -> str:
    return "".join(f'<div style="font-weight:{weight}">{escape(line)}</div>' for line in lines)


def _row(cells: Sequence[str], tag: str) -> str:
    sides = ("left", *["right"] * (len(cells) - 1))
    inner = "".join(
        f'<{tag} style="{_CELL.format(side=side)}">{escape(cell)}</{tag}>'
        for cell, side in zip(cells, sides, strict=True)
    )
    return f"<tr>{inner}</tr>"
