"""Figures of simulated runs: what moved, what each move brought, how long warm-ups took; and the table of cycles."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from jettison.sim.quality import QualityResult, Scenario, simulate_quality


def gains(scenario: Scenario, found: QualityResult) -> list[float]:
    """What every move brought: tuples that queries process, over a run in which this move and later ones are refused.

    Both runs are compared over the same cycles, from the end of the warm-up to the next move, or to the last cycle in
    which anything is shed.
    """
    moves = found.moves
    result = []
    for number, (second, move) in enumerate(moves):
        without = simulate_quality(replace(scenario, most_moves=number))
        begin = second + found.warm_up_s(move.instance, second)
        shedding = [cycle.second for cycle in without.cycles if min(cycle.accuracy.values()) < 1 - 1e-6]
        end = moves[number + 1][0] if number + 1 < len(moves) else max(shedding, default=begin) + 1
        here, there = (
            sum(sum(cycle.throughput.values()) for cycle in each.cycles if begin <= cycle.second < end)
            for each in (found, without)
        )
        result.append(here / there if there else 0.0)
    return result


def table(found: QualityResult) -> list[dict[str, Any]]:
    """One row per cycle."""
    rows = []
    for cycle in found.cycles:
        row: dict[str, Any] = {"second": cycle.second}
        row |= {f"arriving {name}": round(value, 1) for name, value in cycle.arriving.items()}
        row |= {f"cores {name}": round(value, 4) for name, value in cycle.machine_cpu.items()}
        row |= {f"accuracy {name}": round(value, 4) for name, value in cycle.accuracy.items()}
        row |= {f"processed {name}": round(value, 4) for name, value in cycle.processed.items()}
        row |= {f"tuples/s {name}": round(value, 1) for name, value in cycle.throughput.items()}
        row |= {"lag_s": round(cycle.lag_s, 3), "warming": " ".join(cycle.warming)}
        rows.append(row | {"moves": "; ".join(map(str, cycle.moves))})
    return rows
