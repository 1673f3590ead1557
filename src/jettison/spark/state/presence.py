"""Which operators keep state in a checkpoint, what they compute, and since which batch they have been watching.

checkpoint/state/operators.json   by operator of the network that ran last: its lineage, its first batch, its folder
checkpoint/state/seen.json        after each of the last two batches, the newest event time so far by place

An operator that is not in the network while batches are run loses its state: its folder is deleted, and when it comes
back it begins anew. Both files are written when batches run, so that a start that is refused, or reads nothing, changes
nothing.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from jettison.errors import CheckpointError
from jettison.network.event_time.coverage import Watch, keeping, whole_after_us
from jettison.network.graph import Graph
from jettison.network.identity.code_hash import PYTHON, changed, other_python
from jettison.network.identity.lineage_hash import is_derived, lineage
from jettison.network.operators import Aggregate, Apply, Operator, StreamJoin, kind_of
from jettison.network.windows.slice_groups import SliceGroup
from jettison.spark.checkpoint.small_files import Folder
from jettison.spark.state.presence_files import (
    FOLDERS,
    KINDS,
    OPERATORS,
    Entry,
    named_where_damaged,
    read_entry,
    read_json,
    write_entries,
)
from jettison.spark.state.seen_times import SeenTimes
from jettison.spark.state.state_kinds import forget_kinds

_REMEDY = "declare it as it was, give it another name, or start with a new checkpoint"
_NUMBERED = re.compile(r"\.\d+\Z")

log = logging.getLogger("jettison")


class Presence:
    """The operators of a run in its checkpoint. `notes` says, a sentence each, what began anew."""

    def __init__(self, folder: Folder, graph: Graph, code: Mapping[str, tuple[str, ...]] | None = None) -> None:
        self._folder = folder
        self._graph = graph
        self._code = dict(code or {})
        self._lineage = {each.name: lineage(graph, each.name) for each in keeping(graph)}
        self._times = SeenTimes(folder, graph, self._code)
        content = read_json(folder, OPERATORS)
        self._old = content is None
        with named_where_damaged(folder, OPERATORS):
            self._before = {name: self._entry(name, each) for name, each in (content or {}).items()}
        if self._old:
            self._before = _entries_before(folder, self._lineage)
        self._entries: dict[str, Entry] = {}
        self._anew: dict[str, str] = {}
        self._folders: dict[str, str] = {}
        self._after_us: dict[str, float] | None = None
        self._begun = False
        self.notes: list[str] = []
        self._check()

    @property
    def graph(self) -> Graph:
        """The network with aggregates sharing slices as those are kept."""
        aggregates = {each.name for each in self._graph.aggregates}
        together = {name: entry.folder for name, entry in self._kept().items() if name in aggregates}
        return replace(self._graph, together=together)

    def unnamed(self, name: str) -> bool:
        """Whether an operator was given no name: what does not fit it any more need not be refused."""
        return is_derived(self._graph, name)

    def begin_anew(self, name: str, reason: str) -> None:
        """Do not go on with what is kept for an operator, for this reason."""
        self._anew[name] = reason

    def folders(self, groups: Sequence[SliceGroup]) -> Mapping[str, str]:
        """By group of aggregates, the folder of its slices; called once, before the first batch.

        Slices that were shared by aggregates of one stream cannot be shared when they read two: one goes on with them.
        """
        kept, taken = self._kept(), {each.folder for each in self._kept().values()}
        used: set[str] = set()
        for group in groups:
            known = [kept[member.name].folder for member in group.members if member.name in kept]
            if known and known[0] in used:
                for member in group.members:
                    self._moved(member, known[0])
                known = []
            folder = known[0] if known else _free(group.name, used | taken)
            used.add(folder)
            self._folders |= {member.name: folder for member in group.members}
        return {group.name: self._folders[group.name] for group in groups}

    def begin(self, batch: int) -> None:
        """Note who watches from this batch on, before it is run; only the first batch of a run makes a difference."""
        if self._begun:
            return
        self._begun = True
        kept = self._kept()
        for name, now in self._lineage.items():
            folder = self._folders.get(name, name)
            if name in kept:
                self._entries[name] = replace(kept[name], code=self._code.get(name), python=PYTHON)
                self._adopted(name)
            else:
                self._entries[name] = Entry(now, self._watch(name, batch), folder, self._code.get(name), PYTHON)
        if batch > 0:
            self._say(batch, kept)
        # first nobody owns what is deleted then: a start that is broken off in between begins anew too
        self._write(kept)
        self._clear(kept)
        self._write(self._entries)

    def keeps(self, name: str) -> bool:
        """Whether an operator goes on with what the checkpoint has for it; what another has left is not its own."""
        return name in self._kept()

    def _clear(self, kept: Collection[str]) -> None:
        """Delete the folders that no operator goes on with, and forget what those kept that left."""
        used = {self._entries[name].folder for name in kept}
        owned = {
            *self._entries,
            *(each.folder for each in self._before.values()),
            *(read_json(self._folder, KINDS) or {}),
        }
        for folder in self._folder.folders(""):
            if folder not in used and (folder in owned or _NUMBERED.sub("", folder) in owned):
                self._folder.delete(folder)
        forget_kinds(self._folder, self._entries)

    def known_in(self, name: str, batch: int) -> bool:
        """Whether what was recorded of an operator after a batch is its own: it was watching then."""
        entry = self._watching.get(name)
        return entry.watch.from_batch <= batch if entry is not None else not self._waits(name)

    def watched_before(self, name: str, batch: int) -> bool:
        """Whether an operator has kept something in a batch before this one."""
        entry = self._watching.get(name)
        return entry is not None and entry.watch.from_batch < batch

    def left_records(self, name: str, batch: int) -> bool:
        """Whether an operator has left a record of every batch that it watched, and of one before this at least.

        Joins and windows of rows of earlier versions left none of batches that brought them nothing.
        """
        before = self._before.get(name)
        return self.watched_before(name, batch) and (before is None or before.code is not None)

    def watch(self, name: str) -> Watch:
        entry = self._watching.get(name)
        return Watch() if entry is None else entry.watch

    def whole_after_us(self, name: str) -> float:
        """The event time after which the results of an aggregate are whole."""
        if self._after_us is None:
            self._after_us = whole_after_us(self._graph, {name: each.watch for name, each in self._entries.items()})
        return self._after_us[name]

    def saw(self, batch: int, newest_us: Mapping[str, int | None]) -> None:
        """Write down how far event times have got with a batch, when all of its rows have been looked at; None where
        some were not."""
        self._settle(self._times.saw(batch, newest_us))

    def _settle(self, newest_us: Mapping[str, int]) -> None:
        """Where nobody knows how far times had got before an operator came: not further than when they are seen first.

        An operator is settled when that is known of all places above it.
        """
        settled = {}
        for name, entry in self._entries.items():
            places = self._times.above(name)
            seen = {place: time for place, time in newest_us.items() if place in places}
            if not entry.watch.settled and set(seen) - set(entry.watch.before_us):
                before_us = {**seen, **entry.watch.before_us}
                watch = replace(entry.watch, before_us=before_us, settled=set(places) == set(before_us))
                settled[name] = replace(entry, watch=watch)
        if settled:
            self._entries |= settled
            self._after_us = None
            self._write(self._entries)

    @property
    def _watching(self) -> Mapping[str, Entry]:
        """Who watches; before the first batch of a run, those that go on with what they have."""
        return self._entries if self._begun else self._kept()

    def _waits(self, name: str) -> bool:
        """Whether an operator begins with the first batch of this run, which has not come yet."""
        return not self._begun and name in self._lineage

    def _kept(self) -> dict[str, Entry]:
        """Operators that go on with what they have."""
        found = {name: self._before[name] for name in self._lineage if name in self._before}
        return {name: each for name, each in found.items() if name not in self._anew}

    def _watch(self, name: str, batch: int) -> Watch:
        """An operator that comes with this batch."""
        if batch == 0:
            return Watch()
        seen, places = self._times.after(batch - 1), self._times.above(name)
        if seen is None:
            return Watch(batch, settled=False)
        known = {place: time for place in places if (time := seen.get(place)) is not None}
        functions = [place for place in places if isinstance(self._graph.by_name[place], Apply)]
        settled = all(place in known for place in functions) and not any(seen.get(p, 0) is None for p in places)
        return Watch(batch, known, settled=settled)

    def _check(self) -> None:
        """Refuse what was given a name and is something else now; what was given none begins anew."""
        for name in self._lineage:
            reason = _changed(self._before.get(name), self._lineage[name], self._code.get(name, ()))
            if reason is None:
                continue
            if self.unnamed(name):
                self.begin_anew(name, reason)
                continue
            raise CheckpointError(f"{kind_of(self._graph.by_name[name])} {name!r}: {reason}: {_REMEDY}.")

    def _moved(self, member: Aggregate, folder: str) -> None:
        if not self.unnamed(member.name):
            raise CheckpointError(
                f"aggregate {member.name!r}: the checkpoint keeps its slices in {folder!r} together with those of "
                f"another aggregate of the same stream, and now they read different streams: let both read one "
                f"stream, give it another name, or start with a new checkpoint."
            )
        self.begin_anew(member.name, "it shared its slices with another aggregate of one stream, and now they read two")

    def _adopted(self, name: str) -> None:
        """An operator of a checkpoint from before lineages were written down, which cannot be compared."""
        entry = self._entries[name]
        if entry.lineage == ():
            self._entries[name] = replace(entry, lineage=self._lineage[name])
            self._note(
                f"{kind_of(self._graph.by_name[name])} {name!r} goes on with the state that the checkpoint keeps under "
                f"its name; what it was computed of is not written down there: if it has changed since, start with a "
                f"new checkpoint."
            )

    def _say(self, batch: int, kept: Collection[str]) -> None:
        for name in self._lineage:
            if name in kept:
                continue
            operator = self._graph.by_name[name]
            reason = self._anew.get(name) or self._before_python(name)
            why = f" ({reason})" if reason else ""
            self._note(f"{kind_of(operator)} {name!r} begins anew with batch {batch}{why}: {_effect(operator)}.")
        left = [name for name in self._before if name not in self._lineage]
        if left:
            names = ", ".join(map(repr, sorted(left)))
            self._note(f"{names} left the network before batch {batch}: what the checkpoint kept for it is given up.")
        placed = [n for n in (read_json(self._folder, KINDS) or {}) if re.fullmatch(r"(aggregate|join)\d+", n)]
        placed = [name for name in placed if self._old and name not in self._lineage]
        if placed:
            self._note(
                f"the checkpoint keeps state under {', '.join(sorted(placed))}, names by the place in a program, which "
                f"after a change belong to something else: it is not used."
            )

    def _before_python(self, name: str) -> str | None:
        """Why an operator may be called otherwise than before, though the program is the same."""
        left = [each for other, each in self._before.items() if other not in self._lineage and each.code]
        found = {each.python for each in left} - {PYTHON}
        return other_python(min(found)) if found and self._code.get(name) and self.unnamed(name) else None

    def _note(self, sentence: str) -> None:
        self.notes.append(sentence)
        log.warning("network %s: %s", self._graph.name, sentence)

    def _entry(self, name: str, content: Mapping[str, Any]) -> Entry:
        """An operator as it was written down; places that there are no more are left out."""
        above = self._times.above(name) if name in self._lineage else ()
        times = self._times.by_operator(content["before_us"])
        return read_entry(content, {place: time for place, time in times.items() if place in above})

    def _write(self, names: Collection[str]) -> None:
        entries = {name: entry for name, entry in self._entries.items() if name in names}
        before_us = {name: self._times.by_place(entry.watch.before_us) for name, entry in entries.items()}
        write_entries(self._folder, entries, before_us)


def _changed(before: Entry | None, now: Sequence[str], code: tuple[str, ...]) -> str | None:
    """Why an operator is not the one that the checkpoint keeps state for; None where it is."""
    if before is None or not before.lineage:
        return None
    same_code = before.code is None or before.code == code
    if before.lineage == now and same_code:
        return None
    if before.python != PYTHON and before.code:
        return other_python(before.python)
    if before.lineage == now:
        assert before.code is not None
        return f"the checkpoint keeps its state, and since then {changed(before.code, code)}"
    then, there = _difference(before.lineage, now)
    return f"the checkpoint keeps its state for {then!r}, and now there is {there!r}"


def _effect(operator: Operator) -> str:
    if isinstance(operator, Aggregate):
        return "windows that it has not seen from their first row on are withheld"
    if isinstance(operator, StreamJoin):
        return "rows that came before find no partner, and windows of its pairs are withheld until none is missing"
    return "its windows count rows from 0 again"


def _difference(before: Sequence[str], now: Sequence[str]) -> tuple[str, str]:
    """The first lines of two lineages that differ."""
    for one, other in zip(before, now, strict=False):
        if one != other:
            return one, other
    return (before[len(now)], "nothing") if len(before) > len(now) else ("nothing", now[len(before)])


def _free(name: str, used: Collection[str]) -> str:
    count, folder = 1, name
    while folder in used:
        count += 1
        folder = f"{name}.{count}"  # no operator can be called so
    return folder


def _entries_before(folder: Folder, names: Collection[str]) -> dict[str, Entry]:
    """Operators of a checkpoint that says nothing of lineages: those that have state, under the name they have."""
    folders = read_json(folder, FOLDERS) or {}
    known = [name for name in names if name in folders or folder.names(name)]
    return {name: Entry((), Watch(), folders.get(name, name)) for name in known}
