"""Several nodes as a picture: a box of text around the operators of each, with what is known about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from jettison.network.arc import Arc
from jettison.network.render import as_text

if TYPE_CHECKING:
    from jettison.network.graph import Graph


def as_boxes(
    graph: Graph,
    operator_notes: Mapping[str, str] | None = None,
    arc_notes: Mapping[str, str] | None = None,
    node_notes: Mapping[str, str] | None = None,
    drops: Mapping[str, Mapping[str, str]] | None = None,
) -> str:
    """A box per node, upstream first; `node_notes` says what stands beside a node's name, such as its load.

    `arc_notes` are of arcs of the whole network, and stand at the operator that reads it, also where a link comes
    between. `drops` are notes on arcs of fragments, by node.

    >>> from jettison.network import Network, Node
    >>> net = Network("n")
    >>> _ = net.source("s", "x int").where("x > 0", name="a").where("x > 1", name="b").output("o")
    >>> net.place(Node("one", ["a"], 1.0), Node("two", ["b"], capacity=2))
    >>> print(as_boxes(net.graph, arc_notes={"a>b": "keep 50 %"}, node_notes={"one": "load 0.5 of 1"}))
    network n
    +- one: load 0.5 of 1 ------------+
    | s: source x int                 |
    |   a: where x > 0                |
    |     a_to_two: link              |
    +---------------------------------+
    +- two: capacity 2 ---------------+
    | a: link from one                |
    |   b: where x > 1   << keep 50 % |
    |     o: output                   |
    +---------------------------------+
    """
    placement = graph.placement
    assert placement is not None
    boxes: list[tuple[str, list[str]]] = []
    for name in placement.order:
        part = graph.fragment(name)
        notes = {each: note for each, note in (operator_notes or {}).items() if each in part.graph.by_name}
        read_here = {arc: note for arc, note in (arc_notes or {}).items() if placement.node_of[Arc(arc).head] == name}
        here = {at: note for arc, note in read_here.items() for at in part.arcs_here(arc)}
        here.update((drops or {}).get(name, {}))
        lines = as_text(part.graph, notes, here).splitlines()[1:]
        for read, link in part.reads.items():
            lines = [_renamed(line, read, f"link from {link.tail}") for line in lines]
        for output in part.sends:
            lines = [_renamed(line, output, "link") for line in lines]
        note = (node_notes or {}).get(name, f"capacity {part.node.capacity:g}")
        boxes.append((f"{name}: {note}", lines))
    width = max(max(map(len, [f"{title}  ", *lines])) for title, lines in boxes)
    drawn = [f"network {graph.name}"]
    for title, lines in boxes:
        drawn += [f"+- {title} {'-' * (width - len(title) - 2)}-+", *(f"| {line:<{width}} |" for line in lines)]
        drawn.append(f"+{'-' * (width + 2)}+")
    return "\n".join(drawn)


def _renamed(line: str, name: str, what: str) -> str:
    """A line of a picture in which a source or output that stands for a link is called one."""
    bare = line.lstrip()
    if not bare.startswith(f"{name}: "):
        return line
    _, drop, note = bare.partition("   << ")
    return f"{line[: len(line) - len(bare)]}{name}: {what}{drop}{note}"
