"""Every shedder in one overload on Spark: what each delivers, to whom, how fresh, and what deciding takes.

Taxi trips are parsed and scored once for three outputs: `fares` values dear trips, `routes` has a loss graph and a
minimum accuracy, `alerts` has the highest priority. Three times what the machine can process arrives.
"""

from __future__ import annotations

from jettison.experiments.harness import Result, Say
from jettison.experiments.policies.measured import NO_SHEDDING, best, over_best
from jettison.experiments.policies.on_spark import Workload, compare_on_spark
from jettison.experiments.policies.shown import draw
from jettison.experiments.support.capacity import Capacity, measure_capacity
from jettison.experiments.support.workload import taxi_network
from jettison.options.costs import Costs
from jettison.plan.shedders.choice import choose
from jettison.plan.shedders.registry import SHEDDERS, fitting_shedders
from jettison.spark.read.generator import generate
from jettison.spark.run.session import local_session
from jettison.synthetic.fields import TAXI_PAYLOAD
from jettison.synthetic.rates import Constant

OVERLOAD = 3.0
MINIMA = {"routes": 0.1}
_SIZES = (4_000, 60_000)
_SECONDS = 12.0
_LEAST_TRIGGERS = 10


def run(*, quick: bool, say: Say, capacity: Capacity | None = None) -> Result:
    """`capacity` in place of the one that is measured."""
    spark = local_session("jettison-policies")
    network = taxi_network(valued=True, minima=MINIMA)
    known = capacity or measure_capacity(
        spark, network, say, batches=4 if quick else 6, sizes=_SIZES, most_trigger_ms=2000.0
    )
    graph = network.graph
    rate = Constant(OVERLOAD * known.rows_per_s)
    seconds = 3.0 if quick else max(_SECONDS, _LEAST_TRIGGERS * known.trigger_ms / 1000)
    workload = Workload(
        network,
        lambda: {"trips": generate(spark, TAXI_PAYLOAD, rate=rate, limit_rows=rate.rows_until(seconds))},
        known.trigger,
        seconds,
    )
    choice = choose(graph, SHEDDERS)
    shedders = fitting_shedders(graph)
    if quick:
        shedders = tuple(name for name in shedders if name in ("semantic", "qod"))
    found = compare_on_spark(workload, shedders, say, Costs(known.profile, shared=known.shared))
    by_name = {each.shedder: each for each in found}
    first, auto = best(found), by_name[choice.name]
    auto_vs_best, auto_vs_best_by_rows = over_best(auto, found)
    metrics: dict[str, float | str | list[str]] = {
        "best_worth": first.shedder,
        "auto_vs_best": round(auto_vs_best, 4),
        "auto_vs_best_by_rows": round(auto_vs_best_by_rows, 4),
        "shedders": len(shedders),
        "auto": auto.shedder,
        **{f"worth {name}": round(each.worth, 4) for name, each in by_name.items()},
        **{f"worth_by_rows {name}": round(each.worth_by_rows, 4) for name, each in by_name.items()},
        **{f"decide_ms {name}": round(each.decide_ms or 0.0, 2) for name, each in by_name.items()},
    }
    say(f"best by worth: {first.shedder}; {choice}")
    return Result(
        "policies",
        metrics,
        {
            "auto delivers at least .95 of the best shedder's worth": auto_vs_best >= 0.95,
            "every shedder delivers more in time than no shedding": all(
                each.worth > by_name[NO_SHEDDING].worth for each in found if each.shedder != NO_SHEDDING
            ),
            "no shedder breaks a minimum accuracy": all(each.minima_held in (None, 1.0) for each in found),
        },
        [{"best": each is first, "auto": each is auto, **each.row()} for each in found],
        lambda figure: draw(figure, found, f"{OVERLOAD:g} times what the machine can process, shedder by shedder"),
    )
