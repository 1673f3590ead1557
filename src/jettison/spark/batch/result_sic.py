"""The column `_sic` of outputs with `quality=True`: its SQL for every batch, and what it rests on.

While nothing is lost it is the number 1, and nothing is computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jettison.network.event_time.watermarks import BatchMarks
from jettison.network.graph import Graph
from jettison.plan.plan import Plan
from jettison.spark.compile.drops import TIME
from jettison.statistics.profile import Profile
from jettison.statistics.records import Records
from jettison.statistics.samples import BatchSample
from jettison.statistics.sic.results import (
    WindowEntries,
    entry_from_dict,
    entry_of,
    entry_to_dict,
    last_windows,
    planned_shares,
)

WHOLE = "1D"
"""Nothing was lost."""
_MOST_WINDOWS = 2000
"""Of so many windows that close in one batch each has its own; earlier ones have that of the first of these."""


class ResultSic:
    """What results say of themselves, batch by batch."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._wanted = [output.name for output in graph.outputs if output.quality]
        found = {name: last_windows(graph, name) for name in self._wanted}
        self._windows = {name: windows for name, windows in found.items() if windows is not None}
        self._entries = {name: WindowEntries() for name in self._windows}
        self._newest: dict[str, Any] = {}

    def sql(self, plan: Plan, records: Records, marks: BatchMarks | None, profile: Profile) -> dict[str, str]:
        """The column of every output that has one, before the batch runs; outputs that lost nothing are left out."""
        if not self._wanted:
            return {}
        found: dict[str, str] = {}
        keeps = {arc: plan.keep(arc) for arc in plan.drops if plan.drops[arc].judges != "window"}
        if any(keep < 1 for keep in keeps.values()) or any(records.skipped.values()) or any(records.gone.values()):
            shares = planned_shares(self._graph, profile, records, keeps)
            found = {name: f"{shares[name]!r}D" for name in self._wanted if name not in self._windows}
        for name, entries in self._entries.items():
            if marks is not None and not entries.whole:
                found[name] = self._of_windows(name, entries, marks)
        return found

    def _of_windows(self, name: str, entries: WindowEntries, marks: BatchMarks) -> str:
        window, aggregate = self._windows[name].window, self._windows[name].name
        until_us, open_us = marks.largest_us(aggregate), marks.open_us(aggregate)
        if open_us is None:
            return WHOLE
        first_us = marks.closing_from_us(aggregate)
        oldest_us = next((each.from_us for each in entries.entries if each.from_us is not None), None)
        if first_us is None:
            first_us = open_us if oldest_us is None else window.first_open_us(oldest_us)
        first_us = max(first_us, open_us - _MOST_WINDOWS * window.slide_us)
        starts = range(first_us, max(open_us, first_us + window.slide_us), window.slide_us)
        shares = [entries.share(start, start + window.size_us, until_us) for start in starts]
        at = f"unix_micros(CAST({TIME} AS timestamp))"
        place = f"CAST(({at} - {first_us}L) DIV {window.slide_us}L AS int)"
        values = ", ".join(f"{share:.6f}D" for share in shares)
        return f"coalesce(get(array({values}), greatest({place}, 0)), {WHOLE})"

    def after(self, sample: BatchSample, plan: Plan, marks: BatchMarks | None) -> None:
        """Take in a batch that has run; `marks` are how far event times had got before it."""
        if marks is None:
            return
        by_window = [arc for arc, drop in plan.drops.items() if drop.judges == "window"]
        for name, windows in self._windows.items():
            entry = entry_of(self._graph, name, sample, by_window, marks.largest_us(windows.name))
            self._entries[name] = self._entries[name].plus(entry, marks.open_us(windows.name))
            self._newest[name] = entry_to_dict(entry)

    def written(self) -> dict[str, Any]:
        """What is written down of the last batch."""
        return {"window_parts": dict(self._newest)} if self._newest else {}

    def restore(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Go on with the batches of a source time window as they were written down, the newest first: it is longer than
        any window that is open."""
        for content in reversed(records):
            for name, entry in content.get("window_parts", {}).items():
                if name in self._entries:
                    self._entries[name] = self._entries[name].plus(entry_from_dict(entry))
