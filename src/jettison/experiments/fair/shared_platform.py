"""Twenty queries of different users over seven sources: what the experiment `fairness` runs.

Rates differ by factors of 10 and 100. Some queries read one fast source, most read a fast and a slow one, some three.
Their work per tuple differs by a factor of 30: a hash of texts of different length. There are filters, unions, windows
that are estimated, and windows that must be right.
"""

from __future__ import annotations

from jettison.experiments.speed.fixed_cost import SCHEMA
from jettison.network import Network, QoS, Stream
from jettison.network.graph import Graph
from jettison.statistics.profile import Profile

ROWS = {"fast": 40_000, "quick": 40_000, "steady": 4_000, "even": 4_000, "calm": 2_000, "slow": 800, "rare": 400}
"""Rows per batch, at twice the capacity."""

WORK = {
    "anna": (("fast",), 1),
    "ben": (("fast",), 8),
    "carla": (("quick",), 2),
    "dora": (("quick",), 16),
    "emil": (("fast", "rare"), 4),
    "fritz": (("fast", "slow"), 12),
    "greta": (("quick", "rare"), 30),
    "hugo": (("quick", "slow"), 6),
    "ida": (("fast", "steady"), 20),
    "jan": (("quick", "calm"), 10),
    "karl": (("fast", "calm"), 3),
    "lena": (("quick", "steady"), 14),
    "marie": (("fast", "calm", "rare"), 24),
    "nils": (("quick", "steady", "slow"), 8),
    "olga": (("steady", "rare"), 16),
    "paul": (("calm", "slow"), 30),
    "rosa": (("rare",), 12),
}
"""By query: its sources, and how long the text is that it hashes of every tuple."""


def shared_platform() -> Network:
    """The network: seventeen queries of rows, two of estimated windows, one of windows that must be right."""
    net = Network("shared-platform")
    sources = {name: net.source(name, SCHEMA, event_time="pickup", id=["trip"]) for name in ROWS}
    for query, (names, length) in WORK.items():
        stream = sources[names[0]]
        if len(names) > 1:
            stream = stream.union(*(sources[name] for name in names[1:]), name=f"{query}_all")
        _work(stream, query, length).output(query)
    _windows(sources["quick"].union(sources["calm"], name="sven_all"), "sven", 4, "estimate")
    _windows(sources["steady"], "tina", 4, "estimate")
    _windows(sources["even"], "uwe", 4, "subset")
    return net


def _work(stream: Stream, query: str, length: int) -> Stream:
    hashed = f"sha2(repeat(string(trip), {16 * length}), 512)"
    return stream.where(f"substr({hashed}, 1, 1) = '0'", name=f"{query}_work")


def _windows(stream: Stream, query: str, length: int, on_loss: str) -> None:
    windows = _work(stream, query, length).window("1 second", delay="1 second")
    counted = windows.agg(n="count(*)", fares="sum(fare)", name=f"{query}_windows")
    counted.output(query, qos=QoS(on_loss="subset", gap=30) if on_loss == "subset" else QoS(on_loss="estimate"))


def relative_costs(graph: Graph, unit_us: float, fixed_ms: float) -> Profile:
    """Costs as the queries are made: `unit_us` for a text of length 1 and for reading a tuple from its source."""
    costs = {f"{query}_work": unit_us * (1 + length) for query, (_, length) in WORK.items()}
    costs |= {f"{query}_work": unit_us * 5 for query in ("sven", "tina", "uwe")}
    costs |= {source.name: 2 * unit_us for source in graph.sources}
    passes = {each.name: 1 / 16 for each in graph.operators if each.name.endswith("_work")}
    passes |= {each.name: 0.01 for each in graph.aggregates}
    return Profile(costs, passes, fixed_ms=fixed_ms)
