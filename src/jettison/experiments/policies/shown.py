"""The comparison for people: a table for the terminal, a picture for a document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.table import Table

from jettison.experiments.policies.measured import NO_SHEDDING, Measured, best

_HEADINGS = ("worth\n%", "SIC\nlow", "SIC\nmean", "Jain", "min.", "pri.", "p50 s", "p99 s", "tuples", "ms")


def compared(found: Sequence[Measured], taken: str) -> Table:
    """One line for each shedder, the best by worth in bold, the one that "auto" takes marked."""
    caption = (
        "worth: delivered in time, of what was offered; SIC: share of source tuples in results, lowest and mean "
        "output; min., pri.: share of minima and priorities held; p50, p99: age of results; tuples: processed for "
        "outputs; ms: to decide about a batch; "
        f"*: taken by auto ({taken})"
    )
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), caption=caption, caption_justify="left")
    table.add_column("shedder", no_wrap=True)
    for heading in _HEADINGS:
        table.add_column(heading, justify="right", no_wrap=True)
    first = best(found).shedder
    for each in found:
        cells = (
            f"{100 * each.worth:.1f}",
            *(f"{share:.2f}" for share in (each.lowest_sic, each.mean_sic, each.jain)),
            *("-" if share is None else f"{share:.2g}" for share in (each.minima_held, each.priorities_held)),
            *("-" if age is None else f"{age:.1f}" for age in (each.age_p50_s, each.age_p99_s)),
            _short(each.tuples),
            "-" if each.decide_ms is None else f"{each.decide_ms:.1f}",
        )
        mark = " *" if each.shedder == taken else ""
        table.add_row(f"{each.shedder}{mark}", *cells, style="bold" if each.shedder == first else "")
    return table


def _short(count: float) -> str:
    """A count in five characters.

    >>> _short(12_345_678), _short(45_600), _short(999)
    ('12.3M', '45.6k', '999')
    """
    if count >= 1e6:
        return f"{count / 1e6:.1f}M"
    return f"{count / 1e3:.1f}k" if count >= 1e3 else f"{count:.0f}"


def draw(figure: Any, found: Sequence[Measured], title: str) -> None:
    """Four panels with a bar for each shedder: worth, SIC, age of results, time to decide."""
    names = [each.shedder for each in found]
    at = list(range(len(found)))
    worth, sic, age, decide = figure.subplots(1, 4, sharey=True)
    top = best(found).shedder
    colours = ["tab:red" if name == NO_SHEDDING else "tab:green" if name == top else "tab:blue" for name in names]
    worth.barh(at, [100 * each.worth for each in found], color=colours)
    worth.set_xlabel("worth in time (% of offered)")
    worth.set_yticks(at, names)
    worth.invert_yaxis()
    sic.barh([each - 0.2 for each in at], [each.mean_sic for each in found], height=0.4, label="mean output")
    sic.barh([each + 0.2 for each in at], [each.lowest_sic for each in found], height=0.4, label="lowest output")
    sic.set_xlim(0, 1)
    sic.set_xlabel("SIC")
    sic.legend(fontsize=7, loc="lower right")
    age.barh(at, [each.age_p99_s or 0.0 for each in found], color=colours)
    age.set_xlabel("p99 age of results (s)")
    decide.barh(at, [each.decide_ms or 0.0 for each in found], color="grey")
    decide.set_xlabel("time to decide (ms)")
    for axes, shares in ((worth, [each.minima_held for each in found]),):
        for place, share in zip(at, shares, strict=True):
            if share is not None and share < 1:
                axes.annotate("minimum broken", (1, place), fontsize=6, va="center", color="white")
    figure.suptitle(title)
