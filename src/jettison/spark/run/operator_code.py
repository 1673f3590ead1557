"""The Python code that operators run, found where it is: functions of the network, and UDFs in the plans of Spark.

A Column hides the function of a UDF, and SQL names a registered one only. Spark's analysed plan has both, pickled as
workers will get them. What is unpickled here was pickled by this very process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pyspark import cloudpickle
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jettison.network.event_time.coverage import keeping
from jettison.network.graph import Graph
from jettison.network.identity.code_hash import code_lines
from jettison.network.operators import Aggregate, Apply, CountAggregate, Map, Operator
from jettison.network.windows.user_aggregates import FUNCTIONS, Own, UserAggregate

_OURS = "jettison."


def code_of(graph: Graph, frame_of: Callable[[str], DataFrame]) -> dict[str, tuple[str, ...]]:
    """By operator that keeps state or runs a function: the lines of `code_identity` of all that it runs.

    `frame_of` gives the rows of an operator, on no rows; of Spark its plan is asked once for each operator.
    """
    keeps = {each.name for each in keeping(graph)}
    plans: dict[str, list[Any]] = {}

    def in_plan(name: str) -> list[Any]:
        if name not in plans:
            plans[name] = _in_plan(frame_of(name))
        return plans[name]

    def functions(name: str) -> list[Any]:
        found = [] if name in keeps else in_plan(name)
        for above in _lineage(graph, name):
            operator = graph.by_name[above]
            found += [*_declared(operator), *_in_calls(operator, frame_of)]
            if above in keeps:  # what comes to it; of operators between two that keep state the plan has them all
                found += [each for tail in operator.inputs for each in in_plan(tail)]
        return found

    wanted = [*(each.name for each in graph.operators if isinstance(each, Apply)), *sorted(keeps)]
    return {name: code_lines(functions(name)) for name in wanted}


def _lineage(graph: Graph, name: str) -> tuple[str, ...]:
    """An operator and all above it."""
    found, waiting = {name: True}, [name]
    while waiting:
        tails = graph.by_name[waiting.pop()].inputs
        waiting += [tail for tail in tails if tail not in found]
        found |= dict.fromkeys(tails, True)
    return tuple(found)


def _declared(operator: Operator) -> Iterator[Any]:
    """The functions that an operator was declared with."""
    if isinstance(operator, Apply | Map):
        yield operator.function
    if isinstance(operator, Aggregate | CountAggregate):
        for _, call in operator.aggregates:
            if isinstance(call, Own):
                words = FUNCTIONS if isinstance(call, UserAggregate) else ("function",)
                yield from (getattr(call, word) for word in words)


def _in_calls(operator: Operator, frame_of: Callable[[str], DataFrame]) -> list[Any]:
    """Registered functions in the arguments of aggregates, as in `sum(net_fare(fare))`."""
    if not isinstance(operator, Aggregate | CountAggregate):
        return []
    found: list[Any] = []
    calls = [call for _, call in operator.aggregates if isinstance(call, str) and call.count("(") > 1]
    for call in calls:
        try:
            found += _in_plan(frame_of(operator.inputs[0]).agg(F.expr(call)))
        except AnalysisException:  # an aggregate that Spark does not have
            continue
    return found


def _in_plan(frame: DataFrame) -> list[Any]:
    """The functions of all UDFs in a plan, those of this package left out: the network has what they hold."""
    jvm: Any = frame.sparkSession._jvm
    wanted = jvm.org.apache.spark.sql.catalyst.trees.TreePattern.PYTHON_UDF()
    found = list(_udfs(frame._jdf.queryExecution().analyzed(), wanted, in_plan=True))
    functions = [_unpickled(jvm, each) for each in found]
    return [each for each in functions if not str(getattr(each, "__module__", "")).startswith(_OURS)]


def _udfs(node: Any, wanted: Any, *, in_plan: bool) -> Iterator[Any]:
    """UDFs in a tree of Spark's; parts without one are passed over, for each question to the JVM takes its time."""
    if not node.containsPattern(wanted):
        return
    if not in_plan and str(node.getClass().getSimpleName()) == "PythonUDF":
        yield node
    if in_plan:
        yield from (each for inner in _all(node.expressions()) for each in _udfs(inner, wanted, in_plan=False))
    for inner in _all(node.children()):
        yield from _udfs(inner, wanted, in_plan=in_plan)


def _all(sequence: Any) -> Iterator[Any]:
    return (sequence.apply(number) for number in range(sequence.size()))


def _unpickled(jvm: Any, udf: Any) -> Any:
    """The function of a UDF; its name where it is too large: Spark broadcasts it then, and it cannot be had here."""
    command = udf.func().command().toArray(jvm.scala.reflect.ClassTag.Byte())
    try:
        return cloudpickle.loads(bytes(command))[0]
    except Exception:  # whatever the user's objects throw when they are unpickled
        return f"UDF {udf.name()}"
