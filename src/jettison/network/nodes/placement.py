"""Placement: which node runs which operator, and how much work per second each node can do (thesis 5.2).

A node is an application with a capacity of its own. Streams between nodes are links. Nodes form a directed graph
without cycles; where every node reads from one other node at most, it is a forest, as feasible input tables need it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from jettison.errors import NetworkError
from jettison.network.calls import checked_init
from jettison.network.columns.words import meant
from jettison.network.names import declared_name
from jettison.network.operators import Operator, Output, Source, kind_of


@checked_init("jt.Node")
@dataclass(frozen=True)
class Node:
    """A node: its operators, and its capacity in seconds of work per second (1 is all of one processor).

    Sources and outputs may be left out: they run beside the operator that reads them, or that they read.

    >>> Node("parse", ["trips", "paid"], capacity=0.0)
    Traceback (most recent call last):
    jettison.errors.NetworkError: node 'parse': capacity is 0.0: give seconds of work per second, above 0, such as 1.0.
    """

    name: str
    operators: Sequence[str]
    capacity: float

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or not all(c.isalnum() or c in "_-" for c in self.name):
            raise NetworkError(f"node name {self.name!r}: use letters, digits, _ and -.")
        given: object = self.capacity
        if isinstance(given, bool) or not isinstance(given, int | float) or not (math.isfinite(given) and given > 0):
            raise NetworkError(
                f"node {self.name!r}: capacity is {given!r}: give seconds of work per second, above 0, such as 1.0."
            )
        if isinstance(self.operators, str) or not all(isinstance(each, str) for each in self.operators):
            raise NetworkError(f"node {self.name!r}: operators are {self.operators!r}: give a list of names.")
        object.__setattr__(self, "operators", tuple(self.operators))
        object.__setattr__(self, "capacity", float(given))

    @property
    def capacity_us(self) -> float:
        """Microseconds of work per second."""
        return 1e6 * self.capacity


@dataclass(frozen=True)
class Link:
    """The stream of one operator between two nodes, however many operators read it there."""

    operator: str
    tail: str
    head: str

    def __str__(self) -> str:
        return f"{self.operator}: {self.tail} -> {self.head}"


@dataclass(frozen=True)
class Placement:
    """Nodes with all operators of a network, and the links between them."""

    nodes: tuple[Node, ...]
    links: tuple[Link, ...] = ()

    @cached_property
    def by_name(self) -> dict[str, Node]:
        return {node.name: node for node in self.nodes}

    @cached_property
    def node_of(self) -> dict[str, str]:
        """The node of every operator."""
        return {operator: node.name for node in self.nodes for operator in node.operators}

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Nodes from those that read sources to those furthest downstream."""
        waiting, done = [node.name for node in self.nodes], list[str]()
        while waiting:
            ready = [name for name in waiting if all(tail in done for tail in self.parents(name))]
            if not ready:
                raise NetworkError(
                    f"nodes {', '.join(waiting)} feed each other in a circle: place operators so that streams between "
                    f"nodes run one way."
                )
            done += ready
            waiting = [name for name in waiting if name not in done]
        return tuple(done)

    def parents(self, node: str) -> tuple[str, ...]:
        """Nodes that this one reads from."""
        return tuple(dict.fromkeys(link.tail for link in self.links if link.head == node))

    def children(self, node: str) -> tuple[str, ...]:
        """Nodes that read from this one."""
        return tuple(dict.fromkeys(link.head for link in self.links if link.tail == node))

    @property
    def is_forest(self) -> bool:
        """Whether every node reads from at most one other."""
        return all(len(self.parents(node.name)) <= 1 for node in self.nodes)

    def check_forest(self) -> None:
        """Raise unless every node reads from at most one other node."""
        for node in self.nodes:
            if len(self.parents(node.name)) > 1:
                raise NetworkError(
                    f"node {node.name!r} reads from {' and '.join(self.parents(node.name))}: feasible input tables "
                    f"need a tree of nodes. Plan with mode 'per-tick', or move operators to one of them."
                )


def placed(network: str, operators: Sequence[Operator], nodes: Iterable[Node]) -> Placement:
    """The placement of a network's operators, checked and completed.

    >>> from jettison.network.operators import Where
    >>> chain = (Source("s", (("x", "int"),)), Where("a", ("s",), "x > 0"), Where("b", ("a",), "x > 1"),
    ...          Output("o", ("b",)))
    >>> found = placed("n", chain, [Node("one", ["a"], 1.0), Node("two", ["b"], capacity=2)])
    >>> found.node_of, [str(link) for link in found.links]
    ({'s': 'one', 'a': 'one', 'b': 'two', 'o': 'two'}, ['a: one -> two'])
    """
    nodes = tuple(nodes)
    if not nodes:
        raise NetworkError(f"network {network!r}: its placement names no node: give at least one, with its operators.")
    given = _given(network, operators, nodes)
    where = _completed(network, operators, given)
    members = {node.name: [each.name for each in operators if where[each.name] == node.name] for node in nodes}
    for node in nodes:
        if not members[node.name]:
            raise NetworkError(
                f"node {node.name!r} of network {network!r} has no operators: give it some, or leave the node out."
            )
    links = dict.fromkeys(
        Link(tail, where[tail], where[each.name])
        for each in operators
        for tail in each.inputs
        if where[tail] != where[each.name]
    )
    found = Placement(tuple(replace(node, operators=tuple(members[node.name])) for node in nodes), tuple(links))
    _ = found.order
    return found


def _given(network: str, operators: Sequence[Operator], nodes: tuple[Node, ...]) -> dict[str, str]:
    """The node of every operator that is named, by its full name."""
    names = {declared_name(each.name): each.name for each in operators if not isinstance(each, Output)}
    outputs = {each.name: each.name for each in operators if isinstance(each, Output)}
    known = {**outputs, **names, **{each.name: each.name for each in operators}}
    seen: set[str] = set()
    given: dict[str, str] = {}
    for node in nodes:
        if node.name in seen:
            raise NetworkError(f"network {network!r}: two nodes are called {node.name!r}: give one another name.")
        seen.add(node.name)
        for operator in node.operators:
            if operator not in known:
                raise NetworkError(
                    f"node {node.name!r}: {operator!r} is not an operator of network {network!r}"
                    f"{meant(operator, known)}: it has {', '.join(known)}."
                )
            name = known[operator]
            if given.get(name, node.name) != node.name:
                raise NetworkError(
                    f"operator {operator!r} is on nodes {given[name]!r} and {node.name!r}: keep one of them."
                )
            given[name] = node.name
    return given


def _completed(network: str, operators: Sequence[Operator], given: Mapping[str, str]) -> dict[str, str]:
    """With sources beside what reads them and outputs beside what they read."""
    where = dict(given)
    for operator in operators:
        if isinstance(operator, Output) and operator.name not in where and operator.inputs[0] in where:
            where[operator.name] = where[operator.inputs[0]]
        if isinstance(operator, Source) and operator.name not in where:
            readers = {given[each.name] for each in operators if operator.name in each.inputs and each.name in given}
            if len(readers) == 1:
                where[operator.name] = readers.pop()
    for operator in operators:
        if isinstance(operator, Output) and operator.name not in where and operator.inputs[0] in where:
            where[operator.name] = where[operator.inputs[0]]
        if operator.name not in where:
            raise NetworkError(
                f"{kind_of(operator)} {declared_name(operator.name)!r} of network {network!r} is on no node: add it to "
                f"the operators of one."
            )
    return {each.name: where[each.name] for each in operators}
