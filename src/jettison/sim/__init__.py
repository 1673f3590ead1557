"""The same control loop on a virtual clock: `simulate` runs a network for minutes in a fraction of a second.

In come a graph, costs, and rates of arrival. Out goes a `SimResult`: what was delivered, how late, and by which plans.
"""

from jettison.sim.engine import simulate
from jettison.sim.result import OutputResult, SimBatch, SimResult

__all__ = ["OutputResult", "SimBatch", "SimResult", "simulate"]
