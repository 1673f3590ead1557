"""Fragments: the part of a network that one node runs, as a network of its own.

A stream that comes from another node is a source of the fragment, one that leaves for another node an output. Both ends
of such a link are known, so plans for the whole network can be cut into plans for fragments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from jettison.errors import NetworkError
from jettison.network.arc import Arc
from jettison.network.names import declared_name
from jettison.network.nodes.placement import Link, Node
from jettison.network.operators import Aggregate, Operator, Output, Source, StreamJoin, kind_of
from jettison.network.qos import QoS
from jettison.network.windows.time_windows import START

if TYPE_CHECKING:
    from jettison.network.graph import Graph

UNKNOWN = "unknown"
"""The type of a column that is computed: only Spark knows it."""


@dataclass(frozen=True)
class Fragment:
    """One node's part of a network.

    `reads` and `sends` are links by the name of the source, or output, that stands for them in `graph`.
    """

    node: Node
    graph: Graph
    reads: Mapping[str, Link]
    sends: Mapping[str, Link]
    whole: Graph

    def arcs_here(self, arc: str) -> tuple[str, ...]:
        """The arcs of this fragment that are part of an arc of the whole network, upstream first.

        Both ends of a link belong to the arcs that run over it: the end where it is sent and the end where it is read.
        """
        tail, head = Arc(arc).tail, Arc(arc).head
        if tail is None:
            return (Arc(arc),) if head in self.graph.by_name and head not in self.reads else ()
        where = self.whole.placement.node_of if self.whole.placement else {}
        here = self.node.name
        if where[tail] == here == where[head]:
            return (Arc.between(tail, head),)
        sent = [name for name, link in self.sends.items() if (link.operator, link.head) == (tail, where[head])]
        read = [name for name, link in self.reads.items() if link.operator == tail]
        if where[tail] == here:
            return (Arc.between(tail, sent[0]),)
        return (Arc.between(read[0], head),) if where[head] == here else ()


def fragment(graph: Graph, name: str) -> Fragment:
    """The part of a placed network that the node `name` runs.

    >>> from jettison.network import Network, Node
    >>> net = Network("n")
    >>> _ = net.source("s", "x int").where("x > 0", name="a").where("x > 1", name="b").output("o")
    >>> net.place(Node("one", ["a"], 1.0), Node("two", ["b"], 1.0))
    >>> one, two = net.graph.fragment("one"), net.graph.fragment("two")
    >>> one.graph.arcs, two.graph.arcs
    (('s', 's>a', 'a>a_to_two'), ('a', 'a>b', 'b>o'))
    >>> str(two.reads["a"])
    'a: one -> two'
    """
    from jettison.network.graph import Graph as Built

    placement = graph.placement
    if placement is None:
        raise NetworkError(f"network {graph.name!r} has no nodes: declare them with net.place(jt.Node(...), ...).")
    if name not in placement.by_name:
        known = ", ".join(placement.by_name)
        raise NetworkError(f"network {graph.name!r} has no node {name!r}; nodes: {known}.")
    here = {each.name for each in graph.operators if placement.node_of[each.name] == name}
    reads = {_read_name(graph, link, here): link for link in placement.links if link.head == name}
    sends = {f"{declared_name(link.operator)}_to_{link.head}": link for link in placement.links if link.tail == name}
    names = {link.operator: read for read, link in reads.items()}
    operators: list[Operator] = [_source(graph, read, link) for read, link in reads.items()]
    for each in graph.operators:
        if each.name in here:
            inputs = tuple(names.get(tail, tail) for tail in each.inputs)
            operators.append(each if inputs == each.inputs else replace(each, inputs=inputs))
    operators += [Output(sent, (link.operator,), _qos(graph, link)) for sent, link in sends.items()]
    part = Built(f"{graph.name}-{name}", tuple(operators))
    return Fragment(placement.by_name[name], part, reads, sends, graph)


def _read_name(graph: Graph, link: Link, here: set[str]) -> str:
    """What a stream of another node is called where it is read: as there, unless an output has that name."""
    name = declared_name(link.operator)
    return f"{name}_in" if name in here else name


def _source(graph: Graph, name: str, link: Link) -> Source:
    columns = graph.columns[link.operator]
    if columns is None:
        operator = graph.by_name[link.operator]
        raise NetworkError(
            f"{kind_of(operator)} {link.operator!r} sends to node {link.head!r}, and its columns are not known: "
            f"declare `columns` for it."
        )
    types = {column.lower(): kind for source in graph.sources_above(link.operator) for column, kind in source.schema}
    time = _event_time(graph, link.operator, columns)
    schema = tuple((each, "timestamp" if each == time else types.get(each.lower(), UNKNOWN)) for each in columns)
    identity = {column for source in graph.sources_above(link.operator) for column in source.id}
    return Source(name, schema, time, tuple(each for each in columns if each in identity))


def _event_time(graph: Graph, name: str, columns: tuple[str, ...]) -> str | None:
    """The column that has the event time of an operator's rows, where it is still there."""
    waiting, found = [name], set[str]()
    while waiting:
        operator = graph.by_name[waiting.pop()]
        if isinstance(operator, Aggregate):
            found.add(START)
        elif isinstance(operator, Source) and operator.event_time is not None:
            found.add(operator.event_time)
        elif not isinstance(operator, StreamJoin):
            waiting += operator.inputs
    times = [column for column in columns if column in found]
    return times[0] if len(times) == 1 else None


def _qos(graph: Graph, link: Link) -> QoS:
    """What a link is worth to the node that sends: as much as all outputs that it leads to, one tuple like another."""
    where = graph.placement.node_of if graph.placement else {}
    heads = [head for head in graph.consumers[link.operator] if where[head] == link.head]
    names = {name for head in heads for name in ({head} | graph.outputs_below(head))}
    below = [output.qos for output in graph.outputs if output.name in names]
    return QoS(priority=sum(each.priority for each in below), min_accuracy=max(each.min_accuracy for each in below))
