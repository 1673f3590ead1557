"""Arguments that several commands take. A wrong one ends a command with exit code 2, before any work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from jettison.errors import JettisonError
from jettison.network.graph import Graph
from jettison.plan.shedders.registry import SHEDDERS
from jettison.spec.profile_section import check_rate

SpecPath = Annotated[
    Path,
    typer.Argument(
        metavar="SPEC",
        help="A network in a file: YAML such as examples/taxi.yaml, a query in DISSP's XML, or a folder of those.",
        show_default=False,
    ),
]
Rates = Annotated[
    list[str] | None,
    typer.Option(
        "--rows-per-s",
        metavar="SOURCE=N",
        help="Rows per second of a source, in place of those in the file's profile. May be repeated.",
    ),
]
Headroom = Annotated[
    float | None,
    typer.Option(
        metavar="SHARE",
        help="Share of the trigger that a batch may take, above 0 and at most 1, in place of the file's "
        "(0.9 unless it says otherwise).",
    ),
]
Shedder = Annotated[
    str | None, typer.Option(metavar="NAME", help=f"The shedder, in place of the file's: {', '.join(SHEDDERS)}.")
]


@contextmanager
def wrong_argument() -> Iterator[None]:
    """Let what is refused inside be the fault of an argument, not of a file or a run."""
    try:
        yield
    except JettisonError as error:
        raise typer.BadParameter(str(error)) from error


def check_seconds(option: str, seconds: float) -> None:
    """Refuse a length of time that is not above 0."""
    if not 0 < seconds < float("inf"):
        raise typer.BadParameter(f"{option} is {seconds:g}: give a number of seconds above 0.")


def make_folder(folder: Path) -> None:
    """Make the folder for results: now, not after minutes of work."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise typer.BadParameter(f"--out {str(folder)!r} is no folder to write into: {error.strerror}.") from error


def given_rates(option: str, given: Iterable[str], graph: Graph) -> dict[str, float]:
    """Rates given on the command line as "source=rows"."""
    rates: dict[str, float] = {}
    for text in given:
        name, equals, amount = text.partition("=")
        try:
            rate = float(amount.replace("_", ""))
        except ValueError:
            equals, rate = "", 0.0
        if not equals:
            raise typer.BadParameter(f"{option} {text!r} is not of the form SOURCE=N, such as trips=20000.")
        with wrong_argument():
            check_rate(option, graph, name, rate)
        rates[name] = rate
    return rates
