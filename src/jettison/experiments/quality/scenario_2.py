"""Simulation: taxi drives and nearest neighbours with different priorities on two machines (5.6)."""

from __future__ import annotations

from jettison.experiments.harness import Result, Say
from jettison.experiments.quality.reading import gains, table
from jettison.sim.quality import Curve, Host, Scenario, nearest_neighbours, simulate_quality, taxi_drives
from jettison.sim.quality.picture import draw

TAXI_RATES = ((0, 3000), (300, 3000), (420, 10_000), (600, 10_000), (660, 4000), (720, 4000))
KNN_RATES = ((0, 800), (120, 800), (180, 1800), (240, 1800), (300, 1000), (720, 1000))
KNN_START_S = 60.0


def scenario(stretch: float = 1.0) -> Scenario:
    """TDSnk2 comes before TDSnk1, and that before KNNSrc1, whose application starts later."""
    taxi, knn = (Curve([(at * stretch, value) for at, value in rates]) for rates in (TAXI_RATES, KNN_RATES))
    return Scenario(
        [
            taxi_drives(taxi, priorities=(2, 3), minima=(0.4, 0.6)),
            nearest_neighbours(knn, priority=1, min_accuracy=0.2, start_s=KNN_START_S * stretch),
        ],
        [Host("TM1"), Host("TM2")],
        duration_s=720 * stretch,
    )


def run(*, quick: bool, say: Say) -> Result:
    stretch = 0.5 if quick else 1.0
    setting = scenario(stretch)
    found = simulate_quality(setting)
    say("the same without the move")
    gained = gains(setting, found)
    moved = [move.instance for _, move in found.moves]
    started = {name: where for cycle in found.cycles[:1] for name, where in cycle.where.items()}
    knn = next(cycle.where["KNNSrc1.1"] for cycle in found.cycles if cycle.where["KNNSrc1.1"] is not None)
    busy = [cycle for cycle in found.steady if 180 * stretch <= cycle.second < 240 * stretch]
    metrics = {
        "priority_inversions": found.inversions(),
        "minima_held": found.minima_held(),
        "processed_held": found.processed_held(),
        "moved": moved,
        "throughput_gain": [round(gain, 4) for gain in gained],
        "knn_placed_on": knn,
    }
    lowest = {name: min(cycle.accuracy[name] for cycle in busy) for name in found.minima}
    checks = {
        "no query has less so that one of lower priority has more than its minimum": found.inversions() == 0,
        "every query has its minimum accuracy in all cycles outside warm-up": found.minima_held() == 1.0,
        "and processes it, within 2 %": found.processed_held() == 1.0,
        "TDSnk1.1 moves, and nothing else": moved == ["TDSnk1.1"],
        "nearest neighbours starts on the machine that does less": started["TDSnk2.1"] == "TM1" and knn == "TM2",
        "as nearest neighbours gets more, only its own accuracy falls": lowest["KNNSrc1"] < 1 - 1e-6
        and min(lowest["TDSnk1"], lowest["TDSnk2"]) > 1 - 1e-6,
    }
    title = "Taxi drives (priorities 2, 3) and nearest neighbours (1) on two machines (simulation)"
    return Result("qod-scenario-2", metrics, checks, table(found), lambda figure: draw(figure, found, title))
