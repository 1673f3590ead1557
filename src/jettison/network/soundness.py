"""What can be checked of a declared network without Spark, beyond columns: SQL that can be read, functions that exist.

Declaring leaves both alone: Spark's SQL may be newer than the reader here, and modules may exist only on a cluster.
"""

from __future__ import annotations

from collections.abc import Iterator

from jettison.errors import NetworkError
from jettison.network.columns.expressions import Expression, aggregates_in, syntax_fault
from jettison.network.columns.spark_functions import spark_functions, unknown_functions
from jettison.network.columns.words import meant
from jettison.network.graph import Graph
from jettison.network.import_paths import imported
from jettison.network.operators import Aggregate, Apply, CountAggregate, Map, Operator, Where, computed, kind_of
from jettison.network.windows.aggregates import parse_call
from jettison.network.windows.user_aggregates import Own, with_functions


def check_sql(graph: Graph) -> None:
    """Raise for the first expression that cannot be read as SQL."""
    for operator in graph.operators:
        element = f"{kind_of(operator)} {operator.name!r}"
        for expression in _expressions(operator):
            fault = syntax_fault(expression)
            if fault is not None:
                raise NetworkError(f"{element}: {_shown(expression)} cannot be read as SQL: {fault}.")
        if isinstance(operator, Where) and (found := aggregates_in(operator.predicate)):
            raise NetworkError(
                f"{element}: {found[0]!r} in {_shown(operator.predicate)} needs many rows, a filter sees one: "
                f"put .window(...).agg(...) before it."
            )


def unknown_function_notes(graph: Graph) -> list[str]:
    """A sentence for every function that Spark does not have. No fault: functions may be registered before a run."""
    return [
        f"{kind_of(operator)} {operator.name!r} calls {name!r}, which Spark does not have"
        f"{meant(name, sorted(spark_functions()))}: register it before the run, or the start is refused."
        for operator in graph.operators
        for expression in _expressions(operator)
        for name in unknown_functions(expression)
    ]


def check_imports(graph: Graph) -> None:
    """Raise for the first function that its path does not lead to, or that takes other values than it will get."""
    for operator in graph.operators:
        if isinstance(operator, Apply | Map) and isinstance(operator.function, str):
            imported(f"{kind_of(operator)} {operator.name!r}", operator.function)
        if isinstance(operator, Aggregate | CountAggregate):
            for name, call in operator.aggregates:
                if isinstance(call, Own):
                    with_functions(f"aggregate {operator.name!r}: {name!r}", call)


def _expressions(operator: Operator) -> Iterator[Expression]:
    if isinstance(operator, Where):
        yield operator.predicate
    yield from computed(operator)
    if isinstance(operator, Aggregate | CountAggregate):
        for _, call in operator.aggregates:
            if isinstance(call, str):
                parsed = parse_call(f"aggregate {operator.name!r}", call)
                yield from (argument for argument in parsed.arguments if argument != "*")


def _shown(expression: Expression) -> str:
    text = repr(expression)
    return text if len(text) <= 80 else f"{text[:80]}..."
