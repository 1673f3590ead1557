"""A shedder of your own, in ten lines: every source keeps the same share of its rows, as large as the budget allows.

    python examples/my_shedder.py          # simulates a burst; needs no Spark

On Spark: `jt.start(network, ..., shedding=jt.Shedding(shedder=SameShare()))`.
"""

import jettison as jt
from jettison.plan.drops.random import Random
from jettison.plan.plan import Plan
from jettison.plan.problem import Problem
from jettison.sim.engine import simulate


class SameShare:
    def plan(self, problem: Problem) -> Plan:
        judging_us = problem.profile.drop_us * sum(problem.rows.values())
        left_us = problem.budget_us - problem.unavoidable_us - judging_us
        keep = max(0.0, left_us / (problem.load_us - problem.unavoidable_us))
        return Plan({source.name: Random(keep) for source in problem.graph.sources}, "same share")


def network() -> jt.Network:
    net = jt.Network("taxi")
    paid = net.source("trips", "trip long, fare double").where("fare > 0", name="paid")
    paid.output("fares")
    paid.where("fare > 200", name="dear").output("alerts", qos=jt.QoS(priority=5))
    return net


def main() -> None:
    costs = jt.Profile({"trips": 1.0, "paid": 1.0, "fares": 3.0, "dear": 1.0}, {"dear": 0.01}, fixed_ms=100.0)
    burst = jt.rates.Step(50_000, 400_000, at_s=5)
    for shedder in (SameShare(), "semantic"):
        result = simulate(network().graph, costs, {"trips": burst}, trigger_ms=1000, seconds=20, shedder=shedder)
        shares = {name: f"{100 * output.delivered_share:.0f} %" for name, output in result.outputs.items()}
        name = shedder if isinstance(shedder, str) else type(shedder).__name__
        print(f"{name}: delivered {shares}, utility {result.utility:.2f}, {result.uncertified} plans not certified")


if __name__ == "__main__":
    main()
