"""An independent optimum for small placed networks, by a program that shares nothing with `plan.nodes`.

A case is plain data. Every arc may drop (not only inputs and branches), a variable is the share of an arc's unshed
stream that passes, and operators are walked one by one: no segments, no matrices of `plan.nodes.structure`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.optimize import linprog

import jettison as jt


@dataclass
class Case:
    """Operators in order: name -> (inputs, cost in microseconds, selectivity, node); outputs: name -> (input, QoS)."""

    sources: dict[str, tuple[float, str]] = field(default_factory=dict)  # name -> (rows per second, node)
    operators: dict[str, tuple[tuple[str, ...], float, float, str]] = field(default_factory=dict)
    outputs: dict[str, tuple[str, jt.QoS]] = field(default_factory=dict)
    capacity: dict[str, float] = field(default_factory=dict)  # node -> seconds of work per second

    @property
    def rates(self) -> dict[str, float]:
        return {name: rate for name, (rate, _) in self.sources.items()}

    def network(self) -> tuple[jt.Network, jt.Profile]:
        """The case as a declared, placed network."""
        net, streams = jt.Network("case"), dict[str, jt.Stream]()
        for name in self.sources:
            streams[name] = net.source(name, "x int")
        for name, (inputs, *_) in self.operators.items():
            first, *rest = (streams[each] for each in inputs)
            streams[name] = first.union(*rest, name=name) if rest else first.where("true", name=name)
        for name, (of, qos) in self.outputs.items():
            streams[of].output(name, qos=qos)
        members: dict[str, list[str]] = {node: [] for node in self.capacity}
        for name, (_, node) in self.sources.items():
            members[node].append(name)
        for name, (_, _, _, node) in self.operators.items():
            members[node].append(name)
        net.place(*(jt.Node(node, members[node], self.capacity[node]) for node in self.capacity))
        costs = {name: cost for name, (_, cost, _, _) in self.operators.items()}
        passes = {name: share for name, (inputs, _, share, _) in self.operators.items() if len(inputs) == 1}
        return net, jt.Profile(costs, passes)

    def flows(self) -> dict[str, float]:
        """What comes out of every source and operator, nothing dropped."""
        out = dict(self.rates)
        for name, (inputs, _, share, _) in self.operators.items():
            out[name] = share * sum(out[each] for each in inputs)
        return out


def best(case: Case, objective: str) -> tuple[float, float]:
    """The best score, and the smallest load of the busiest node by which floors hold (1 where capacity is enough)."""
    out = case.flows()
    arcs = [(tail, name) for name, (inputs, *_) in case.operators.items() for tail in inputs]
    arcs += [(of, name) for name, (of, _) in case.outputs.items()]
    number = {arc: at for at, arc in enumerate(arcs)}
    pieces = [
        (name, (hi - lo) / 100, (u_hi - u_lo) / ((hi - lo) / 100) * qos.priority)
        for name, (_, qos) in case.outputs.items()
        for (hi, u_hi), (lo, u_lo) in zip(qos.loss, qos.loss[1:], strict=False)
    ]
    count = len(arcs) + len(pieces) + 1  # the last variable: load of the busiest node, at least 1
    rows: list[np.ndarray] = []
    limits: list[float] = []

    def row(entries: dict[int, float], limit: float) -> None:
        made = np.zeros(count)
        for at, value in entries.items():
            made[at] += value
        rows.append(made)
        limits.append(limit)

    for arc in arcs:  # a share of an arc's stream is at most the share of its operator's input that passed
        tail = arc[0]
        if tail in case.operators and out[tail] > 0:
            inputs, _, share, _ = case.operators[tail]
            passed = {number[each, tail]: -share * out[each] / out[tail] for each in inputs}
            row({number[arc]: 1.0, **passed}, 0.0)
    for node, capacity in case.capacity.items():
        work = {
            number[each, name]: cost * out[each] / (1e6 * capacity)
            for name, (inputs, cost, _, where) in case.operators.items()
            if where == node
            for each in inputs
        }
        row({**work, count - 1: -1.0}, 0.0)
    for name, (of, qos) in case.outputs.items():
        mine = {len(arcs) + at: 1.0 for at, (output, _, _) in enumerate(pieces) if output == name}
        row({**mine, number[of, name]: -1.0}, 0.0)
        if qos.min_accuracy > 0 and out[of] > 0:
            row({number[of, name]: -1.0}, -qos.min_accuracy)
    bounds = [(0.0, 1.0)] * len(arcs) + [(0.0, width) for _, width, _ in pieces]
    overload = np.zeros(count)
    overload[-1] = 1.0
    least = linprog(overload, np.array(rows), limits, bounds=[*bounds, (1.0, None)])
    assert least.x is not None, least.message
    gain = np.zeros(count)
    if objective == "utility":
        gain[len(arcs) : -1] = [slope for _, _, slope in pieces]
        silent = sum(qos.priority for of, qos in case.outputs.values() if out[of] == 0)
        base = sum(qos.priority * qos.loss[-1][1] for of, qos in case.outputs.values() if out[of] > 0)
        for at, (output, _, _) in enumerate(pieces):
            if out[case.outputs[output][0]] == 0:
                gain[len(arcs) + at] = 0.0
    else:
        scale = max(out[of] for of, _ in case.outputs.values()) or 1.0
        for name, (of, _) in case.outputs.items():
            gain[number[of, name]] = out[of] / scale
        silent = base = 0.0
    most = linprog(-gain, np.array(rows), limits, bounds=[*bounds, (1.0, max(1.0, float(least.fun) * (1 + 1e-9)))])
    assert most.x is not None, most.message
    score = -float(most.fun) * (scale if objective == "throughput" else 1.0) + silent + base
    return score, float(least.fun)


def draw_case(seed: int, *, decades: float = 1.0, floors: bool = False) -> Case:
    """One to three sources, one to four nodes, two to nine operators, splits and merges; streams between nodes run from
    lower to higher numbers. Rates and selectivities lie within so many powers of ten."""
    draw, case = np.random.default_rng([seed, 7]), Case()
    nodes = int(draw.integers(1, 5))
    where = {f"s{at}": 0 for at in range(int(draw.integers(1, 4)))}
    for name in where:
        case.sources[name] = (float(1000 * 10 ** draw.uniform(0, decades)), "n0")
    for at in range(int(draw.integers(2, 10))):
        name, known = f"w{at}", list(where)
        read = {each for inputs, *_ in case.operators.values() for each in inputs}
        unread = [each for each in known if each not in read]
        pool = unread if unread and draw.random() < 0.6 else known
        inputs = tuple(dict.fromkeys(str(draw.choice(pool)) for _ in range(1 + (draw.random() < 0.2))))
        node = int(draw.integers(max(where[each] for each in inputs), nodes)) if at else 0
        new = f"n{node}" not in {op[3] for op in case.operators.values()}
        cost = 0.0 if draw.random() < 0.15 and not new else float(draw.uniform(1, 30))
        share = 1.0 if len(inputs) > 1 else float(10 ** draw.uniform(-0.5 * decades, 0))
        case.operators[name] = (inputs, cost, share, f"n{node}")
        where[name] = node
    read = {each for inputs, *_ in case.operators.values() for each in inputs}
    ends = [each for each in where if each not in read or (each in case.operators and draw.random() < 0.25)]
    for at, end in enumerate(ends):
        middle = float(draw.uniform(20, 80))
        loss = ((100.0, 1.0), (middle, float(draw.uniform(middle / 100, 1.0))), (0.0, 0.0))
        floor = float(draw.uniform(0, 0.5)) if floors and draw.random() < 0.5 else 0.0
        case.outputs[f"o{at}"] = (end, jt.QoS(loss, priority=float(draw.uniform(0.5, 4)), min_accuracy=floor))
    out, work = case.flows(), dict[str, float]()
    for inputs, cost, _, on in case.operators.values():
        work[on] = work.get(on, 0.0) + cost * sum(out[each] for each in inputs)
    case.capacity = {on: us / 1e6 / float(draw.uniform(0.5, 5)) for on, us in sorted(work.items())}
    return case
