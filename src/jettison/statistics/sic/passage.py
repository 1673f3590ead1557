"""What one batch did to the information on its way to each output, from what was counted.

The steps are those of `statistics.account`, whose way of a row ends at the first operator with state. Here results go
on from there, as the rows of the next stage. Lost are: rows passed over unread, rows that a source had lost before,
rows shed by a drop, rejected, late, or of which no window is kept; of rows in several windows, the share of those that
are not kept; and results that are shed, rejected, withheld, or could not be computed.

Which share of the results of an operator with state is lost follows from what drops behind it, the output, or the next
windows have counted. A filter between the two makes that fewer than there were, and the loss larger than it was. How
much a batch weighs is told by the windows that closed in it; where there are none, by those counts.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from jettison.network.arc import arc_name
from jettison.network.graph import Graph
from jettison.network.operators import Aggregate, Output, Source
from jettison.statistics.row_streams import RowStream, drop_rows, merge_streams, take_rows
from jettison.statistics.samples import BatchSample
from jettison.statistics.sic.stages import Stage, Stages, Ways, holds_state


def read_rows(sample: BatchSample, source: str) -> float:
    """The rows that a source brought in a batch: those read, those passed over, and those that it had lost before.

    >>> read_rows(BatchSample(0, 0.0, 1000.0, 900.0, {"s": 80}, skipped={"s": 15}, gone={"s": 5}), "s")
    100.0
    """
    return float(sample.rows_in.get(source, 0) + sample.skipped.get(source, 0) + sample.gone.get(source, 0))


class Passage:
    """One batch of a network: `stages` gives the stages on the way to an output.

    Half of the rows are dropped at the source, and of 8 results behind the windows 2:

    >>> from jettison.network import Network
    >>> from jettison.statistics.sic.stages import ways_to
    >>> net = Network("taxi"); trips = net.source("trips", "at timestamp", event_time="at")
    >>> _ = trips.window("1 minute").agg(n="count(*)", name="busy").output("out")
    >>> sample = BatchSample(0, 0.0, 1e3, 900.0, {"trips": 100}, arcs={"trips": (100, 50), "busy>out": (8, 6)})
    >>> Passage(net.graph, sample).stages(ways_to(net.graph, net.graph.outputs[0]))
    {'trips': Stage(came=100.0, used=0.0, into={'busy': 50.0}), 'busy': Stage(came=8.0, used=6.0, into={})}
    """

    def __init__(self, graph: Graph, sample: BatchSample, closed: Collection[str] = ()) -> None:
        """`closed` are arcs that let nothing pass: what comes there may not have been counted."""
        self._graph = graph
        self._sample = sample
        self._closed = frozenset(closed)

    def stages(self, ways: Ways) -> Stages:
        sample = self._sample
        lost: dict[str, float] = {}
        into: dict[str, dict[str, float]] = {origin: {} for origin in ways.origins}
        came: dict[str, float] = {source: read_rows(sample, source) for source in ways.sources}
        given: dict[str, dict[str, RowStream]] = {}
        for name in ways.operators:
            operator = self._graph.by_name[name]
            if isinstance(operator, Source):
                given[name] = {name: self._read(name, lost)}
                continue
            coming: dict[str, RowStream] = {}
            for tail in operator.inputs:
                merge_streams(coming, self._on_arc(given[tail], tail, name, ways, lost))
            take_rows(coming, sample.unfit.get(name, 0), lost)
            if holds_state(operator):
                if isinstance(operator, Aggregate):
                    self._into_windows(coming, name, lost, judged=name in ways.last)
                for origin, each in coming.items():
                    into[origin][name] = into[origin].get(name, 0.0) + each.weight
                came[name] = self._results(name, ways)
                given[name] = {name: RowStream(came[name], 1.0)}
                take_rows(given[name], self._without_result(name, came[name]), lost)
            else:
                given[name] = coming
        found = {}
        for origin in ways.origins:
            used = came[origin] - lost.get(origin, 0.0) - sum(into[origin].values())
            found[origin] = Stage(came[origin], max(0.0, used), into[origin]).scaled(self._windows(origin))
        return found

    def _read(self, source: str, lost: dict[str, float]) -> RowStream:
        """The rows of a source behind its drop and its parser."""
        sample = self._sample
        stream = RowStream(float(sample.rows_in.get(source, 0)), 1.0)
        lost[source] = read_rows(sample, source) - stream.weight
        drop_rows({source: stream}, sample.arcs.get(source), lost, closed=source in self._closed)
        take_rows({source: stream}, sample.rejected.get(source, 0), lost)
        take_rows({source: stream}, sample.unfit.get(source, 0), lost)
        return stream

    def _on_arc(
        self, given: Mapping[str, RowStream], tail: str, head: str, ways: Ways, lost: dict[str, float]
    ) -> dict[str, RowStream]:
        """What passes an arc; where a stream splits, its weight is split evenly over the branches that get there."""
        sample, arc = self._sample, arc_name(tail, head)
        branches = sum(each in ways.operators for each in self._graph.consumers[tail])
        on_arc = {origin: RowStream(each.weight / branches, each.unit / branches) for origin, each in given.items()}
        if not self._counted_before(head, on_arc, ways):
            drop_rows(on_arc, sample.arcs.get(arc), lost, closed=arc in self._closed)
        take_rows(on_arc, sample.unfit.get(arc, 0), lost)
        return on_arc

    def _counted_before(self, head: str, on_arc: Mapping[str, RowStream], ways: Ways) -> bool:
        """Whether results that are dropped here are of windows whose rows counted as lost when they came."""
        return head in ways.last and bool(on_arc) and all(name in self._sample.unneeded for name in on_arc)

    def _into_windows(
        self, coming: Mapping[str, RowStream], name: str, lost: dict[str, float], *, judged: bool
    ) -> None:
        """Take out what does not get into windows, and, where results are `judged` behind it by window, into kept ones.

        Fewer rows arrive than were sent on where a filter is between.
        """
        sample = self._sample
        arrived = sample.arrived.get(name)
        if arrived is not None:
            drop_rows(coming, (arrived, arrived), lost, closed=False)
        for count in (sample.timeless_in.get(name, 0), sample.late.get(name, 0)):
            take_rows(coming, count, lost)
        if judged:
            take_rows(coming, sample.unneeded.get(name, 0) + sample.cut.get(name, 0.0), lost)

    def _results(self, name: str, ways: Ways) -> float:
        """How many results an operator with state gave in this batch, as far as anybody has counted."""
        sample = self._sample
        rows, uncounted = 0.0, False
        waiting, seen, unfit = [name], {name}, 0.0
        while waiting:
            tail = waiting.pop()
            for head in self._graph.consumers[tail]:
                if head not in ways.operators:
                    continue
                arc = arc_name(tail, head)
                counted = sample.arcs.get(arc)
                rows = max(rows, float(counted[0]) if counted else 0.0)
                uncounted |= arc in self._closed and not counted
                unfit += sample.unfit.get(arc, 0)
                rows = max(rows, float(sample.arrived.get(head, 0)))
                if isinstance(self._graph.by_name[head], Output):
                    at_output = sample.outputs.get(head)
                    rows = max(rows, 0.0 if at_output is None else float(at_output.rows))
                elif not holds_state(self._graph.by_name[head]) and head not in seen:
                    seen.add(head)
                    waiting.append(head)
                    unfit += sample.unfit.get(head, 0)
        failed = sample.failed.get(name)
        rows = max(rows, unfit) + (0 if failed is None else failed.windows)
        if not rows and (uncounted or self._windows(name)):
            return 1.0
        kept = self._share_not_withheld(name)
        return rows / kept if kept else max(rows, 1.0)

    def _windows(self, name: str) -> float:
        """The windows of an aggregate that closed in this batch, withheld ones included; 0 where that is not told."""
        return self._sample.windows.get(name, (0.0, 0.0))[0] + self._sample.withheld.get(name, 0)

    def _share_not_withheld(self, name: str) -> float:
        held = self._sample.withheld.get(name, 0)
        closed = self._sample.windows.get(name, (0.0, 0.0))[0]
        return closed / (closed + held) if held else 1.0

    def _without_result(self, name: str, results: float) -> float:
        """Results that were withheld or could not be computed."""
        failed = self._sample.failed.get(name)
        return results * (1.0 - self._share_not_withheld(name)) + (0 if failed is None else failed.windows)
