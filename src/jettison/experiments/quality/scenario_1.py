"""Simulation: taxi drives with equal priorities, a second machine that is added, load that rises and falls (5.5)."""

from __future__ import annotations

from jettison.experiments.harness import Result, Say
from jettison.experiments.quality.reading import gains, table
from jettison.sim.quality import Curve, Host, Scenario, simulate_quality, taxi_drives
from jettison.sim.quality.picture import draw

RATES = (
    (0, 2500), (60, 2500), (120, 6000), (180, 6000), (240, 2500), (300, 2500), (420, 7700), (540, 7700), (600, 8700),
    (720, 8700), (780, 3000), (840, 3000),
)  # fmt: skip
"""Seconds, tuples per second of both topics: shed (A), whole again (B), past the minima twice (C, D), down again."""


def scenario(stretch: float = 1.0) -> Scenario:
    """One machine, a second one after 120 s; minima 40 % and 60 %. `stretch` makes it shorter or longer."""
    rate = Curve([(second * stretch, value) for second, value in RATES])
    return Scenario(
        [taxi_drives(rate, priorities=(1, 1), minima=(0.4, 0.6))],
        [Host("TM1"), Host("TM2", from_s=120 * stretch)],
        duration_s=840 * stretch,
    )


def run(*, quick: bool, say: Say) -> Result:
    setting = scenario(0.5 if quick else 1.0)
    found = simulate_quality(setting)
    say("the same without the second move, and without any")
    gained = gains(setting, found)
    moved = [move.instance for _, move in found.moves]
    warm_ups = [found.warm_up_s(move.instance, second) for second, move in found.moves]
    metrics = {
        "minima_held": found.minima_held(),
        "processed_held": found.processed_held(),
        "moved": moved,
        "throughput_gain": [round(gain, 4) for gain in gained],
        "warmup_s": max(warm_ups, default=0.0),
        "max_lag_s": max(cycle.lag_s for cycle in found.steady),
    }
    checks = {
        "every query has its minimum accuracy in all cycles outside warm-up": found.minima_held() == 1.0,
        "and processes it, within 2 %": found.processed_held() == 1.0,
        "the two instances of TDSnk1 move, one after the other": moved == ["TDSnk1.1", "TDSnk1.2"],
        "every move raises the throughput": bool(gained) and min(gained) > 1.0,
        "a warm-up takes at most a minute": bool(warm_ups) and max(warm_ups) <= 60,
    }
    title = "Taxi drives, equal priorities, minima 40 % and 60 % (simulation)"
    return Result("qod-scenario-1", metrics, checks, table(found), lambda figure: draw(figure, found, title))
