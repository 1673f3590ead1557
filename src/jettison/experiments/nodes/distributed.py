"""Coordinated plans against local ones, with lost messages and a coordinator that is gone (simulation)."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from jettison.experiments.harness import Result, Say
from jettison.experiments.nodes.random_trees import random_tree
from jettison.network.declare import Network
from jettison.network.graph import Graph
from jettison.network.nodes.placement import Node
from jettison.network.qos import QoS
from jettison.plan.nodes.structure import structure
from jettison.sim.nodes.engine import NodesSettings, simulate_nodes
from jettison.sim.nodes.result import NodesResult
from jettison.sim.nodes.trouble import Trouble
from jettison.statistics.profile import Profile
from jettison.synthetic.rates import Burst, Rate

_LOSS = ((100.0, 1.0), (0.0, 0.0))


def chain() -> tuple[Graph, Profile]:
    """Three nodes: parse, enrich, score. What is cheap to parse is dear later on, as in figure 5.1."""
    costs = {"A": (10.0, 20.0), "B": (40.0, 10.0), "C": (30.0, 10.0)}
    net = Network("chain-of-three")
    for query in range(2):
        stream = net.source(f"s{query}", "x int")
        for node in costs:
            stream = stream.where("true", name=f"{node.lower()}{query}")
        stream.output(f"o{query}", qos=QoS(_LOSS))
    net.place(*(Node(node, [f"{node.lower()}{query}" for query in range(2)], 1.0) for node in costs))
    return net.graph, Profile({f"{node.lower()}{q}": each[q] for node, each in costs.items() for q in range(2)}, {})


def tree() -> tuple[Graph, Profile]:
    """Seven nodes: a root, two below it, four leaves; a query to each leaf, two of them cheap above and dear below."""
    ways = {0: "RMA", 1: "RMB", 2: "RNC", 3: "RND"}
    costs = {0: (8.0, 40.0, 60.0), 1: (16.0, 10.0, 10.0), 2: (8.0, 40.0, 60.0), 3: (16.0, 10.0, 10.0)}
    net, where, profile = Network("tree-of-seven"), dict[str, list[str]](), dict[str, float]()
    for query, way in ways.items():
        stream = net.source(f"s{query}", "x int")
        for node, cost in zip(way, costs[query], strict=True):
            name = f"{node.lower()}{query}"
            stream = stream.where("true", name=name)
            where.setdefault(node, []).append(name)
            profile[name] = cost
        stream.output(f"o{query}", qos=QoS(_LOSS))
    net.place(*(Node(node, operators, 1.0) for node, operators in where.items()))
    return net.graph, Profile(profile, {})


def bursts(graph: Graph, profile: Profile, seconds: float) -> dict[str, Rate]:
    """Three times what the busiest node can take, and one source after another at half as much again."""
    made = structure(graph, profile)
    names = [source.name for source in graph.sources]
    base = 3 / float((made.load_us.sum(axis=1) / made.capacity_us).max())
    length = seconds / (2 * len(names))
    return {name: Burst(base, 1.5 * base, at_s=2 * at * length, length_s=length) for at, name in enumerate(names)}


_RATIOS = {
    "coordinated_vs_local": ("coordinated", "local"),
    "lossy_vs_coordinated": ("lossy", "coordinated"),
    "gone_vs_coordinated": ("gone", "coordinated"),
    "neighbours_vs_local": ("neighbours", "local"),
}
_OTHERS = (11, 12, 13, 14, 15)
"""Seeds of random trees. How long a node follows an old plan was chosen on the tree of seven; on these nothing was."""


def _cases(seconds: float) -> dict[str, tuple[str, Trouble]]:
    lossy = Trouble(lost_share=0.2, jitter_ms=1500.0)
    return {
        "local": ("local", Trouble()),
        "coordinated": ("per-tick", Trouble()),
        "lossy": ("per-tick", lossy),
        "gone": ("per-tick", Trouble(coordinator_gone=((seconds / 3, 2 * seconds / 3),))),
        "neighbours": ("neighbours", Trouble()),
        "lossy neighbours": ("neighbours", lossy),
    }


def run(*, quick: bool, say: Say) -> Result:
    seconds = 24.0 if quick else 60.0
    networks = {"chain": (chain(), 1), "tree": (tree(), 1)}
    networks |= {f"random {seed}": (random_tree(seed), seed) for seed in _OTHERS[: 1 if quick else None]}
    rows, results, ratios = [], dict[str, NodesResult](), dict[str, dict[str, float]]()
    for shape, ((graph, profile), seed) in networks.items():
        rates = bursts(graph, profile, seconds)
        for name, (mode, trouble) in _cases(seconds).items():
            say(f"{shape}: {name}")
            settings = NodesSettings(mode=mode)
            found = simulate_nodes(
                graph, profile, rates, seconds=seconds, settings=settings, trouble=trouble, seed=seed
            )
            results[f"{shape} {name}"] = found
            rows.append(_row(shape, name, found))
        ratios[shape] = {
            key: results[f"{shape} {over}"].worth / results[f"{shape} {under}"].worth
            for key, (over, under) in _RATIOS.items()
        }
    metrics = _metrics(ratios)
    unshed = sum(found.unshed_batches for found in results.values())
    checks = {
        "coordinated plans deliver 1.3 times the worth of local ones": metrics["coordinated_vs_local"] >= 1.3,
        "with 20 % of messages lost, .95 of that": metrics["lossy_vs_coordinated"] >= 0.95,
        "with the coordinator gone for a third of the time, .9": metrics["gone_vs_coordinated"] >= 0.9,
        "random trees: coordinated plans are never worse than local ones": metrics["worst_coordinated_vs_local"] >= 1,
        "random trees, with messages lost: .95 on the worst": metrics["worst_lossy_vs_coordinated"] >= 0.95,
        "random trees, the coordinator gone: .9 on the worst": metrics["worst_gone_vs_coordinated"] >= 0.9,
        "no node is overloaded without shedding": unshed == 0,
    }
    return Result("distributed", metrics, checks, rows, lambda figure: _draw(figure, rows, results))


def _metrics(ratios: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """By network; the worse of chain and tree; the worst and the median of the random trees."""
    metrics = {f"{shape}_{key}": ratios[shape][key] for shape in ("chain", "tree") for key in _RATIOS}
    others = [each for shape, each in ratios.items() if shape.startswith("random")]
    for key in _RATIOS:
        if key != "neighbours_vs_local":
            metrics[key] = min(ratios["chain"][key], ratios["tree"][key])
        metrics[f"worst_{key}"] = min(each[key] for each in others)
        metrics[f"median_{key}"] = median(each[key] for each in others)
    return {name: round(value, 4) for name, value in metrics.items()}


def _row(shape: str, name: str, found: NodesResult) -> dict[str, Any]:
    return {
        "nodes": shape,
        "case": name,
        "worth": round(found.worth, 4),
        "worth_of_all": round(found.worth_of_all, 4),
        "in_time": round(sum(found.in_time.values()) / len(found.in_time), 4),
        "messages": found.messages,
        "lost": found.lost_messages,
        "busiest": round(max(batch.busy for batch in found.batches), 3),
        "unshed_batches": found.unshed_batches,
    }


def _draw(figure: Any, rows: list[dict[str, Any]], results: Mapping[str, NodesResult]) -> None:
    top, bottom = figure.subplots(2, 1)
    names = list(dict.fromkeys(row["case"] for row in rows))
    for at, shape in enumerate(("chain", "tree")):
        values = [row["worth"] / row["worth_of_all"] for row in rows if row["nodes"] == shape]
        label = "chain of three" if shape == "chain" else "tree of seven"
        top.bar([each + 0.4 * at - 0.2 for each in range(len(names))], values, 0.4, label=label)
    top.set_xticks(range(len(names)), names)
    top.set_ylabel("worth in time, of all")
    top.legend()
    for case, style in (("local", "--"), ("coordinated", "-")):
        batches = [batch for batch in results[f"chain {case}"].batches if batch.node == "C"]
        bottom.plot(
            [batch.started_ms / 1000 for batch in batches], [batch.given for batch in batches], style, label=case
        )
    bottom.set_xlabel("virtual time (s)")
    bottom.set_ylabel("rows/s out of the chain")
    bottom.legend()
    figure.suptitle("Three times the load: nodes by themselves, and coordinated (simulation)")
