"""`jettison experiment`: list them, run them, say what they found."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from jettison.app.arguments import make_folder
from jettison.app.logs import Quiet, Verbose, show_log
from jettison.app.screen import err, fault, figure, first_line, out, plain_table
from jettison.experiments import harness
from jettison.experiments.harness import Experiment, Result
from jettison.network.columns.words import meant

app = typer.Typer(help="List and run the experiments behind our claims.")


@app.command("list")
def list_() -> None:
    """List all experiments, with the section of the paper that each one repeats ("ours" where there is none)."""
    table = plain_table()
    for heading in ("name", "from", "what it shows"):
        table.add_column(heading, overflow="fold", no_wrap=heading != "what it shows")
    for each in harness.EXPERIMENTS:
        table.add_row(each.name, each.section, each.summary)
    out.print(table)


@app.command("run")
def run(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A name from `jettison experiment list`.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Run all experiments, one after another.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Run the short form, which the test suite uses.")] = False,
    json: Annotated[
        bool,
        typer.Option("--json", help="Print JSON alone, a line for each result."),
    ] = False,
    folder: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="The folder for the CSV and the picture.")
    ] = Path("out/experiments"),
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Run an experiment, show its metrics and checks, and write a CSV and a picture. Exit code 1: a check failed.

    \b
    jettison experiment run planning
    jettison experiment run burst --quick --json
    """
    if (name is None) == (not all_):
        raise typer.BadParameter("give the NAME of an experiment or --all, one of the two.")
    # experiments say themselves how far they are: of their runs only what goes wrong, unless asked for
    show_log(verbose=verbose, quiet=quiet, live=True)
    chosen = harness.EXPERIMENTS if name is None else (_known(name),)
    make_folder(folder)
    screen = err if json else out
    results = [_run(each, quick, folder, screen, keep_going=all_, quiet=quiet) for each in chosen]
    found = [result for result in results if result is not None]
    if len(results) > 1:
        good = sum(result.passed for result in found)
        typer.echo(f"{good} of {len(results)} experiments passed", err=json)
    if json:
        for result in found:
            typer.echo(result.to_json())
    if len(found) < len(results) or not all(result.passed for result in found):
        raise typer.Exit(1)


def _known(name: str) -> Experiment:
    found = harness.experiment(name)
    if found is None:
        known = ", ".join(each.name for each in harness.EXPERIMENTS)
        near = meant(name, [each.name for each in harness.EXPERIMENTS])
        raise typer.BadParameter(f"there is no experiment {name!r}{near}: choose one of {known}.")
    return found


def _run(
    each: Experiment, quick: bool, folder: Path, screen: Console, *, keep_going: bool, quiet: bool
) -> Result | None:
    """One experiment, shown on `screen` and saved; None when it broke off and others are to follow."""
    with nullcontext() if quiet else err.status(f"{each.name} is running") as status:

        def say(message: str) -> None:
            if status is not None:
                err.print(f"{each.name}: {message}")
                status.update(f"{each.name}: {message}")

        try:
            result = each.run(quick=quick, say=say)
        except Exception as error:
            if not keep_going:
                raise
            fault(f"{each.name} broke off: {type(error).__name__}: {first_line(error)}")
            return None
    _show(result, screen)
    for path in harness.save(result, folder):
        typer.echo(f"wrote {path}", err=screen.stderr)
    return result


def _show(result: Result, screen: Console) -> None:
    metrics = plain_table(title=result.name)
    metrics.add_column("metric", overflow="fold")
    metrics.add_column("value", justify="right", no_wrap=True)
    for name, value in result.metrics.items():
        metrics.add_row(name, figure(value))
    checks = plain_table()
    checks.add_column("check", overflow="fold")
    checks.add_column("result", no_wrap=True)
    for claim, holds in result.checks.items():
        checks.add_row(claim, "pass" if holds else "FAIL", style="" if holds else "bold red")
    for table in (metrics, checks):
        if table.row_count:
            screen.print(table)
