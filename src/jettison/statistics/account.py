"""Where source rows went, per source and output: read = processed + shed + rejected + late + skipped.

A source row has the weight 1 for every output below its source. Each term is counted where it happens:

- *skipped*: passed over unread.
- *shed*: removed by a drop on the way to the output, or put into an aggregate of which no window that holds it is kept.
- *rejected*: does not parse; or an operator's expression fails on it; or has no event time and comes to windows, which
  have no place for it.
- *late*: came to windows that were closed.
- *processed*: everything else. A row that a filter removes is processed. So is one that becomes part of a window, of
  a join of streams, or of a row of the output: the way of a row ends at the first of these.

Where a stream splits and several branches lead to the same output, the weight is split evenly between the branches. A
row that becomes several rows is shed by the share of those rows. Behind a union rows of several sources are counted
together: each source has its share of them, by the rows that it sent in.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields

from jettison.network.arc import arc_name
from jettison.network.graph import Graph
from jettison.network.operators import Aggregate, CountAggregate, Output, Source, StreamJoin
from jettison.statistics.row_streams import RowStream, drop_rows, leading_to, merge_streams, take_rows
from jettison.statistics.samples import BatchSample


@dataclass(frozen=True)
class Account:
    """The rows of one source as one output fared with them. `read` counts what arrived, skipped rows included.

    >>> Account(read=10, processed=6, shed=3, rejected=1).accuracy
    0.6
    """

    read: float = 0.0
    processed: float = 0.0
    shed: float = 0.0
    rejected: float = 0.0
    late: float = 0.0
    skipped: float = 0.0

    def __add__(self, other: Account) -> Account:
        return Account(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))

    @property
    def accuracy(self) -> float:
        """The share of source rows that was processed; 1 where none was read."""
        return self.processed / self.read if self.read else 1.0

    @property
    def lost_to_overload(self) -> float:
        """Rows shed or skipped: those that more capacity would have saved."""
        return self.shed + self.skipped


Accounts = Mapping[tuple[str, str], Account]
"""By (source, output)."""


def accounts_of(graph: Graph, sample: BatchSample, closed: Collection[str] = ()) -> dict[tuple[str, str], Account]:
    """The accounts of one batch. `closed` are arcs that let nothing pass: what comes there may not have been counted.

    >>> from jettison.network import Network
    >>> net = Network("two"); s = net.source("s", "x int")
    >>> _ = s.where("x > 0", name="a").output("left"); _ = s.where("x > 5", name="b").output("right")
    >>> sample = BatchSample(0, 0.0, 1000.0, 900.0, {"s": 100}, arcs={"s": (100, 80), "s>b": (80, 60)})
    >>> found = accounts_of(net.graph, sample)
    >>> found["s", "left"]
    Account(read=100.0, processed=80.0, shed=20.0, rejected=0.0, late=0.0, skipped=0.0)
    >>> found["s", "right"].shed
    40.0
    """
    return {
        (source, output.name): account
        for output in graph.outputs
        for source, account in _of_output(graph, output, sample, frozenset(closed)).items()
    }


def _of_output(graph: Graph, output: Output, sample: BatchSample, closed: frozenset[str]) -> dict[str, Account]:
    leading = leading_to(graph, output.name)
    shed: dict[str, float] = {}
    rejected: dict[str, float] = {}
    late: dict[str, float] = {}
    given: dict[str, dict[str, RowStream]] = {}
    for operator in graph.operators:
        name = operator.name
        if name not in leading:
            continue
        if isinstance(operator, Source):
            stream = RowStream(float(sample.rows_in.get(name, 0)), 1.0)
            coming = {name: stream}
            drop_rows(coming, sample.arcs.get(name), shed, closed=name in closed)
            bad = min(float(sample.rejected.get(name, 0)), stream.weight)
            rejected[name] = bad
            stream.weight -= bad
        else:
            coming = {}
            for tail in operator.inputs:
                if tail not in given:
                    continue
                branches = sum(head in leading for head in graph.consumers[tail])
                arc = arc_name(tail, name)
                on_arc = {s: RowStream(each.weight / branches, each.unit / branches) for s, each in given[tail].items()}
                drop_rows(on_arc, sample.arcs.get(arc), shed, closed=arc in closed)
                take_rows(on_arc, sample.unfit.get(arc, 0), rejected)
                merge_streams(coming, on_arc)
        take_rows(coming, sample.unfit.get(name, 0), rejected)
        if isinstance(operator, Aggregate):
            take_rows(coming, sample.timeless_in.get(name, 0), rejected)
            take_rows(coming, sample.late.get(name, 0), late)
            take_rows(coming, sample.unneeded.get(name, 0), shed)
        if not isinstance(operator, Aggregate | CountAggregate | StreamJoin):  # there the way of a tuple ends
            given[name] = coming
    found = {}
    for source in (each.name for each in graph.sources if each.name in leading):
        skipped = float(sample.skipped.get(source, 0))
        read = sample.rows_in.get(source, 0) + skipped
        gone, bad, behind = (each.get(source, 0.0) for each in (shed, rejected, late))
        found[source] = Account(read, read - skipped - gone - bad - behind, gone, bad, behind, skipped)
    return found


def summed(accounts: Iterable[Account]) -> Account:
    """All of them together.

    >>> summed([Account(read=2, processed=2), Account(read=3, shed=3)]).accuracy
    0.4
    """
    total = Account()
    for each in accounts:
        total = total + each
    return total
