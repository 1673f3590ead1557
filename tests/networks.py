"""Random networks for property tests, and a second opinion on every number that planners compute.

Nothing here uses jettison.plan or jettison.statistics.load: what `worth_and_work` and `all_plans` say is computed anew.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from jettison.network import Graph, Network, Output, QoS, Select, Source, Union, Where, WithColumns, arc_name
from jettison.network.operators import Apply, Join, Operator
from jettison.statistics.profile import Profile

COSTS_US = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0)
SELECTIVITIES = (0.1, 0.5, 1.0, 2.0)
ROWS = (1.0, 10.0, 100.0, 1000.0)


def steady(examples: int) -> settings:
    """The same examples in every run: these tests judge the code, not the luck of the day."""
    return settings(derandomize=True, deadline=None, max_examples=examples, database=None)


@dataclass(frozen=True)
class Case:
    """A network with everything that a planner needs to know about it."""

    graph: Graph
    profile: Profile
    rows: dict[str, float]

    def __repr__(self) -> str:
        operators = " ".join(f"{op.name}({','.join(op.inputs)})" for op in self.graph.operators)
        worth = {output.name: (output.qos.loss, output.qos.priority) for output in self.graph.outputs}
        return f"Case({operators} | {self.profile} | rows={self.rows} | {worth})"


# --- pieces -------------------------------------------------------------------------------------------------------


@st.composite
def qos_graphs(draw: st.DrawFn) -> QoS:
    """Concave loss-tolerance graphs of one to three pieces, some with a flat start, some that end above 0."""
    inner = draw(st.lists(st.sampled_from((20, 40, 50, 60, 80)), max_size=2, unique=True))
    percents = [100, *sorted(inner, reverse=True), 0]
    widths = [right - left for right, left in itertools.pairwise(percents)]
    slopes = sorted(draw(st.lists(st.integers(0, 4), min_size=len(widths), max_size=len(widths))))
    fall = draw(st.sampled_from((1.0, 1.0, 0.6)))
    total = sum(slope * width for slope, width in zip(slopes, widths, strict=True)) or 1
    utility, loss = 1.0, [(100.0, 1.0)]
    for percent, slope, width in zip(percents[1:], slopes, widths, strict=True):
        utility = max(0.0, utility - fall * slope * width / total)
        loss.append((float(percent), utility))
    return QoS(tuple(loss), draw(st.sampled_from((0.5, 1.0, 1.0, 2.0, 5.0))))


def profiles(graph: Graph, drops_us: Sequence[float] = (0.0,)) -> st.SearchStrategy[Profile]:
    """Costs for every operator, selectivities for those that have one."""
    inner = [operator.name for operator in graph.operators if not isinstance(operator, Source | Output)]
    return st.builds(
        Profile,
        st.fixed_dictionaries({operator.name: st.sampled_from(COSTS_US) for operator in graph.operators}),
        st.fixed_dictionaries({name: st.sampled_from(SELECTIVITIES) for name in inner}),
        st.sampled_from((0.0, 3.0)),
        st.fixed_dictionaries({source.name: st.sampled_from((0.0, 0.25)) for source in graph.sources}),
        st.sampled_from(tuple(drops_us)),
    )


def arrivals(graph: Graph) -> st.SearchStrategy[dict[str, float]]:
    return st.fixed_dictionaries({source.name: st.sampled_from(ROWS) for source in graph.sources})


class _Builder:
    """Collects operators that all carry the one column x."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.operators: list[Operator] = []

    def name(self, prefix: str) -> str:
        return f"{prefix}{sum(op.name.startswith(prefix) for op in self.operators) + 1}"

    def source(self) -> str:
        self.operators.append(Source(self.name("s"), (("x", "int"),)))
        return self.operators[-1].name

    def where(self, tail: str) -> str:
        self.operators.append(Where(self.name("w"), (tail,), f"x > {len(self.operators)}"))
        return self.operators[-1].name

    def union(self, tails: tuple[str, ...]) -> str:
        self.operators.append(Union(self.name("u"), tails))
        return self.operators[-1].name

    def output(self, tail: str) -> None:
        self.operators.append(Output(self.name("o"), (tail,), self.draw(qos_graphs())))

    def case(self, drops_us: Sequence[float]) -> Case:
        graph = Graph("random", tuple(self.operators))
        graph.check_complete()
        return Case(graph, self.draw(profiles(graph, drops_us)), self.draw(arrivals(graph)))


@st.composite
def trees(draw: st.DrawFn, most_locations: int = 6, drops_us: Sequence[float] = (0.0,)) -> Case:
    """Networks whose streams split and never merge, with one or two sources."""
    built = _Builder(draw)
    open_ends = [built.source() for _ in range(draw(st.integers(1, 2)))]
    locations = len(open_ends)
    while open_ends:
        end = open_ends.pop(draw(st.integers(0, len(open_ends) - 1)))
        for _ in range(draw(st.integers(0, 2))):
            end = built.where(end)
        room = most_locations - locations
        fan_out = draw(st.sampled_from([n for n in (0, 2, 3) if n <= room]))
        if fan_out == 0:
            built.output(end)
            continue
        locations += fan_out
        leaves_here = draw(st.booleans())
        if leaves_here:
            built.output(end)
        open_ends += [built.where(end) for _ in range(fan_out - leaves_here)]
    return built.case(drops_us)


@st.composite
def dags(draw: st.DrawFn, most_steps: int = 6, drops_us: Sequence[float] = (0.0,), merge: bool = False) -> Case:
    """Networks whose streams split and merge anywhere; with `merge`, at least one union."""
    built = _Builder(draw)
    streams = [built.source() for _ in range(draw(st.integers(1, 3)))]
    if merge and len(streams) == 1:
        streams.append(built.where(streams[0]))
    for _ in range(draw(st.integers(0, most_steps))):
        tail = draw(st.sampled_from(streams))
        other = draw(st.sampled_from(streams))
        streams.append(built.where(tail) if tail == other else built.union((tail, other)))
    if merge and not any(isinstance(op, Union) for op in built.operators):
        streams.append(built.union((streams[-1], streams[-2])))
    read = {tail for op in built.operators for tail in op.inputs}
    for stream in streams:
        if stream not in read or draw(st.integers(0, 3)) == 0:
            built.output(stream)
    return built.case(drops_us)


# --- networks for declarations and YAML: every kind of operator, odd but legal texts --------------------------------

_NAMES = st.one_of(
    st.sampled_from(("on", "no", "null", "123", "1e3", "-", "end", "true", "_", "größe", "a-b", "0x1F", "1_000")),
    st.text("abcxyz_-0123456789", min_size=1, max_size=6),
)
_PREDICATES = st.sampled_from(
    ("x > 1", "x = 'a: b # c'", "`x` IS NULL", "x IN ('\\'', \"q\")", "true", "x >\n 2", "  x > 3", "x LIKE '%é☃'")
)
_FUNCTIONS = st.sampled_from(("os.path:join", "builtins:len"))


@st.composite
def declared_graphs(draw: st.DrawFn) -> Graph:
    """Graphs of every kind of operator that can be written down, with names and texts that YAML could misread."""
    names = iter(draw(st.lists(_NAMES, min_size=14, max_size=14, unique=True)))
    operators: list[Operator] = []
    streams: list[str] = []
    for _ in range(draw(st.integers(1, 2))):
        has_time = draw(st.booleans())
        columns = (("x", "string"), ("y", "map<string, array<int>>"), ("t", "timestamp"))
        id_columns = draw(st.sampled_from(((), ("x",), ("x", "t"))))
        payload = draw(st.sampled_from((None, "json")))
        operators.append(Source(next(names), columns, "t" if has_time else None, id_columns, payload))
        streams.append(operators[-1].name)
    for _ in range(draw(st.integers(0, 5))):
        tail, name = draw(st.sampled_from(streams)), next(names)
        operators.append(draw(_operators(name, tail, [s for s in streams if s != tail])))
        streams.append(name)
    read = {tail for op in operators for tail in op.inputs}
    for stream in streams:
        if stream not in read:
            operators.append(Output(next(names), (stream,), draw(qos_graphs()), draw(st.booleans())))
    return Graph(draw(st.sampled_from(("random", "7", "a: b", "off"))), tuple(operators))


@st.composite
def _operators(draw: st.DrawFn, name: str, tail: str, others: list[str]) -> Operator:
    inputs = (tail,)
    makers: list[Any] = [
        lambda: Where(name, inputs, draw(_PREDICATES)),
        lambda: Select(name, inputs, draw(st.sampled_from((("*",), ("x", "y", "t"), ("t", "y", "upper(x) AS x"))))),
        lambda: WithColumns(name, inputs, draw(st.sampled_from(((("x", "'no'"),), (("x", "lower(x)"), ("y", "y")))))),
        lambda: Join(name, inputs, "zones", draw(st.sampled_from((("x",), ("x", "t")))), draw(_HOW)),
        lambda: Apply(name, inputs, draw(_FUNCTIONS), draw(st.sampled_from((None, ("x", "y", "t"))))),
    ]
    if others:
        makers.append(lambda: Union(name, (tail, draw(st.sampled_from(others)))))
    made: Operator = draw(st.sampled_from(makers))()
    return made


_HOW = st.sampled_from(("inner", "left", "left_semi", "left_anti"))


# --- networks of the seeds ----------------------------------------------------------------------------------------


def figure_3_3(qos_1: QoS | None = None, qos_2: QoS | None = None, qos_3: QoS | None = None) -> Graph:
    """Thesis figure 3.3: I1 -> op1 -> (op2 -> O1, op3 -> O2), and I2 -> op4 -> O3 on its own."""
    net = Network("figure-3-3")
    op1 = net.source("i1", "x int").where("x > 0", name="op1")
    op1.where("x > 1", name="op2").output("o1", qos=qos_1)
    op1.where("x > 2", name="op3").output("o2", qos=qos_2)
    net.source("i2", "x int").where("x > 3", name="op4").output("o3", qos=qos_3)
    return net.graph


LETTERS = {"i1": "A", "op1>op2": "B", "op2>o1": "C", "op1>op3": "D", "op3>o2": "E", "i2": "F", "op4>o3": "G"}
"""Figure 3.3's letters; it marks A, B, D and F as candidates."""


# --- a second opinion ---------------------------------------------------------------------------------------------


def interpolated(qos: QoS, shares: Any) -> Any:
    """Priority x utility at delivered shares."""
    percents, utilities = zip(*reversed(qos.loss), strict=True)
    return qos.priority * np.interp(100 * np.asarray(shares), percents, utilities)


def worth_and_work(case: Case, keeps: Mapping[str, Any], drop_us: float = 0.0) -> tuple[Any, Any]:
    """Utility and work (fixed parts left out) of many plans at once; `keeps` gives an array per arc, 1 elsewhere."""
    graph, profile = case.graph, case.profile
    flow: dict[str, Any] = {}
    full: dict[str, float] = {}
    work: Any = 0.0
    worth: Any = 0.0
    for operator in graph.operators:
        arriving, arriving_full = 0.0, 0.0
        tails = operator.inputs or (None,)
        for tail in tails:
            arc = operator.name if tail is None else arc_name(tail, operator.name)
            inflow = case.rows[operator.name] if tail is None else flow[tail]
            keep = np.asarray(keeps.get(arc, 1.0))
            work = work + drop_us * inflow * (keep < 1.0)
            arriving = arriving + inflow * keep
            arriving_full += case.rows[operator.name] if tail is None else full[tail]
        work = work + arriving * profile.cost_us.get(operator.name, 0.0)
        selectivity = profile.selectivity.get(operator.name, 1.0)
        flow[operator.name], full[operator.name] = arriving * selectivity, arriving_full * selectivity
        if isinstance(operator, Output):
            share = arriving / arriving_full if arriving_full > 0 else np.ones_like(arriving)
            worth = worth + interpolated(operator.qos, share)
    return worth, work


def drop_places(graph: Graph) -> list[str]:
    """Inputs and arcs out of splits, found anew."""
    tails = [tail for operator in graph.operators for tail in operator.inputs]
    places = [source.name for source in graph.sources]
    for operator in graph.operators:
        places += [arc_name(tail, operator.name) for tail in operator.inputs if tails.count(tail) > 1]
    return places


def all_plans(graph: Graph, shares: Sequence[float]) -> dict[str, Any]:
    """Every combination of what each place's drop keeps: all monotone level assignments, and more."""
    places = drop_places(graph)
    table = np.array(list(itertools.product(shares, repeat=len(places))))
    return {place: table[:, column] for column, place in enumerate(places)}
