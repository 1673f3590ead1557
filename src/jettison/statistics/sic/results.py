"""The SIC of single results, `_sic`: of a row its batch's share, of a window the share of the tuples of its time.

Both come from counts: no row carries anything.

- *A row* has the share of its batch: what the plan lets through of the tuples that the batch brought, those passed over
  unread or gone included, as mean over the output's sources.
- *A window* has its own: of the tuples that came in its time, the share that got into windows. Which those were is told
  by batches: a batch brought the event times from where the one before it had got to up to where it got itself. So a
  window that three batches filled, one of which was halved, and had twice the rows of the others, has 3 / 4. Windows
  that are dropped whole take nothing from those that are delivered.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jettison.network.graph import Graph
from jettison.network.operators import Aggregate
from jettison.statistics.load import flows
from jettison.statistics.profile import Profile
from jettison.statistics.records import Records
from jettison.statistics.samples import BatchSample
from jettison.statistics.sic.batch import Passed
from jettison.statistics.sic.layout import layout_of
from jettison.statistics.sic.window import SicWindow

MOST_ENTRIES = 5000
"""So many batches of open windows are told apart; the oldest count as one: windows that never close must not fill the
memory."""
_SCALE = 1000
"""Rows are multiplied by this where shares of them are counted, so that few rows are not rounded."""


def planned_shares(graph: Graph, profile: Profile, records: Records, keeps: Mapping[str, float]) -> dict[str, float]:
    """The share of a batch that each output gets, before it runs, when drops keep these shares of arcs.

    >>> from jettison.network import Network
    >>> net = Network("two"); s, t = net.source("s", "x int"), net.source("t", "x int")
    >>> _ = s.union(t).output("both")
    >>> planned_shares(net.graph, Profile({}, {}), Records({"s": 100, "t": 7}, skipped={"t": 7}), {"s": 0.5})
    {'both': 0.5}
    """
    rows = {name: float(count) for name, count in records.rows.items()}
    passing = flows(graph, profile, rows, keeps)
    arcs = {
        arc: (round(_SCALE * passing[arc] / keep), round(_SCALE * passing[arc]))
        for arc, keep in keeps.items()
        if keep > 0 and arc in passing
    }
    scaled = [
        {name: _SCALE * count for name, count in each.items()} for each in (records.rows, records.gone, records.skipped)
    ]
    sample = BatchSample(0, 0.0, 0.0, 0.0, scaled[0], gone=scaled[1], skipped=scaled[2], arcs=arcs)
    return SicWindow(graph, 1.0).after(sample, [arc for arc, keep in keeps.items() if keep <= 0]).all()


@dataclass(frozen=True)
class Entry:
    """What one batch brought to the windows of an output: by source the tuples that came, and those that got in. Their
    event times begin at `from_us` (None: nobody knows, it was the first)."""

    from_us: int | None
    came: Mapping[str, float]
    used: Mapping[str, float]

    @property
    def whole(self) -> bool:
        return all(self.used[name] >= came for name, came in self.came.items())

    def together(self, other: Entry) -> Entry:
        """This batch and the next one as one."""
        came = {name: rows + other.came.get(name, 0.0) for name, rows in self.came.items()}
        return Entry(self.from_us, came, {name: rows + other.used.get(name, 0.0) for name, rows in self.used.items()})


def last_windows(graph: Graph, output: str) -> Aggregate | None:
    """The windows of time whose results an output gets; None where it gets others, or none."""
    ways = layout_of(graph).ways[output]
    last = [name for name in ways.states if name in ways.last]
    found = graph.by_name[last[0]] if len(last) == 1 else None
    rows = any(name in ways.last for name in ways.sources)
    return found if isinstance(found, Aggregate) and not rows else None


def entry_of(graph: Graph, output: str, sample: BatchSample, by_window: Sequence[str], from_us: int | None) -> Entry:
    """What a batch brought to the windows of an output; `by_window` are arcs on which whole windows were dropped, which
    takes nothing from those that are delivered."""
    arcs = {arc: counts for arc, counts in sample.arcs.items() if arc not in by_window}
    passed = Passed.of(graph, replace(sample, arcs=arcs, unneeded={}, cut={}, withheld={}, failed={}))
    stages = layout_of(graph).stages(passed.stages, output)
    sources = layout_of(graph).ways[output].sources
    came = {name: stages[name].came for name in sources}
    used = {name: stages[name].used + sum(stages[name].into.values()) for name in sources}
    return Entry(from_us, came, used)


@dataclass(frozen=True)
class WindowEntries:
    """The batches that the open windows of an output are made of, the oldest first.

    Batches bring 100, 200 and 100 tuples, of which the second gets in by half:

    >>> entries = WindowEntries()
    >>> for begins, used in ((0, 100.0), (10, 100.0), (20, 100.0)):
    ...     came = 2 * used if begins == 10 else used
    ...     entries = entries.plus(Entry(begins, {"s": came}, {"s": used}))
    >>> entries.share(0, 30, until_us=30), entries.share(0, 10, until_us=30), entries.share(15, 25, until_us=30)
    (0.75, 1.0, 0.6666666666666666)
    """

    entries: tuple[Entry, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether nothing was lost."""
        return all(entry.whole for entry in self.entries)

    def plus(self, entry: Entry, needed_us: int | None = None) -> WindowEntries:
        """With one more batch, without those that ended before the first time that is still needed."""
        entries = (*self.entries, entry)
        ends = [each.from_us for each in entries[1:]]
        gone = sum(end is not None and needed_us is not None and end <= needed_us for end in ends)
        left = entries[gone:]
        return WindowEntries(left if len(left) <= MOST_ENTRIES else (left[0].together(left[1]), *left[2:]))

    def share(self, start_us: int, end_us: int, until_us: int | None) -> float:
        """The share of the tuples of a time that got in, as mean over sources; the newest batch got to `until_us`."""
        came: dict[str, float] = {}
        used: dict[str, float] = {}
        for entry, part in zip(self.entries, self._parts(start_us, end_us, until_us), strict=True):
            for name, rows in entry.came.items():
                came[name] = came.get(name, 0.0) + part * rows
                used[name] = used.get(name, 0.0) + part * entry.used[name]
        shares = [min(1.0, used[name] / rows) for name, rows in came.items() if rows > 0]
        return sum(shares) / len(shares) if shares else 1.0

    def _parts(self, start_us: int, end_us: int, until_us: int | None) -> list[float]:
        """How much of every batch lies in a time. One that did not get further than the one before it brought rows out
        of order: it counts with the time around it."""
        parts = []
        ends = [*(each.from_us for each in self.entries[1:]), until_us]
        for entry, until in zip(self.entries, ends, strict=True):
            begins, ends_at = entry.from_us, until
            if ends_at is None:
                parts.append(1.0)
            elif begins is None:
                parts.append(float(start_us < ends_at))
            elif ends_at <= begins:
                parts.append(float(start_us <= begins < end_us))
            else:
                parts.append(max(0.0, min(end_us, ends_at) - max(start_us, begins)) / (ends_at - begins))
        return parts


def entry_to_dict(entry: Entry) -> dict[str, Any]:
    """As plain data; what got in is left out where all did."""
    found: dict[str, Any] = {"from_us": entry.from_us, "came": dict(entry.came)}
    return found if entry.whole else {**found, "used": {name: round(rows, 3) for name, rows in entry.used.items()}}


def entry_from_dict(content: Mapping[str, Any]) -> Entry:
    """As it was written.

    >>> entry_from_dict(entry_to_dict(Entry(7, {"s": 2.0}, {"s": 1.0})))
    Entry(from_us=7, came={'s': 2.0}, used={'s': 1.0})
    """
    return Entry(content["from_us"], content["came"], content.get("used", content["came"]))
