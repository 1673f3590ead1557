"""The identity of what an operator computes: a hash of its whole lineage, whatever operators are called.

State that an operator keeps from batch to batch belongs to what it computes, not to its place in a program. The lineage
has every source, expression, table, window, function and option above an operator, and its own. Names of operators are
left out, and so is everything that changes no row: outputs, QoS, what else reads a stream.

>>> from jettison.network import Network
>>> net = Network("taxi")
>>> trips = net.source("trips", "at timestamp, fare double", event_time="at")
>>> dear = trips.where("fare > 50").window("1 minute").agg(n="count(*)")
>>> for line in lineage(net.graph, dear.name):
...     print(line)
source trips (at timestamp, fare double) event_time=at id=()
where [0] fare > 50
aggregate [1] size_us=60000000 slide_us=60000000 delay_us=0 by=() of count(*)
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from typing import Any

from jettison.errors import NetworkError
from jettison.network.graph import Graph
from jettison.network.identity.function_hash import function_identity, unknown, unknown_parts
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
from jettison.network.windows.user_aggregates import FUNCTIONS, Own, UserAggregate

_DIGITS = 16
_SHOWN_DIGITS = 8
_VARIABLES = re.compile(r"(\b[a-z]\w*_\d+|\((?:[a-z]\w*_\d+(?:, )?)+\)) -> ")
_ADDRESS = re.compile(r"\[L[\w.$]+;@[0-9a-f]+")
_IN_PYTHON = "columnnodeexpression("  # how Spark shows the arguments of a UDF


def lineage(graph: Graph, name: str) -> tuple[str, ...]:
    """One line for every operator above an operator and for itself, in an order that does not depend on names."""
    return _lines(graph, graph.by_name[name])


def identity(graph: Graph, name: str) -> str:
    """The hash of an operator's lineage.

    >>> from jettison.network import Network
    >>> net = Network("taxi")
    >>> trips = net.source("trips", "at timestamp, fare double", event_time="at")
    >>> dear, same, cheap = (trips.where(sql).name for sql in ("fare > 50", "fare > 50", "fare < 5"))
    >>> identity(net.graph, dear), identity(net.graph, dear) == identity(net.graph, same)
    ('723e7fce305dfcb2', True)
    >>> identity(net.graph, dear) == identity(net.graph, cheap)
    False
    """
    return _hash(lineage(graph, name))


def network_identity(graph: Graph) -> str:
    """The hash of all operators and their names: a plan or a profile of one network means nothing to another."""
    return _hash([[each.name, identity(graph, each.name)] for each in graph.operators])


def timed_identity(graph: Graph, operator: Map) -> str:
    """The hash of what costs that were learned rest on: the map's function, its key, and that key's types at sources.

    >>> from jettison.network import Network
    >>> net = Network("mentions")
    >>> tweets = net.source("tweets", "entity string, text string")
    >>> by_key = [tweets.map("math:sqrt", key=key, schema="root double").name for key in ("entity", "entity", "text")]
    >>> one, same, other = (timed_identity(net.graph, net.graph.by_name[name]) for name in by_key)
    >>> one == same, one == other
    (True, False)
    """
    key = [name.lower() for name in operator.key]
    types = [(each.name, [kind for name, kind in each.schema if name.lower() in key]) for each in graph.sources]
    return _hash([function_identity(operator.function), operator.rows, key, types])


def derived_name(graph: Graph, operator: Operator) -> str:
    """The name of an operator that keeps state and was given none: by what it computes, so that it is the same in every
    program that computes it.

    >>> from jettison.network import Network
    >>> net = Network("taxi")
    >>> trips = net.source("trips", "at timestamp, fare double", event_time="at")
    >>> [trips.window("1 minute").agg(n="count(*)").name for _ in range(2)]
    ['aggregate_1e340ed0', 'aggregate_1e340ed0_2']
    """
    first = _derived(graph, operator)
    name, count = first, 1
    kind, parts = kind_of(operator), unknown_parts(_lines(graph, operator))
    if first in graph.by_name and parts:
        raise NetworkError(
            f"network {graph.name!r}: this {kind} and {first!r} look the same, but are computed of something of which "
            f"only the type is known ({', '.join(parts)}): after a restart one could go on with the state of the "
            f"other. Give each {kind} a name, such as name='{kind}_of_...'."
        )
    while name in graph.by_name:
        count += 1
        name = f"{first}_{count}"
    return name


def is_derived(graph: Graph, name: str) -> bool:
    """Whether an operator is called after what it computes, for the user gave no name."""
    first, _, rest = name.rpartition("_")
    own = _derived(graph, graph.by_name[name])
    return name == own or (first == own and rest.isdigit())


def _derived(graph: Graph, operator: Operator) -> str:
    return f"{kind_of(operator)}_{_hash(_lines(graph, operator))[:_SHOWN_DIGITS]}"


def _lines(graph: Graph, operator: Operator) -> tuple[str, ...]:
    numbers: dict[str, int] = {}
    lines: list[str] = []

    def visit(each: Operator, description: str) -> None:
        tails = []
        for tail in each.inputs:
            if tail not in numbers:
                visit(graph.by_name[tail], _described(graph.by_name[tail], results=True))
            tails.append(str(numbers[tail]))
        numbers[each.name] = len(lines)
        lines.append(" ".join([kind_of(each), *([f"[{', '.join(tails)}]"] if tails else []), description]).rstrip())

    visit(operator, _described(operator, results=False))
    return tuple(lines)


def _described(operator: Operator, *, results: bool) -> str:
    """What an operator does. With `results`, what its results are called belongs to it: others may name them."""
    if isinstance(operator, Source):
        columns = ", ".join(f"{name} {kind}" for name, kind in operator.schema)
        return f"{operator.name} ({columns}) event_time={operator.event_time} id={_listed(operator.id)}"
    if isinstance(operator, Where):
        return _sql(operator.predicate)
    if isinstance(operator, Select):
        return _joined(map(_sql, operator.expressions))
    if isinstance(operator, WithColumns):
        return _joined(f"{_sql(expression)} AS {name}" for name, expression in operator.columns)
    if isinstance(operator, Join):
        return f"table {_table(operator.table)} on={_listed(operator.on)} how={operator.how}"
    if isinstance(operator, StreamJoin):
        band = f"within_ms={operator.within_ms:.15g} delay_ms={operator.delay_ms:.15g}"
        return f"stream on={_listed(operator.on)} how={operator.how} {band}"
    if isinstance(operator, Aggregate):
        window = operator.window
        sizes = f"size_us={window.size_us} slide_us={window.slide_us} delay_us={window.delay_us}"
        return f"{sizes} by={_listed(window.by)} of {_calls(operator, results)}"
    if isinstance(operator, CountAggregate):
        spec = operator.window
        sizes = f"size_rows={spec.size_rows} slide_rows={spec.slide_rows}"
        return f"{sizes} by={_listed(spec.by)} of {_calls(operator, results)}"
    if isinstance(operator, Apply):
        columns = "" if operator.columns is None else f" columns={_listed(operator.columns)}"
        return f"{function_identity(operator.function)}{columns}"
    if isinstance(operator, Map):
        columns = ", ".join(f"{name} {kind}" for name, kind in operator.schema)
        return f"{function_identity(operator.function)} of {'rows' if operator.rows else 'a row'} adds ({columns})"
    assert isinstance(operator, Union | Output)
    return ""


def _calls(aggregate: Aggregate | CountAggregate, results: bool) -> str:
    """What is computed of windows. State holds no names of results, and no order."""
    if results:
        return _joined(f"{_call(call)} AS {name}" for name, call in aggregate.aggregates)
    return _joined(sorted({_call(call) for _, call in aggregate.aggregates}))


def _call(call: str | Own) -> str:
    if isinstance(call, str):
        return call.strip()
    words = FUNCTIONS if isinstance(call, UserAggregate) else ("function",)
    functions = ", ".join(f"{word}={function_identity(getattr(call, word))}" for word in words)
    return f"{{{functions}}}({', '.join(call.columns)}) {call.type}"


def _sql(expression: Any) -> str:
    """SQL as it was written, or a Column as Spark shows it."""
    return expression.strip() if isinstance(expression, str) else column_text(str(expression))


def column_text(shown: str) -> str:
    """A Column as Spark shows it, without what differs from one declaration to the next: numbers of variables in
    lambdas, which Spark counts over all Columns, and addresses. Functions in Python are known by their name only.

    >>> column_text("Column<'transform(xs, x_11 -> transform(x_11, y_12 -> +(x_11, y_12, x_1)))'>")
    "Column<'transform(xs, x_v1 -> transform(x_v1, y_v2 -> +(x_v1, y_v2, x_1)))'>"
    """
    names = [name for found in _VARIABLES.finditer(shown) for name in re.findall(r"\w+", found[1])]
    numbers = {name: f"{name.rpartition('_')[0]}_v{n}" for n, name in enumerate(dict.fromkeys(names), 1)}
    if numbers:
        shown = re.sub(rf"\b({'|'.join(numbers)})\b", lambda found: numbers[found[1]], shown)
    shown = _ADDRESS.sub("", shown)
    return f"{shown} {unknown('Python function in a Column')}" if _IN_PYTHON in shown else shown


def _table(table: Any) -> str:
    """A table by its name; a DataFrame, which has none, by its columns: what is in it is unknown."""
    if isinstance(table, str):
        return table
    kinds = getattr(table, "dtypes", None)
    columns = f" of {json.dumps(kinds)}" if isinstance(kinds, list) else ""
    return unknown(type(table).__name__) + columns


def _listed(names: tuple[str, ...]) -> str:
    return f"({', '.join(names)})"


def _joined(parts: Any) -> str:
    return ", ".join(parts)


def _hash(content: object) -> str:
    text = json.dumps(content, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=_DIGITS // 2).hexdigest()


def renamed(graph: Graph, operator: Operator) -> Operator:
    """An operator that was given no name, called after what it computes."""
    return replace(operator, name=derived_name(graph, operator))
