"""The network as a picture: indented text for terminals, Mermaid for documents, both with what is known about it."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping

from jettison.network.arc import arc_name
from jettison.network.columns.schema import as_ddl
from jettison.network.durations import duration_text
from jettison.network.graph import Graph
from jettison.network.operators import (
    Aggregate,
    Apply,
    CountAggregate,
    Join,
    Map,
    Operator,
    Output,
    Select,
    Source,
    StreamJoin,
    Union,
    Where,
    WithColumns,
    kind_of,
)
from jettison.network.qos import QoS
from jettison.network.windows.count_windows import CountSpec, rows_text

Notes = Mapping[str, str]
"""What to write beside an operator or on an arc, by its name: costs, selectivities, drops."""

_MERMAID_WORDS = frozenset(
    {
        *("call", "class", "classdef", "click", "default", "direction", "end"),
        *("flowchart", "graph", "href", "linkstyle", "style", "subgraph"),
    }
)


def describe(operator: Operator) -> str:
    """One line that says what an operator does."""
    kind = kind_of(operator)
    if isinstance(operator, Source):
        detail = as_ddl(operator.schema)
    elif isinstance(operator, Where):
        detail = str(operator.predicate)
    elif isinstance(operator, Select):
        detail = ", ".join(map(str, operator.expressions))
    elif isinstance(operator, WithColumns):
        detail = ", ".join(f"{name} = {expression}" for name, expression in operator.columns)
    elif isinstance(operator, Union):
        detail = ", ".join(operator.inputs)
    elif isinstance(operator, Join):
        table = operator.table if isinstance(operator.table, str) else "a static table"
        detail = f"{operator.how} {table} on {', '.join(operator.on)}"
    elif isinstance(operator, StreamJoin):
        delay = f", delay {duration_text(operator.delay_ms)}" if operator.delay_ms else ""
        streams = " with ".join(operator.inputs)
        detail = f"{streams} on {', '.join(operator.on)} within {duration_text(operator.within_ms)}{delay}"
    elif isinstance(operator, Aggregate | CountAggregate):
        detail = f"{_windows(operator)}: {', '.join(f'{name} = {call}' for name, call in operator.aggregates)}"
    elif isinstance(operator, Apply | Map):
        detail = operator.function if isinstance(operator.function, str) else _function_name(operator.function)
        if isinstance(operator, Map):
            detail += f" by {', '.join(operator.key)}: {as_ddl(operator.schema)}"
    else:
        detail = ", ".join(_worth(operator.qos))
    return _line(f"{kind} {detail}")


def _worth(qos: QoS) -> list[str]:
    """What an output asks for that is not the usual, in the words of `QoS`.

    >>> _worth(QoS(((100, 1), (50, 0.8), (0, 0)), priority=5, stale="1 minute"))
    ['priority 5', 'loss 100 % 1, 50 % 0.8, 0 % 0', 'stale 1 minute']
    """
    usual = QoS()
    words = [] if qos.priority == usual.priority else [f"priority {qos.priority:g}"]
    words += [f"min_accuracy {qos.min_accuracy:g}"] if qos.min_accuracy > 0 else []
    if qos.value is not None:
        words.append(f"value of {qos.value.column}")
    elif qos.loss != usual.loss:
        words.append("loss " + ", ".join(f"{percent:g} % {utility:g}" for percent, utility in qos.loss))
    if qos.latency:
        words.append("latency " + ", ".join(f"{age:g} s {utility:g}" for age, utility in qos.latency))
    words += [f"on_loss {qos.on_loss}"] if qos.on_loss != usual.on_loss else []
    words += [f"gaps by {', '.join(qos.gaps)}"] if qos.gaps is not None else []
    given = {"stale": qos.stale, "gap": qos.gap, "latency_goal": qos.latency_goal}
    return [*words, *(f"{name} {value}" for name, value in given.items() if value is not None)]


def _windows(aggregate: Aggregate | CountAggregate) -> str:
    window = aggregate.window
    by = f" by {', '.join(window.by)}" if window.by else ""
    if isinstance(window, CountSpec):
        every = "" if window.tumbling else f" every {rows_text(window.slide_rows)}"
        return f"{rows_text(window.size_rows)}{every}{by}"
    slide = "" if window.tumbling else f" every {duration_text(window.slide_us / 1000)}"
    delay = f", delay {duration_text(window.delay_us / 1000)}" if window.delay_us else ""
    return f"{duration_text(window.size_us / 1000)}{slide}{by}{delay}"


def as_text(graph: Graph, operator_notes: Notes | None = None, arc_notes: Notes | None = None) -> str:
    """Indented text, sources first. An operator that reads several streams is drawn once, below the last of them.

    Of several nodes each is a box around its operators (`network.nodes.boxes`).
    """
    if graph.placement is not None:
        from jettison.network.nodes.boxes import as_boxes  # boxes are made of texts

        return as_boxes(graph, operator_notes, arc_notes)
    on_operator, on_arc = operator_notes or {}, arc_notes or {}
    lines = [f"network {_line(graph.name)}"]
    unseen = {operator.name: len(operator.inputs) for operator in graph.operators}
    waiting = [(source.name, source.name, 0) for source in reversed(graph.sources)]
    while waiting:
        name, arc, depth = waiting.pop()
        drop = f"   << {_line(on_arc[arc])}" if arc in on_arc else ""
        unseen[name] -= 1
        if unseen[name] > 0:
            lines.append(f"{'  ' * depth}{name}: (see below){drop}")
            continue
        note = f"   [{_line(on_operator[name])}]" if name in on_operator else ""
        lines.append(f"{'  ' * depth}{name}: {describe(graph.by_name[name])}{note}{drop}")
        waiting += [(head, arc_name(name, head), depth + 1) for head in reversed(graph.consumers[name])]
    return "\n".join(lines)


def as_mermaid(graph: Graph, operator_notes: Notes | None = None, arc_notes: Notes | None = None) -> str:
    """A Mermaid flow chart.

    >>> from jettison.network.operators import Source, Output
    >>> graph = Graph("tiny", (Source("s", (("a", "int"),)), Output("o", ("s",))))
    >>> print(as_mermaid(graph, arc_notes={"s>o": "keep 50 %"}))
    flowchart LR
      s[/"s<br/>source a int"/]
      o(["o<br/>output"])
      s -->|keep 50 %| o
    """
    on_operator, on_arc = operator_notes or {}, arc_notes or {}
    ids = _mermaid_ids(graph)
    lines = ["flowchart LR"]
    placement = graph.placement
    for node in placement.nodes if placement is not None else ():
        note = on_operator.get(node.name, f"capacity {node.capacity:g}")
        lines.append(f'  subgraph node_{_word(node.name)}["{_escaped(f"{node.name}: {note}")}"]')
        lines += [f"    {ids[name]}" for name in node.operators]
        lines.append("  end")
    for operator in graph.operators:
        name = operator.name
        parts = [name, describe(operator), *([on_operator[name]] if name in on_operator else [])]
        if isinstance(operator, Source) and name in on_arc:
            parts.append(on_arc[name])
        label = "<br/>".join(map(_escaped, parts))
        opening, closing = ("[/", "/]") if isinstance(operator, Source) else ("[", "]")
        if isinstance(operator, Output):
            opening, closing = "([", "])"
        lines.append(f'  {ids[name]}{opening}"{label}"{closing}')
    for operator in graph.operators:
        for tail in operator.inputs:
            arc = arc_name(tail, operator.name)
            text = f"|{_arc_label(on_arc[arc])}|" if arc in on_arc else ""
            lines.append(f"  {ids[tail]} -->{text} {ids[operator.name]}")
    return "\n".join(lines)


def _mermaid_ids(graph: Graph) -> dict[str, str]:
    """An id for every operator: its name, changed where Mermaid would misread it, and never that of another."""
    safe = [name for name in graph.by_name if re.fullmatch(r"\w+", name) and name.lower() not in _MERMAID_WORDS]
    ids = {name: name for name in safe}
    taken = set(safe)
    for name in graph.by_name:
        if name not in ids:
            chosen = re.sub(r"\W", "_", name) + "_"
            while chosen in taken:
                chosen += "_"
            ids[name] = chosen
            taken.add(chosen)
    return ids


def _word(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _arc_label(note: str) -> str:
    """A note between two bars: in quotes as soon as it has more than words and numbers."""
    text = _escaped(note).replace("|", "#124;")
    return text if re.fullmatch(r"[\w .,%]+", text) else f'"{text}"'


def _escaped(text: str) -> str:
    return html.escape(_line(text).replace("#", "#35;").replace('"', "'"), quote=False)


def _line(text: str) -> str:
    """A text of several lines in one: a picture has one line per operator."""
    return " ".join(line.strip() for line in text.splitlines())


def _function_name(function: object) -> str:
    return f"{getattr(function, '__module__', '?')}:{getattr(function, '__qualname__', '?')}"
