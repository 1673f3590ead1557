"""`jettison top`: all queries of a run, the lowest SIC first, from its checkpoint: while it runs, or afterwards."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from jettison.app.arguments import check_seconds
from jettison.app.screen import number, out, plain_table
from jettison.errors import StartError
from jettison.telemetry.columns import shown_ms
from jettison.telemetry.queries import QueryLine, query_lines

_OF_A_CHECKPOINT = ("network.json", "ledger")


def top(
    checkpoint: Annotated[
        Path, typer.Argument(metavar="CHECKPOINT", help="The checkpoint folder of a run.", show_default=False)
    ],
    seconds: Annotated[
        float | None,
        typer.Option("--over", metavar="SECONDS", help="Average over the last seconds, not the source time window."),
    ] = None,
    watch: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Show it anew every so many seconds, until Ctrl-C."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> None:
    """List the queries of a run, the lowest SIC first: throughput, tuples lost, latency.

    It reads the ledger in the checkpoint and changes nothing, so the run may go on meanwhile.

    \b
    jettison top out/checkpoint
    jettison top out/checkpoint --watch 2
    """
    for option, value in (("--over", seconds), ("--watch", watch)):
        if value is not None:
            check_seconds(option, value)
    if not checkpoint.is_dir():
        raise StartError(f"checkpoint {str(checkpoint)!r} is no folder on this machine: give that of a run.")
    if not any((checkpoint / name).exists() for name in _OF_A_CHECKPOINT):
        raise StartError(
            f"folder {str(checkpoint)!r} is no checkpoint, as it has no {_OF_A_CHECKPOINT[0]}: give that of a run."
        )
    if as_json:
        batch, lines = _look(checkpoint, seconds)
        typer.echo(json.dumps({"batch": batch, "queries": [asdict(line) for line in lines]}))
    elif watch is None:
        out.print(_screen(*_look(checkpoint, seconds)))
    else:
        _keep_showing(checkpoint, seconds, watch)


def _keep_showing(checkpoint: Path, seconds: float | None, every_s: float) -> None:
    with suppress(KeyboardInterrupt), Live(console=out, auto_refresh=False) as live:
        while True:
            live.update(_screen(*_look(checkpoint, seconds)), refresh=True)
            time.sleep(every_s)


def _look(checkpoint: Path, seconds: float | None) -> tuple[int | None, list[QueryLine]]:
    """The newest batch in the ledger, and the queries as they are then."""
    from jettison.spark.checkpoint.logs import Ledger
    from jettison.spark.checkpoint.small_files import LocalFolder

    ledger = Ledger(LocalFolder(checkpoint))
    newest = ledger.files.newest()
    records: Iterator[dict[str, Any]] = iter(()) if newest is None else ledger.before(newest + 1)
    return newest, query_lines(records, seconds)


def _screen(batch: int | None, lines: list[QueryLine]) -> Group | Text:
    if batch is None or not lines:
        return Text("no batch is in its ledger yet" if batch is None else "its ledger is of an earlier version")
    mean = sum(line.sic for line in lines) / len(lines)
    head = Text(f"batch {batch}: {len(lines)} queries, SIC {lines[0].sic:.3f} to {lines[-1].sic:.3f}, mean {mean:.3f}")
    return Group(head, _table(lines))


def _table(lines: list[QueryLine]) -> Table:
    table = plain_table()
    table.add_column("query")
    for title in ("SIC", "tuples/s", "lost/s", "results/s", "p50", "p95"):
        table.add_column(title, justify="right", no_wrap=True)
    for line in lines:
        rates = (number(each) for each in (line.tuples_per_s, line.lost_per_s, line.rows_per_s))
        table.add_row(line.name, f"{line.sic:.3f}", *rates, shown_ms(line.p50_ms), shown_ms(line.p95_ms))
    return table
