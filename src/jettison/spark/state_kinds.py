"""What kind of state each operator keeps in the checkpoint, so that one that becomes another kind is told so.

checkpoint/state/kinds.json   by operator: a join of streams, windows of event time, windows that count rows

Operators are known by name. What one kind has written means nothing to another, and state that nobody reads any more
would be left behind in silence.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

from jettison.errors import CheckpointError
from jettison.spark.files import Folder
from jettison.spark.sealed import read_sealed, write_sealed

_KINDS = "kinds.json"

JOIN = "rows that wait at a join of streams"
TIMES = "windows of event time"
COUNTS = "windows that count rows"


def check_kinds(folder: Folder, now: Mapping[str, Collection[str]]) -> None:
    """Refuse operators that have kept something of another kind under the same name; `now` has those of each kind."""
    before = _before(folder)
    for name, kind in _by_name(now).items():
        if before.get(name, kind) != kind:
            word = "join" if kind == JOIN else "aggregate"
            raise CheckpointError(
                f"{word} {name!r}: the checkpoint keeps {before[name]}, and now it keeps {kind}: declare it as it "
                f"was, give it another name, or start with a new checkpoint."
            )


def remember_kinds(folder: Folder, now: Mapping[str, Collection[str]]) -> None:
    """Write down what is kept, when nothing else stands in the way of a start.

    What an operator kept that is declared no more is still in its folder: that too, for when the name comes back.
    """
    before = _before(folder)
    after = {**before, **_by_name(now)}
    if after != before:
        write_sealed(folder, _KINDS, json.dumps(after))


def _before(folder: Folder) -> dict[str, str]:
    try:
        text = read_sealed(folder, _KINDS)
        found: dict[str, str] = {} if text is None else json.loads(text)
    except ValueError as error:
        raise CheckpointError(
            f"checkpoint: state/{_KINDS}, which says what operators keep, cannot be read ({error}): delete it, "
            f"and it is written anew from what is declared, or start with a new checkpoint."
        ) from error
    return found


def _by_name(now: Mapping[str, Collection[str]]) -> dict[str, str]:
    return {name: kind for kind, names in now.items() for name in names}
