"""The cost model of maps, as a run has left it in its checkpoint: what `jettison explain` shows. Needs no Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from jettison.app.screen import number, percent, plain_table
from jettison.errors import CheckpointError, PlanError
from jettison.statistics.sketches.cost_pair import CostPair
from jettison.statistics.sketches.telling_keys import KeyCost, key_costs
from jettison.telemetry.cost_view import shown_keys


def cost_tables(checkpoint: Path) -> Iterator[Table]:
    """A table for every map whose costs were published; none where no run has left any."""
    index = checkpoint / "costs" / "pairs.json"
    if not index.is_file():
        return
    for operator, used in _index(index).items():
        if operator != "crc32" and used:
            name, first = used[-1][:2]
            yield _table(operator, _read(checkpoint, name), _names(checkpoint, name), first)


def _index(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text())
        return found
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"which costs were published cannot be read from {path}: {error}. Restore it from a copy, or delete it: "
            f"costs are learned anew."
        ) from error


def _read(checkpoint: Path, name: str) -> CostPair:
    path = checkpoint / "costs" / f"{name}.pair"
    try:
        return CostPair.from_bytes(path.read_bytes())
    except (OSError, PlanError, ValueError) as error:
        raise CheckpointError(f"costs {name!r} cannot be read from {path}: {error}") from error


def _names(checkpoint: Path, name: str) -> dict[int, str]:
    path = checkpoint / "costs" / f"{name}.keys.json"
    found = json.loads(path.read_text()) if path.is_file() else {}
    return {int(key): text for key, text in found.items() if key != "crc32"}


def _table(operator: str, pair: CostPair, names: dict[int, str], batch: int) -> Table:
    mean = f"{pair.cells.tuples:,} tuples, {number(pair.mean_us)} us each"
    table = plain_table(
        title=f"map {operator}: costs used since batch {batch}, of {mean}",
        caption=f"error: by how much a cost may be off, with a probability of {percent(1 - pair.cells.delta)}; "
        "of work: the share of all work that the key causes",
    )
    table.add_column("key", overflow="fold")
    for heading in ("cost\nus/row", "error\nus", "rows", "of\nwork"):
        table.add_column(heading, justify="right", no_wrap=True)
    dearest, frequent = shown_keys(key_costs(pair, names))
    for heading, keys in (("the dearest", dearest), ("the most frequent", frequent)):
        table.add_section()
        table.add_row(heading, "", "", "", "")
        for each in keys:
            table.add_row(*_cells(each))
    return table


def _cells(each: KeyCost) -> tuple[str | Text, ...]:
    error = "unknown" if each.error_us == float("inf") else number(each.error_us)
    # as it is: brackets in a key are no markup
    return (Text(f"  {each.key}"), number(each.cost_us), error, f"{each.count:,}", percent(each.work_share))
