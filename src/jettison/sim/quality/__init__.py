"""Several machines under the controller of quality of data, on a virtual clock: shed, move, warm up (chapter 5).

Comes in: applications (tasks with costs and rates), machines that come and go, and what others do there.
Goes out: a `QualityResult`: load, accuracies, throughput and moves, cycle by cycle.
"""

from jettison.sim.quality.applications import Application, Cost, nearest_neighbours, taxi_drives
from jettison.sim.quality.engine import simulate_quality
from jettison.sim.quality.result import Cycle, QualityResult
from jettison.sim.quality.scenario import Curve, Host, Scenario

__all__ = [
    "Application",
    "Cost",
    "Curve",
    "Cycle",
    "Host",
    "QualityResult",
    "Scenario",
    "nearest_neighbours",
    "simulate_quality",
    "taxi_drives",
]
