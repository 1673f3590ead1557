"""What kind of state each operator keeps in the checkpoint, so that one that becomes another kind is told so.

checkpoint/state/kinds.json   by operator: a join of streams, windows of event time, windows that count rows

Operators are known by name. What one kind has written means nothing to another, and state that nobody reads any more
would be left behind in silence.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

from jettison.errors import CheckpointError
from jettison.spark.checkpoint.sealed import read_sealed, write_sealed
from jettison.spark.checkpoint.small_files import Folder

_KINDS = "kinds.json"

JOIN = "rows that wait at a join of streams"
TIMES = "windows of event time"
COUNTS = "windows that count rows"


def check_kinds(folder: Folder, now: Mapping[str, Collection[str]]) -> None:
    """Refuse operators that have kept something of another kind under the same name; `now` has those of each kind."""
    before, owners = _before(folder), _owners(folder)
    for name, kind in _by_name(now).items():
        left = owners is not None and name not in owners  # its state is of no use to anybody
        if before.get(name, kind) != kind and not left:
            word = "join" if kind == JOIN else "aggregate"
            raise CheckpointError(
                f"{word} {name!r}: the checkpoint keeps {before[name]}, and now it keeps {kind}: declare it as it "
                f"was, give it another name, or start with a new checkpoint."
            )


def remember_kinds(folder: Folder, now: Mapping[str, Collection[str]]) -> None:
    """Write down what is kept, when nothing else stands in the way of a start.

    What an operator kept that is declared no more is in its folder until a batch runs: that too, until then.
    """
    before = _before(folder)
    after = {**before, **_by_name(now)}
    if after != before:
        write_sealed(folder, _KINDS, json.dumps(after))


def forget_kinds(folder: Folder, names: Collection[str]) -> None:
    """Keep what is written down of these operators only, when the folders of others are deleted."""
    before = _before(folder)
    after = {name: kind for name, kind in before.items() if name in names}
    if after != before:
        write_sealed(folder, _KINDS, json.dumps(after))


def _owners(folder: Folder) -> Collection[str] | None:
    """The operators of the network that ran last; None where that is not written down (`presence`)."""
    try:
        text = read_sealed(folder, "operators.json")
        found: dict[str, object] | None = None if text is None else json.loads(text)
    except ValueError:  # refused by name when it is read for what it says
        return None
    return found if isinstance(found, dict) else None


def _before(folder: Folder) -> dict[str, str]:
    try:
        text = read_sealed(folder, _KINDS)
        found: dict[str, str] = {} if text is None else json.loads(text)
        if not isinstance(found, dict):
            raise ValueError("it is no object")
    except ValueError as error:
        raise CheckpointError(
            f"checkpoint: {folder.path}/{_KINDS}, which says what operators keep, cannot be read ({error}): delete it, "
            f"and it is written anew from what is declared, or start with a new checkpoint."
        ) from error
    return found


def _by_name(now: Mapping[str, Collection[str]]) -> dict[str, str]:
    return {name: kind for kind, names in now.items() for name in names}
