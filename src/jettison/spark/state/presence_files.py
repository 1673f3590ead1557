"""The files that say which operators keep state, and how far event times have got."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from jettison.errors import CheckpointError
from jettison.network.event_time.coverage import Watch
from jettison.spark.checkpoint.sealed import read_sealed, write_sealed
from jettison.spark.checkpoint.small_files import Folder

OPERATORS = "operators.json"
SEEN = "seen.json"
FOLDERS = "slices.json"  # of checkpoints from before operators.json: by aggregate, the folder of its slices
KINDS = "kinds.json"


@dataclass(frozen=True)
class Entry:
    """An operator that keeps state: what it computes, since when, and where."""

    lineage: tuple[str, ...]
    watch: Watch
    folder: str
    code: tuple[str, ...] | None = None
    """The Python code that it runs (`code_identity`); None where it is not written down, and cannot be compared."""
    python: str = ""


def write_entries(folder: Folder, entries: Mapping[str, Entry], before_us: Mapping[str, Mapping[str, Any]]) -> None:
    """Write down who keeps state, unless it is written so already; `before_us` has times by place, as files have."""
    content = {
        name: {
            "lineage": list(entry.lineage),
            "from": entry.watch.from_batch,
            "before_us": before_us[name],
            "settled": entry.watch.settled,
            "folder": entry.folder,
            "code": None if entry.code is None else list(entry.code),
            "python": entry.python,
        }
        for name, entry in entries.items()
    }
    text = json.dumps(content)
    if read_sealed(folder, OPERATORS) != text:
        write_sealed(folder, OPERATORS, text)


def read_entry(content: Mapping[str, Any], before_us: Mapping[str, int]) -> Entry:
    """An operator as it was written down."""
    watch = Watch(content["from"], before_us, content["settled"])
    code = None if content.get("code") is None else tuple(content["code"])
    return Entry(tuple(content["lineage"]), watch, content["folder"], code, content.get("python", ""))


def read_json(folder: Folder, name: str) -> dict[str, Any] | None:
    with named_where_damaged(folder, name):
        text = read_sealed(folder, name)
        found = None if text is None else json.loads(text)
        if found is not None and not isinstance(found, dict):
            raise ValueError(f"it is a {type(found).__name__}, not an object")
    return found


@contextmanager
def named_where_damaged(folder: Folder, name: str) -> Iterator[None]:
    """Name the file whose content is not what it should be."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        reason = str(error) if type(error) is ValueError else f"{type(error).__name__}: {error}"
        raise CheckpointError(
            f"checkpoint: {folder.path}/{name}, which says whose state it keeps, cannot be read ({reason}): restore "
            f"it from a copy, or start with a new checkpoint."
        ) from error
