"""The same comparison on a virtual clock, at the costs of a profile: seconds instead of minutes, and no Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jettison.experiments.policies.measured import NO_SHEDDING, Measured, minima_held, priorities_held
from jettison.network.graph import Graph
from jettison.plan.floors import plan_accuracies
from jettison.sim.engine import simulate
from jettison.sim.result import SimResult
from jettison.statistics.profile import Profile
from jettison.statistics.worth import share_of_worth, share_of_worth_by_rows
from jettison.synthetic.rates import Rate


def compare_simulated(
    graph: Graph,
    profile: Profile,
    rates: Mapping[str, Rate | float],
    shedders: Iterable[str],
    *,
    trigger_ms: float,
    headroom: float = 0.9,
    seconds: float = 60.0,
) -> list[Measured]:
    """What every shedder makes of the same arrivals; the first line is the run in which nothing is shed."""
    found = []
    for name in (NO_SHEDDING, *shedders):
        result = simulate(
            graph,
            profile,
            rates,
            trigger_ms=trigger_ms,
            headroom=headroom,
            seconds=seconds,
            shedding=name != NO_SHEDDING,
            shedder="semantic" if name == NO_SHEDDING else name,
        )
        found.append(_measured(graph, name, result))
    return found


def _measured(graph: Graph, name: str, result: SimResult) -> Measured:
    arrived = {source: max(1, count) for source, count in result.arrived.items()}
    waiting = sum(rows for arc, rows in result.queued.items() if arc in arrived)
    read_share = max(0.0, 1.0 - waiting / sum(arrived.values()))
    accuracy = _accuracies(graph, result)
    shares = {output: read_share * each.in_time_share for output, each in result.outputs.items()}
    offered = {output: (each.rows + each.lost_rows) / max(read_share, 1e-9) for output, each in result.outputs.items()}
    ages = {share: _age_s(result, share) for share in ("p50", "p99")}
    return Measured(
        name,
        share_of_worth(graph, shares),
        share_of_worth_by_rows(graph, shares, offered),
        {output: read_share * share for output, share in accuracy.items()},
        accuracy,
        minima_held(graph, accuracy),
        priorities_held(graph, accuracy),
        ages["p50"],
        ages["p99"],
        sum(share * _read_above(graph, output, result) for output, share in accuracy.items()),
        None,
    )


def _accuracies(graph: Graph, result: SimResult) -> dict[str, float]:
    """The share of source tuples that was processed for each output, by the plans that were obeyed."""
    processed = dict.fromkeys((each.name for each in graph.outputs), 0.0)
    whole = dict.fromkeys(processed, 0.0)
    for batch in result.batches:
        got = plan_accuracies(graph, batch.rows_in, batch.plan)
        for name, share in got.items():
            rows = sum(batch.rows_in.get(source.name, 0) for source in graph.sources_above(name))
            processed[name] += share * rows
            whole[name] += rows
    return {name: processed[name] / whole[name] if whole[name] else 1.0 for name in processed}


def _read_above(graph: Graph, output: str, result: SimResult) -> float:
    above = {source.name for source in graph.sources_above(output)}
    return float(sum(sum(count for name, count in batch.rows_in.items() if name in above) for batch in result.batches))


def _age_s(result: SimResult, share: str) -> float | None:
    """The largest of the outputs' ages."""
    found = [each.latency_ms[share] for each in result.outputs.values() if share in each.latency_ms]
    return max(found) / 1000 if found else None
