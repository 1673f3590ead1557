"""Several nodes on one virtual clock: links between them, messages that may be lost, and the control loop in each.

Comes in: a placed network, its costs and rates, and what goes wrong when.
Goes out: a `NodesResult`: load, drops and throughput per node, and what arrives at outputs in time.
"""

from jettison.sim.nodes.engine import MODES, simulate_nodes
from jettison.sim.nodes.result import NodesResult
from jettison.sim.nodes.trouble import Trouble

__all__ = ["MODES", "NodesResult", "Trouble", "simulate_nodes"]
