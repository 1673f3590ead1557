"""Random networks for property tests, and a second opinion on every number that planners compute.

Nothing here uses jettison.plan or jettison.statistics.load: what `worth_and_work` and `all_plans` say is computed anew.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from hypothesis import Phase, settings
from hypothesis import strategies as st

from jettison.network import (
    Aggregate,
    Graph,
    Network,
    Output,
    QoS,
    Select,
    Source,
    StreamJoin,
    Union,
    Where,
    WindowSpec,
    WithColumns,
    arc_name,
)
from jettison.network.operators import JOIN_TYPES, Apply, Join, Operator
from jettison.statistics.profile import Profile

COSTS_US = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0)
SELECTIVITIES = (1.0, 0.5, 2.0, 0.1)
ROWS = (1.0, 10.0, 100.0, 1000.0)


def steady(examples: int) -> settings:
    """The same examples in every run: these tests judge the code, not the luck of the day."""
    phases = (Phase.explicit, Phase.generate, Phase.shrink)  # explaining a failure takes longer than finding it
    return settings(derandomize=True, deadline=None, max_examples=examples, database=None, phases=phases)


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


def _concave(percents: Sequence[int], slopes: Sequence[int], fall: float) -> tuple[tuple[float, float], ...]:
    """Points at `percents` between which utility falls in proportion to `slopes`, by `fall` in all."""
    widths = [right - left for right, left in itertools.pairwise(percents)]
    total = sum(slope * width for slope, width in zip(slopes, widths, strict=True)) or 1
    utility, points = 1.0, [(100.0, 1.0)]
    for percent, slope, width in zip(percents[1:], slopes, widths, strict=True):
        utility = max(0.0, utility - fall * slope * width / total)
        points.append((float(percent), utility))
    return tuple(points)


_SHAPES = [((100, 0), (1,)), ((100, 0), (0,))]
_SHAPES += [((100, kink, 0), slopes) for kink in (80, 50, 20) for slopes in ((1, 2), (0, 1), (1, 4))]
_SHAPES += [
    ((100, *kinks, 0), slopes) for kinks in ((80, 40), (60, 20)) for slopes in ((1, 2, 4), (0, 1, 4), (2, 3, 3))
]
_QOS = st.sampled_from(
    [
        QoS(_concave(*shape, fall), priority)
        for shape in _SHAPES
        for fall in (1.0, 0.6)
        for priority in (1.0, 0.5, 2.0, 5.0)
    ]
)


def qos_graphs() -> st.SearchStrategy[QoS]:
    """Concave loss-tolerance graphs of one to three pieces, some with a flat start, some that end above 0."""
    return _QOS


# One draw per operator, from strategies made once: drawing is most of what these tests spend their time on.
_COST_AND_SELECTIVITY = st.sampled_from([(cost, passes) for passes in SELECTIVITIES for cost in COSTS_US])
_FIXED_AND_READ = st.sampled_from([(fixed, read) for fixed in (0.0, 3.0) for read in (0.0, 0.25)])
_ROWS = st.sampled_from(ROWS)
_UP_TO = [st.integers(0, most) for most in range(150)]


@st.composite
def profiles(draw: st.DrawFn, graph: Graph, drops_us: Sequence[float] = (0.0,)) -> Profile:
    """Costs for every operator, selectivities for those that have one."""
    drawn = {operator.name: draw(_COST_AND_SELECTIVITY) for operator in graph.operators}
    inner = [operator.name for operator in graph.operators if not isinstance(operator, Source | Output)]
    fixed_ms, read_us = draw(_FIXED_AND_READ)
    return Profile(
        {name: cost for name, (cost, _) in drawn.items()},
        {name: drawn[name][1] for name in inner},
        fixed_ms,
        {source.name: read_us for source in graph.sources},
        drops_us[draw(_UP_TO[len(drops_us) - 1])],
    )


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
        self.operators.append(Output(self.name("o"), (tail,), self.draw(_QOS)))

    def case(self, drops_us: Sequence[float]) -> Case:
        graph = Graph("random", tuple(self.operators))
        graph.check_complete()
        rows = {source.name: self.draw(_ROWS) for source in graph.sources}
        return Case(graph, self.draw(profiles(graph, drops_us)), rows)


@st.composite
def trees(draw: st.DrawFn, most_locations: int = 6, drops_us: Sequence[float] = (0.0,)) -> Case:
    """Networks whose streams split and never merge, with one or two sources."""
    built = _Builder(draw)
    open_ends = [built.source() for _ in range(1 + draw(_UP_TO[1]))]
    locations = len(open_ends)
    while open_ends:
        end = open_ends.pop(draw(_UP_TO[len(open_ends) - 1]))
        for _ in range(draw(_UP_TO[2])):
            end = built.where(end)
        fan_outs = [n for n in (0, 2, 3) if n <= most_locations - locations]
        fan_out = fan_outs[draw(_UP_TO[len(fan_outs) - 1])]
        if fan_out == 0:
            built.output(end)
            continue
        locations += fan_out
        leaves_here = draw(_UP_TO[1])
        if leaves_here:
            built.output(end)
        open_ends += [built.where(end) for _ in range(fan_out - leaves_here)]
    return built.case(drops_us)


@st.composite
def dags(draw: st.DrawFn, most_steps: int = 6, drops_us: Sequence[float] = (0.0,), merge: bool = False) -> Case:
    """Networks whose streams split and merge anywhere; with `merge`, at least one union."""
    built = _Builder(draw)
    streams = [built.source() for _ in range(1 + draw(_UP_TO[2]))]
    if merge and len(streams) == 1:
        streams.append(built.where(streams[0]))
    for _ in range(draw(_UP_TO[most_steps])):
        pair = draw(_UP_TO[len(streams) ** 2 - 1])
        tail, other = streams[pair // len(streams)], streams[pair % len(streams)]
        streams.append(built.where(tail) if tail == other else built.union((tail, other)))
    if merge and not any(isinstance(op, Union) for op in built.operators):
        streams.append(built.union((streams[-1], streams[-2])))
    read = {tail for op in built.operators for tail in op.inputs}
    for stream in streams:
        if stream not in read or draw(_UP_TO[3]) == 3:
            built.output(stream)
    return built.case(drops_us)


# --- networks for declarations and YAML: every kind of operator, odd but legal texts --------------------------------

_NAMES = (
    "a",
    "on",
    "no",
    "null",
    "123",
    "1e3",
    "-",
    "end",
    "true",
    "_",
    "größe",
    "a-b",
    "0x1F",
    "1_000",
    "12-31",
    "end_",
)
_PREDICATES = (
    "x > 1",
    "x = 'a: b # c'",
    "`x` IS NULL",
    "x IN ('\\'', \"q\")",
    "true",
    "x >\n 2",
    "  x > 3",
    "x LIKE '%é☃'",
)
_SELECTS = (("*",), ("x", "y", "t"), ("t", "y", "upper(x) AS x"))
_COLUMNS = ((("x", "'no'"),), (("x", "lower(x)"), ("y", "y")))
_MAKERS: list[Callable[[str, str], Operator]] = [
    *(partial(lambda text, name, tail: Where(name, (tail,), text), text) for text in _PREDICATES),
    *(partial(lambda items, name, tail: Select(name, (tail,), items), items) for items in _SELECTS),
    *(partial(lambda pairs, name, tail: WithColumns(name, (tail,), pairs), pairs) for pairs in _COLUMNS),
    *(partial(lambda how, name, tail: Join(name, (tail,), "zones", ("x", "t"), how), how) for how in JOIN_TYPES),
    lambda name, tail: Join(name, (tail,), "no", ("x",)),
    lambda name, tail: Apply(name, (tail,), "os.path:join"),
    lambda name, tail: Apply(name, (tail,), "builtins:len", ("x", "y", "t")),
]
_SOURCES = st.sampled_from(list(itertools.product((None, "t"), ((), ("x",), ("x", "t")), (None, "json"))))


@st.composite
def declared_graphs(draw: st.DrawFn) -> Graph:
    """Graphs of every kind of operator that can be written down, with names and texts that YAML could misread."""
    first = draw(_UP_TO[len(_NAMES) - 1])
    names = itertools.cycle((*_NAMES[first:], *_NAMES[:first]))
    operators: list[Operator] = []
    streams: list[str] = []
    timed: dict[str, bool] = {}
    for _ in range(1 + draw(_UP_TO[1])):
        columns = (("x", "string"), ("y", "map<string, array<int>>"), ("t", "timestamp"))
        source = Source(next(names), columns, *draw(_SOURCES))
        operators.append(source)
        streams.append(source.name)
        timed[source.name] = source.event_time is not None
    for _ in range(draw(_UP_TO[5])):
        tail, name = streams[draw(_UP_TO[len(streams) - 1])], next(names)
        other = streams[draw(_UP_TO[len(streams) - 1])]
        kind = draw(_UP_TO[len(_MAKERS) - 1])
        if tail == other and timed[tail] and kind % 3 == 0:
            window = WindowSpec(60_000 * (kind + 1), 500 * (kind + 1), ("x",) * (kind % 2), kind // 4 * 1500)
            operators.append(Aggregate(name, (tail,), window, (("no", "count(*)"), ("y: 1", "first(y, true)"))))
            operators.append(Output(next(names), (name,)))
            continue  # its columns are no longer those of the others
        if tail == other:
            operators.append(_MAKERS[kind](name, tail))
        elif timed[tail] and timed[other] and kind % 2:
            operators.append(StreamJoin(name, (tail, other), ("x", "t", "y"), 1.5 * 10**kind, delay_ms=kind // 3))
        else:
            operators.append(Union(name, (tail, other)))
        streams.append(name)
        timed[name] = timed[tail] and timed[other]
    read = {tail for op in operators for tail in op.inputs}
    for stream in streams:
        if stream not in read:
            operators.append(Output(next(names), (stream,), draw(_QOS), bool(draw(_UP_TO[1]))))
    return Graph(("random", "7", "a: b", "off")[draw(_UP_TO[3])], tuple(operators))


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
            work = work + drop_us * inflow * ((keep > 0.0) & (keep < 1.0))  # what keeps nothing does not judge
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
