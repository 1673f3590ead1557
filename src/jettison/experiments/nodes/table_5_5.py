"""Table 5.5: entries and bytes of feasible input tables for 2, 4 and 8 inputs (planning)."""

from __future__ import annotations

from typing import Any

from jettison.experiments.harness import Result, Say
from jettison.experiments.nodes.fig_5_16 import BYTES, ENTRIES, tables_of


def run(*, quick: bool, say: Say) -> Result:
    rows: list[dict[str, Any]] = []
    for inputs, printed in ENTRIES.items():
        seconds, tables = tables_of(inputs)
        fit = tables.fits["A"]
        rows.append(
            {
                "inputs": inputs,
                "entries": len(fit),
                "printed_entries": printed,
                "ratio": round(len(fit) / printed, 3),
                "bytes_per_entry": fit.bytes_per_entry,
                "printed_bytes": BYTES[inputs],
                "seconds": round(seconds, 4),
            }
        )
    metrics = {f"entries_{row['inputs']}": row["entries"] for row in rows} | {
        "entries": rows[-1]["entries"],
        "furthest_ratio": max(max(row["ratio"], 1 / row["ratio"]) for row in rows),
    }
    checks = {
        "entries are within a factor of 2 of 46, 984 and 42,472": metrics["furthest_ratio"] <= 2,
        "an entry has no more bytes than the thesis's": all(
            row["bytes_per_entry"] <= row["printed_bytes"] for row in rows
        ),
    }
    return Result("table-5-5", metrics, checks, rows, lambda figure: _draw(figure, rows))


def _draw(figure: Any, rows: list[dict[str, Any]]) -> None:
    axes = figure.subplots()
    axes.plot([row["inputs"] for row in rows], [row["entries"] for row in rows], marker="o", label="found")
    axes.plot([row["inputs"] for row in rows], [row["printed_entries"] for row in rows], marker="x", label="table 5.5")
    axes.set_yscale("log")
    axes.set_xlabel("inputs")
    axes.set_ylabel("entries")
    axes.set_title("Size of a feasible input table, spread 10 % (planning)")
    axes.legend()
