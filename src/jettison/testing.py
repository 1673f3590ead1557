"""What tests of a network need: rows in, results out, a clock that stands still, a plan that is always the same.

    from jettison.testing import run_rows

    def test_dear_trips_are_reported(spark):
        found = run_rows(network(), {"trips": [(1, 25.0), (2, 7.0)]}, spark=spark)
        assert [row.trip for row in found["alerts"]] == [1]

Nothing here loads Spark before it is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jettison.errors import PlanError, StartError
from jettison.network.columns.schema import as_ddl
from jettison.network.declare import Network
from jettison.network.operators import Source
from jettison.plan.plan import Infeasible, Plan
from jettison.plan.problem import Problem
from jettison.plan.shedders.asked import check_arcs
from jettison.statistics.profile import Profile
from jettison.synthetic.tagged import require_number

if TYPE_CHECKING:
    from jettison.spark.read.memory_source import MemorySource

__all__ = ["FixedShedder", "ManualClock", "memory_source", "run_rows"]


@dataclass
class ManualClock:
    """A clock that stands still until a test moves it. With `step_s` it moves by so much whenever it is read.

    >>> clock = ManualClock()
    >>> clock.advance(2.5)
    >>> clock(), clock()
    (2.5, 2.5)
    >>> ticking = ManualClock(step_s=0.5)
    >>> ticking(), ticking()
    (0.0, 0.5)
    """

    now_s: float = 0.0
    step_s: float = 0.0

    def __post_init__(self) -> None:
        require_number(self, "now_s", self.now_s)
        require_number(self, "step_s", self.step_s)

    def __call__(self) -> float:
        now_s = self.now_s
        self.now_s += self.step_s
        return now_s

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        require_number(self, "seconds", seconds)
        self.now_s += seconds


@dataclass
class FixedShedder:
    """A shedder that answers every problem with the same plan, and remembers what it was asked.

    >>> from jettison.plan.drops.random import Random
    >>> shedder = FixedShedder(Plan({"trips": Random(0.5)}, "half"))
    >>> net = Network("n"); _ = net.source("trips", "fare double").output("fares")
    >>> shedder.plan(Problem(net.graph, Profile({}, {}), {"trips": 1000}, 9e5)).drops
    {'trips': Random(keep=0.5)}
    >>> shedder.problems[0].rows
    {'trips': 1000}
    """

    answer: Plan | Infeasible
    problems: list[Problem] = field(default_factory=list)

    def __post_init__(self) -> None:
        given: object = self.answer
        if not isinstance(given, Plan | Infeasible):
            raise PlanError(f"FixedShedder has the answer {given!r}: give a Plan or Infeasible.")

    def plan(self, problem: Problem) -> Plan | Infeasible:
        self.problems.append(problem)
        check_arcs("FixedShedder", problem, self.answer if isinstance(self.answer, Plan) else self.answer.best)
        return self.answer

    def observe(self, sample: object) -> None:
        """Learn nothing."""


def memory_source(spark: Any, schema: str, rows: Iterable[Any] = ()) -> MemorySource:
    """A source of rows that a test gives: each `add(rows)` is one batch, `frame` is the stream for `jt.start`.

    Its counterpart is the sink `jt.memory()`.
    """
    from jettison.spark.read.memory_source import MemorySource

    return MemorySource(spark, schema, rows)


def run_rows(
    network: Network, rows: Mapping[str, Sequence[Any]], *, spark: Any = None, **options: Any
) -> dict[str, list[Any]]:
    """Run a network on these rows, nothing shed, to the end; the rows of every output.

    `rows` has, by source, tuples in the order of its schema, or dictionaries; where the source has a payload, tuples of
    one text. Windows that the watermark has passed are closed, those after it are not. `options` are others of
    `jt.start`, such as `tables`.
    """
    from jettison.spark.run.session import local_session
    from jettison.spark.run.start import start
    from jettison.spark.write.sinks import memory

    if not isinstance(network, Network):
        raise StartError(f"run_rows: network is {network!r}: give a jt.Network.")
    if not isinstance(rows, Mapping):
        raise StartError(f"run_rows: rows is {rows!r}: give rows by source, such as {{'trips': [(1, 25.0)]}}.")
    graph = network.graph
    if taken := sorted({"sources", "sinks"} & options.keys()):
        raise StartError(f"run_rows has its own {taken[0]}: leave {taken[0]}= out, or use jt.start.")
    missing = [source.name for source in graph.sources if source.name not in rows]
    if missing:
        raise StartError(f"run_rows: there are no rows for source {missing[0]!r}: give [] where none come.")
    session = spark or local_session()
    inputs = {source.name: memory_source(session, _columns(source), rows[source.name]) for source in graph.sources}
    sinks = {output.name: memory() for output in graph.outputs}
    given = {"trigger": "available now", "costs": Profile({}, {}), **options}
    run = start(network, {name: source.frame for name, source in inputs.items()}, sinks, **given)
    run.await_termination()
    return {name: list(sink.rows) for name, sink in sinks.items()}


def _columns(source: Source) -> str:
    """The columns of a source's stream: those of its schema, or the one that holds the payload."""
    return as_ddl(source.schema) if source.payload is None else f"{source.payload_column} string"
