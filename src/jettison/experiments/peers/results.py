"""What engines have written: which files are there since when, and whether all have the same results."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from jettison.experiments.speed.native import AGGREGATES, SCENARIOS
from jettison.network.windows.time_windows import END, START

_MANIFEST = "_spark_metadata"

Micros = npt.NDArray[np.int64]


def event_column(output: str) -> str:
    """The time that a result is about: a trip's pickup, or the end of a window."""
    return "pickup" if isinstance(SCENARIOS["three_outputs"][output], str) else END


def delivered_files(folder: Path) -> dict[Path, float]:
    """The files that a reader of an output sees, and since when, in seconds since 1970.

    Native streaming lists them in a manifest per batch; Flink and Jettison rename them when they are complete, which
    the inode tells. A batch of Jettison is a folder, complete with its last change.
    """
    manifest = folder / _MANIFEST
    if manifest.is_dir():
        return _in_manifests(manifest)
    found = {}
    for path in _visible(folder):
        since_s = path.stat().st_ctime
        found[path] = max(since_s, path.parent.stat().st_ctime) if path.parent != folder else since_s
    return found


def _visible(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        names = path.relative_to(folder).parts
        if path.is_file() and not any(name.startswith((".", "_")) for name in names):
            yield path


def _in_manifests(folder: Path) -> dict[Path, float]:
    logs = {int(path.name.partition(".")[0]): path for path in folder.iterdir() if path.name[0].isdigit()}
    found: dict[Path, float] = {}
    for _, path in sorted(logs.items()):  # a compacted one repeats those before it
        for line in path.read_text().splitlines()[1:]:
            listed = Path(json.loads(line)["path"].removeprefix("file:"))
            found.setdefault(Path("/", *listed.parts[1:]), path.stat().st_mtime)
    return found


def micros(column: pa.ChunkedArray) -> Micros:
    """Times in microseconds since 1970, whatever unit a file has them in.

    >>> import pyarrow as pa
    >>> micros(pa.chunked_array([pa.array([1_500_000], pa.timestamp("ns"))]))
    array([1500])
    """
    kind = pa.timestamp("us", tz=column.type.tz)
    found: Micros = column.cast(kind, safe=False).cast(pa.int64()).to_numpy()
    return found


def equal_results(folders: Mapping[str, Path]) -> int:
    """How many rows all engines have alike, in every output; 0 where one differs.

    Of windows those count that end until the last end that all engines have got to.
    """
    compared = 0
    for output in SCENARIOS["three_outputs"]:
        tables = [_table(folder / output, output) for folder in folders.values()]
        if output != "alerts":
            until = min(table[END].max() if len(table[END]) else 0 for table in tables)
            tables = [{name: each[table[END] <= until] for name, each in table.items()} for table in tables]
        first, *others = tables
        if not len(first[event_column(output)]):
            return 0
        for other in others:
            if not all(np.array_equal(first[name], other[name]) for name in first):
                return 0
        compared += len(first[event_column(output)])
    return compared


def _table(folder: Path, output: str) -> dict[str, Any]:
    """All rows in the order of trips, or of windows and zones."""
    windows = output != "alerts"
    names = ["zone", START, END, *AGGREGATES] if windows else ["trip", "pickup", "zone", "cents"]
    parts = [pq.ParquetFile(path).read(columns=names) for path in delivered_files(folder)]
    columns: dict[str, Any] = {}
    for name in names:
        chunks = [chunk for part in parts for chunk in _numbers(part[name])]
        columns[name] = np.concatenate(chunks) if chunks else np.zeros(0)
    order = np.lexsort((columns["zone"], columns[START])) if windows else np.argsort(columns["trip"], kind="stable")
    return {name: each[order] for name, each in columns.items()}


def _numbers(column: pa.ChunkedArray) -> list[Any]:
    return [micros(column) if pa.types.is_timestamp(column.type) else column.to_numpy()]
