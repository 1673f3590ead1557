"""The network as a picture: indented text for terminals, Mermaid for documents, both with what is known about it."""

from __future__ import annotations

from collections.abc import Mapping

from jettison.network.graph import Graph, arc_name
from jettison.network.operators import Apply, Join, Operator, Output, Select, Source, Union, Where, WithColumns, kind_of

Notes = Mapping[str, str]
"""What to write beside an operator or on an arc, by its name: costs, selectivities, drops."""


def describe(operator: Operator) -> str:
    """One line that says what an operator does."""
    kind = kind_of(operator)
    if isinstance(operator, Source):
        detail = ", ".join(f"{name} {type_}" for name, type_ in operator.schema)
    elif isinstance(operator, Where):
        detail = str(operator.predicate)
    elif isinstance(operator, Select):
        detail = ", ".join(map(str, operator.expressions))
    elif isinstance(operator, WithColumns):
        detail = ", ".join(f"{name} = {expression}" for name, expression in operator.columns)
    elif isinstance(operator, Union):
        detail = ", ".join(operator.inputs)
    elif isinstance(operator, Join):
        static = operator.static if isinstance(operator.static, str) else "a static table"
        detail = f"{operator.how} {static} on {', '.join(operator.on)}"
    elif isinstance(operator, Apply):
        detail = operator.function if isinstance(operator.function, str) else _function_name(operator.function)
    else:
        detail = "" if operator.qos.priority == 1 else f"priority {operator.qos.priority:g}"
    return f"{kind} {detail}".rstrip()


def as_text(graph: Graph, operator_notes: Notes | None = None, arc_notes: Notes | None = None) -> str:
    """Indented text, sources first. An operator that reads several streams is drawn once, below the last of them."""
    on_operator, on_arc = operator_notes or {}, arc_notes or {}
    lines = [f"network {graph.name}"]
    drawn: set[str] = set()

    def draw(name: str, arc: str, depth: int) -> None:
        operator = graph.by_name[name]
        note = f"   [{on_operator[name]}]" if name in on_operator else ""
        drop = f"   << {on_arc[arc]}" if arc in on_arc else ""
        pending = any(tail not in drawn for tail in operator.inputs)
        if pending:
            lines.append(f"{'  ' * depth}{name}: (see below){drop}")
            return
        lines.append(f"{'  ' * depth}{name}: {describe(operator)}{note}{drop}")
        drawn.add(name)
        for head in graph.consumers[name]:
            draw(head, arc_name(name, head), depth + 1)

    for source in graph.sources:
        draw(source.name, source.name, 0)
    return "\n".join(lines)


def as_mermaid(graph: Graph, operator_notes: Notes | None = None, arc_notes: Notes | None = None) -> str:
    """A Mermaid flow chart.

    >>> from jettison.network.operators import Source, Output
    >>> print(as_mermaid(Graph("tiny", (Source("s", (("a", "int"),)), Output("o", ("s",)))), arc_notes={"s>o": "keep 50 %"}))
    flowchart LR
      s[/"s<br/>source a int"/]
      o(["o<br/>output"])
      s -->|keep 50 %| o
    """
    on_operator, on_arc = operator_notes or {}, arc_notes or {}
    lines = ["flowchart LR"]
    for operator in graph.operators:
        name = operator.name
        parts = [name, describe(operator), *([on_operator[name]] if name in on_operator else [])]
        if isinstance(operator, Source) and name in on_arc:
            parts.append(on_arc[name])
        label = "<br/>".join(part.replace('"', "'").replace("<", "&lt;").replace(">", "&gt;") for part in parts)
        opening, closing = ("[/", "/]") if isinstance(operator, Source) else ("[", "]")
        if isinstance(operator, Output):
            opening, closing = "([", "])"
        lines.append(f'  {_id(name)}{opening}"{label}"{closing}')
    for operator in graph.operators:
        for tail in operator.inputs:
            arc = arc_name(tail, operator.name)
            text = f"|{on_arc[arc]}|" if arc in on_arc else ""
            lines.append(f"  {_id(tail)} -->{text} {_id(operator.name)}")
    return "\n".join(lines)


def _id(name: str) -> str:
    return f"{name}_" if name in ("end", "graph", "flowchart") else name


def _function_name(function: object) -> str:
    return f"{getattr(function, '__module__', '?')}:{getattr(function, '__qualname__', '?')}"
