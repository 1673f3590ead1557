"""The set-up of the thesis' simulations (3.8.1): queries of filters and unions over inputs with even values 0 to 100.

An output values two intervals. The second is worth 1, the first a utility from [0, 1], Zipf distributed: with skew
theta the r-th of 20 utilities, from the lowest on, has a probability in proportion to 1 / r^theta. From the value
utility and the output's histogram follows its loss-tolerance graph (3.7.1). Two metrics judge a run:

    tuple utility   the loss-tolerance graph at the share of tuples delivered
    value utility   sum f' u / sum f u,  the share delivered of what the tuples are worth

Costs are scaled so that every network can take `CAPACITY` tuples a second at each of its inputs.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from jettison.network import Graph, Operator, Output, QoS, Source, Union, Value, Where
from jettison.network.value import loss_graph
from jettison.plan.problem import Problem
from jettison.plan.shedders.registry import SEMANTIC
from jettison.sim import SimResult, simulate
from jettison.statistics.profile import Profile

CAPACITY = 1000.0
"""Tuples per second and input that take all of the time there is."""

_GRID = 5
_UTILITIES = 20
_SECONDS, _WARMUP_S = 14.0, 4.0
_TRIGGER_MS = 1000.0
_EVEN = tuple((float(low), float(low + _GRID), 1.0) for low in range(0, 100, _GRID))

Vector = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Setting:
    """A network: as valued, as its loss graphs describe it, and at its true costs and spreads."""

    valued: Graph
    by_loss: Graph
    profile: Profile


@dataclass(frozen=True)
class Loss:
    """Mean over the outputs of what is lost, in percent."""

    tuple_percent: float
    value_percent: float


def zipf_utility(skew: float, draw: random.Random) -> float:
    """A utility from [0, 1]: .05, .1, ... 1; low ones are the more probable the larger the skew.

    >>> [round(sum(zipf_utility(skew, random.Random(n)) for n in range(500)) / 500, 1) for skew in (0.0, 1.0, 2.0)]
    [0.5, 0.3, 0.1]
    """
    weights = [rank**-skew for rank in range(1, _UTILITIES + 1)]
    return draw.choices(range(1, _UTILITIES + 1), weights)[0] / _UTILITIES


def two_intervals(split: float, utility: float) -> QoS:
    """Values below `split` are worth `utility`, the others 1."""
    # the histogram lets cells begin at every multiple of 5, where the filters cut
    return QoS(value=Value("x", [(0.0, split, utility), (split, 100.0, 1.0)], histogram=_EVEN))


def mixed_queries(seed: int, skew: float, *, inputs: int, queries: int) -> Setting:
    """Random queries: filters over one or two inputs, a union where there are two, often a further filter behind."""
    # the same draws for every skew: what differs then is the skew alone
    draw, worth = random.Random(f"queries {seed}"), random.Random(f"worth {seed}")
    made: list[Operator] = [Source(f"s{number}", (("x", "double"),)) for number in range(inputs)]
    passing: dict[str, float] = {}
    outputs: list[Operator] = []

    def filtered(name: str, tail: str, above: float) -> str:
        made.append(Where(name, (tail,), f"x > {above:g}"))
        passing[name] = above
        return name

    for number in range(queries):
        others = [f"s{other}" for other in range(inputs) if other != number % inputs]
        tails = [f"s{number % inputs}", *draw.sample(others, draw.choice((0, 1)))]
        low = float(draw.randrange(5, 45, _GRID))
        ends = [filtered(f"f{number}_{tail}", tail, float(draw.randrange(0, int(low), _GRID))) for tail in tails]
        end = ends[0]
        if len(ends) > 1:
            end = f"u{number}"
            made.append(Union(end, tuple(ends)))
        if draw.random() < 0.7:
            end = filtered(f"g{number}", end, low)
        split = float(draw.randrange(int(low) + 15, 95, _GRID))
        outputs.append(Output(f"o{number}", (end,), two_intervals(split, zipf_utility(skew, worth))))
    costs = {each.name: draw.uniform(1.0, 10.0) for each in made if not isinstance(each, Source)}
    return setting(Graph(f"mixed {seed}", (*made, *outputs)), costs, passing)


def setting(graph: Graph, costs: Mapping[str, float], passing: Mapping[str, float]) -> Setting:
    """Everything that follows from a valued network, its costs, and the values above which its filters pass."""
    graph.check_complete()
    spreads, selectivity = _spreads(graph, passing)
    values = {f"{name}.x": tuple(map(float, spreads[name])) for track in graph.tracks.all for name in track.columns}
    profile = Profile(costs, selectivity, values=values)
    full_us = Problem(graph, profile, dict.fromkeys((each.name for each in graph.sources), CAPACITY), 0.0).load_us
    scaled = replace(profile, cost_us={name: 1e6 / full_us * cost for name, cost in costs.items()})
    by_loss = {
        output.name: replace(output, qos=QoS(loss=_derived(graph, output, spreads[output.name])))
        for output in graph.outputs
    }
    operators = tuple(by_loss.get(each.name, each) for each in graph.operators)
    return Setting(graph, replace(graph, operators=operators), scaled)


def shared_queries(seed: int, skew: float, *, queries: int = 20) -> Setting:
    """Identical queries behind one operator; they differ in what values from 0 to 75 are worth (3.8.4).

    Every operator costs the same and passes all. Drops behind the common one cannot save its work.
    """
    worth = random.Random(f"worth {seed}")
    own = [f"q{number}" for number in range(queries)]
    made: list[Operator] = [Source("s", (("x", "double"),)), Where("shared", ("s",), "x >= 0")]
    made += [Where(name, ("shared",), "x >= 0") for name in own]
    made += [Output(f"o{name}", (name,), two_intervals(75.0, zipf_utility(skew, worth))) for name in own]
    return setting(Graph(f"shared {seed}", tuple(made)), dict.fromkeys(("shared", *own), 1.0), {})


def judged(at: Setting, shedder: str, rows_per_s: float, seed: int) -> Loss:
    """What a shedder loses when so many tuples arrive at every input, by simulation after a warm-up.

    Only the semantic shedder knows values; the others plan by the loss graphs, if they ask for any.
    """
    result = _simulated(at.valued, at, shedder, rows_per_s, seed)
    value_loss = 1 - _mean(output.worth_share for output in result.outputs.values())
    return Loss(_tuple_percent(at, result), 100 * value_loss)


def judged_by_tuples(at: Setting, shedder: str, rows_per_s: float) -> float:
    """Percent of tuple utility lost, as expected: without chance, and without regard to values."""
    return _tuple_percent(at, _simulated(at.by_loss, at, shedder, rows_per_s, noise=False))


def _simulated(
    graph: Graph, at: Setting, shedder: str, rows_per_s: float, seed: int = 0, *, noise: bool = True
) -> SimResult:
    return simulate(
        graph,
        at.profile,
        dict.fromkeys((source.name for source in graph.sources), rows_per_s),
        trigger_ms=_TRIGGER_MS,
        headroom=1.0,
        seconds=_SECONDS,
        warmup_s=_WARMUP_S,
        seed=seed,
        noise=noise,
        shedder=shedder,
        planned_as=None if shedder == SEMANTIC else at.by_loss,
    )


def _tuple_percent(at: Setting, result: SimResult) -> float:
    shares = {name: output.delivered_share for name, output in result.outputs.items()}
    return 100 * (1 - _mean(output.qos.utility(shares[output.name]) for output in at.by_loss.outputs))


def mean_loss(losses: Sequence[Loss]) -> Loss:
    return Loss(_mean(each.tuple_percent for each in losses), _mean(each.value_percent for each in losses))


def _derived(graph: Graph, output: Output, spread: Vector) -> tuple[tuple[float, float], ...]:
    value = output.qos.value
    assert value is not None
    worth = graph.tracks.by_output[output.name].worth(value)[:-1]
    utilities = sorted(set(worth.tolist()))
    return loss_graph(utilities, [float(spread[:-1][worth == utility].sum()) for utility in utilities])


def _spreads(graph: Graph, passing: Mapping[str, float]) -> tuple[dict[str, Vector], dict[str, float]]:
    """How values are spread behind every operator, and selectivities, when all inputs send as much."""
    bounds = graph.tracks.all[0].bounds
    assert all(track.bounds == bounds for track in graph.tracks.all), "one grid for all"
    lows, widths = np.array(bounds[:-1]), np.diff(bounds)
    flows: dict[str, Vector] = {}
    selectivity: dict[str, float] = {}
    for operator in graph.operators:
        if isinstance(operator, Source):
            flows[operator.name] = np.append(widths / widths.sum(), 0.0)
            continue
        flow: Vector = np.sum([flows[tail] for tail in operator.inputs], axis=0)
        if operator.name in passing:
            passed = flow * np.append(lows >= passing[operator.name], False)
            selectivity[operator.name] = float(passed.sum() / flow.sum())
            flow = passed
        flows[operator.name] = flow
    return {name: flow / flow.sum() for name, flow in flows.items()}, selectivity


def _mean(numbers: Iterable[float]) -> float:
    found = list(numbers)
    return sum(found) / len(found)
