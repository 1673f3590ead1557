"""`simulate_nodes`: a placed network on a virtual clock, the same control loop in every node."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from jettison.control.loop import Controller, Settings
from jettison.errors import StartError
from jettison.network.arc import arc_head
from jettison.network.graph import Graph
from jettison.network.nodes.fragments import Fragment
from jettison.plan.nodes.fragment_structure import fragment_profile
from jettison.plan.nodes.program import Program
from jettison.plan.nodes.solver import PerTick
from jettison.plan.nodes.structure import Structure, structure
from jettison.plan.nodes.tables import Grain, Tables
from jettison.plan.problem import Shedder
from jettison.plan.shedders.registry import SEMANTIC
from jettison.sim.cells import CellGrid
from jettison.sim.chance import Chance
from jettison.sim.engine import planning_clock
from jettison.sim.machine import Machine
from jettison.sim.micro_batch import MicroBatch
from jettison.sim.nodes.coordination import ByThemselves, Coordination, Coordinator, Neighbours
from jettison.sim.nodes.judging import Judge
from jettison.sim.nodes.links import LinkQueue, NodeArrivals, SendingAccount
from jettison.sim.nodes.result import NodeBatch, NodesResult, node_batch
from jettison.sim.nodes.trouble import Post, Trouble
from jettison.statistics.load import yields
from jettison.statistics.profile import Profile
from jettison.synthetic.rates import Constant, Rate

MODES = ("local", "per-tick", "tables", "neighbours")
"""Who plans: every node for itself, a coordinator by a program per tick or by tables (C-FIT), neighbours (D-FIT)."""

_PATIENCE_TRIGGERS = 30.0
_SLOW = 2.0


@dataclass(frozen=True)
class NodesSettings:
    """How nodes run: interval of batches, share of capacity to use, who plans, how fine tables are, what is in time.

    `shedder` plans what a node sheds by itself: all of it in mode "local", else what goes beyond the agreed drops.

    >>> NodesSettings(headroom=2.0)
    Traceback (most recent call last):
    jettison.errors.StartError: headroom is 2.0: give the share of capacity to use, above 0 and at most 1.
    """

    trigger_ms: float = 1000.0
    headroom: float = 0.9
    mode: str = "per-tick"
    epsilon: float = 0.1
    deadline_s: float = 8.0
    shedding: bool = True
    shedder: str | Shedder = SEMANTIC

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise StartError(f"mode is {self.mode!r}: use one of {', '.join(MODES)}.")
        if not (math.isfinite(self.deadline_s) and self.deadline_s > 0):
            raise StartError(f"deadline_s is {self.deadline_s}: give seconds above 0.")
        Grain(self.epsilon)
        _ = self.of_one_node

    @property
    def of_one_node(self) -> Settings:
        """The settings of the control loop in every node."""
        return Settings(self.trigger_ms, self.headroom, self.shedding, shedder=self.shedder)


class _Node:
    """One node while it runs."""

    def __init__(
        self,
        part: Fragment,
        profile: Profile,
        settings: Settings,
        arrivals: NodeArrivals,
        chance: Chance,
        cells: CellGrid,
    ) -> None:
        self.part, self._profile, self._settings = part, profile, settings
        self.account = SendingAccount(part, cells.count)
        self._arrivals, self._yields = arrivals, yields(part.graph, profile)
        self._machine = Machine(part.graph, profile, cells, arrivals, chance, self.account)
        self.running = MicroBatch(self._machine, self._controller())

    def restart(self) -> None:
        """Come back with nothing but what was declared."""
        self.running.controller = self._controller()

    def _controller(self) -> Controller:
        graph = self.part.graph
        return Controller(graph, self._settings, self._profile, clock=planning_clock(graph))

    def dropped(self) -> float:
        """Rows that would have left the node with its last batch, had it dropped nothing."""
        return sum(
            float(rows.sum()) * sum(self._yields[arc_head(arc)].values()) for arc, rows in self.account.dropped.items()
        )

    @property
    def links(self) -> Mapping[str, LinkQueue]:
        return self._arrivals.links


def simulate_nodes(
    graph: Graph,
    profile: Profile,
    rates: Mapping[str, Rate | float],
    *,
    seconds: float,
    settings: NodesSettings | None = None,
    trouble: Trouble | None = None,
    seed: int = 0,
) -> NodesResult:
    """Run a placed network for so many virtual seconds; the same arguments give the same result.

    >>> from jettison.network import Network, Node
    >>> net = Network("n")
    >>> _ = net.source("s", "x int").where("x > 0", name="a").where("x > 1", name="b").output("o")
    >>> net.place(Node("one", ["a"], 1.0), Node("two", ["b"], 1.0))
    >>> costs = Profile({"a": 10.0, "b": 20.0}, {})  # node two takes 45,000 rows a second with headroom .9
    >>> found = simulate_nodes(net.graph, costs, {"s": 90_000}, seconds=10, settings=NodesSettings(mode="per-tick"))
    >>> round(found.share["o"], 1)
    0.5
    """
    if not (math.isfinite(seconds) and seconds > 0):
        raise StartError(f"seconds is {seconds}: give how long to simulate, above 0.")
    run, troubled = settings or NodesSettings(), trouble or Trouble()
    made = structure(graph, profile)
    for node in troubled.gone:
        if node not in made.nodes:
            raise StartError(f"gone: {node!r} is no node; nodes: {', '.join(made.nodes)}.")
    post = Post(troubled, seed)
    coordination = _coordination(made.usable(run.headroom, run.trigger_ms), run, post, troubled)
    nodes = _nodes(made, rates, seconds, run, troubled, seed)
    judge = Judge(made, run.deadline_s)
    batches, unshed = _run(made, nodes, coordination, judge, run, troubled, 1000 * seconds)
    for each in nodes.values():
        _miss_what_waits(each, judge, seconds)
    arrived = {name: node.running.machine.arrivals for node in nodes.values() for name in node.part.graph.by_name}
    judged = judge.result({source.name: arrived[source.name] for source in graph.sources}, seconds)
    waiting = sum(link.rows() for node in nodes.values() for link in node.links.values())
    return NodesResult(
        graph.name, run.mode, seconds, seed, tuple(batches), *judged, post.sent, post.lost, waiting, unshed
    )


def _coordination(made: Structure, run: NodesSettings, post: Post, trouble: Trouble) -> Coordination:
    if run.mode == "local" or not run.shedding:
        return ByThemselves()
    if run.mode == "neighbours":
        return Neighbours(made, post, Grain(run.epsilon))
    if run.mode == "tables":
        weights = np.array([output.qos.priority for output in made.graph.outputs])
        planner = Tables(made, Grain(run.epsilon), weights).plan
    else:
        planner = PerTick(made, Program(made, "utility")).plan
    return Coordinator(made, planner, post, trouble, run.trigger_ms, _PATIENCE_TRIGGERS * run.trigger_ms)


def _nodes(
    made: Structure, rates: Mapping[str, Rate | float], seconds: float, run: NodesSettings, trouble: Trouble, seed: int
) -> dict[str, _Node]:
    names = {source.name for source in made.graph.sources}
    for name in rates:
        if name not in names:
            raise StartError(f"rates: {name!r} is not a source of network {made.graph.name!r}: {', '.join(names)}.")
    for name in names:
        if name not in rates:
            raise StartError(f"rates: source {name!r} has none: give rows per second, such as {{{name!r}: 1000}}.")
        _check_rate(name, rates[name])
    nodes: dict[str, _Node] = {}
    for number, node in enumerate(made.placement.order):
        part = made.graph.fragment(node)
        own = fragment_profile(part, made.profile)
        capacity = part.node.capacity
        scaled = replace(
            own,
            cost_us={name: cost / capacity for name, cost in own.cost_us.items()},
            read_us={name: cost / capacity for name, cost in own.read_us.items()},
        )
        cells, chance = CellGrid(part.graph, scaled), Chance(1000 * seed + number)
        links = {name: LinkQueue(trouble.link_ms, trouble.rows_per_s) for name in part.reads}
        arrivals = NodeArrivals(part, rates, 1000 * seconds, cells, chance, links)
        nodes[node] = _Node(part, scaled, run.of_one_node, arrivals, chance, cells)
    return nodes


def _check_rate(source: str, rate: Rate | float) -> None:
    """Refuse what is no rate, and a source that never brings anything."""
    rows = rate.rows_per_s if isinstance(rate, Constant) else rate
    if isinstance(rows, bool | str) or (isinstance(rows, int | float) and not (math.isfinite(rows) and rows > 0)):
        raise StartError(f"rate of source {source!r} is {rows!r}: give rows per second, finite and above 0.")


def _miss_what_waits(node: _Node, judge: Judge, seconds: float) -> None:
    """Count what came to a node and was not read until the end."""
    for name, link in node.links.items():
        for times_ms, rows in link.waiting():
            judge.miss(node.part, name, times_ms, rows)
    for second in range(int(node.running.read_ms / 1000), math.ceil(seconds)):
        since_ms = max(node.running.read_ms, 1000.0 * second)
        for name, count in node.running.machine.arrivals.rows(since_ms, 1000.0 * (second + 1)).items():
            if name not in node.links:
                judge.miss(node.part, name, np.array([since_ms]), np.array([float(count)]))


def _run(
    made: Structure,
    nodes: Mapping[str, _Node],
    coordination: Coordination,
    judge: Judge,
    run: NodesSettings,
    trouble: Trouble,
    end_ms: float,
) -> tuple[list[NodeBatch], int]:
    """Batches of all nodes in the order in which they begin; of those that begin together, upstream first."""
    batches: list[NodeBatch] = []
    unshed, coming = 0, {name: dict[str, float]() for name in nodes}
    while True:
        name = min(nodes, key=lambda each: nodes[each].running.next_ms)
        node, now_ms = nodes[name], nodes[name].running.next_ms
        if now_ms > end_ms:
            return batches, unshed
        back_ms = trouble.back_ms(name, now_ms)
        if back_ms is not None:
            node.running.sleep_until(back_ms)
            node.restart()
            coordination.restarted(name, back_ms)
            continue
        node.running.controller.agree(coordination.keeps(name, coming[name], now_ms))
        node.account.dropped.clear()
        batch = node.running.try_step()
        if batch is None:
            coming[name] = dict.fromkeys(coming[name], 0.0)
            continue
        coming[name] = {each: 1000 * rows / batch.interval_ms for each, rows in batch.rows_in.items()}
        found = node_batch(name, batch, node.dropped())
        unshed += found.busy > _SLOW and not node.account.dropped and run.shedding
        batches.append(found)
        ended_ms = batch.started_ms + batch.duration_ms
        for arc, rows in node.account.dropped.items():
            judge.miss(node.part, arc, ended_ms - node.account.out[0][1], rows)
        for output, late_ms, trains in node.account.out:
            link = node.part.sends.get(output)
            if link is None:
                judge.take(output, ended_ms - late_ms, late_ms, trains)
            else:
                head = nodes[link.head]
                read = next(read for read, each in head.part.reads.items() if each == link)
                head.links[read].put(ended_ms - late_ms, trains, ended_ms)
        node.account.out.clear()
