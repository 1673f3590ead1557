"""Twenty queries of different users on one platform, at twice its capacity: who gets how much of what was sent.

    python examples/shared_platform.py          # simulates it; needs no Spark
    python examples/shared_platform.py --spark  # runs it for half a minute, then lists all queries

Nobody has drawn a loss graph. The shedder "fair" gives all queries the same SIC, whatever they cost.
"""

import sys

import jettison as jt
from jettison.sim.engine import simulate

USERS = [f"user_{number:02d}" for number in range(1, 21)]
RATES = {"clicks": 10_000, "payments": 1_000, "alarms": 100}  # rows per second


def network() -> jt.Network:
    """Every user reads the clicks, every second one payments as well, every fourth one alarms, too."""
    net = jt.Network("shared")
    sources = {name: net.source(name, "trip long, zone int, fare double", id=["trip"]) for name in RATES}
    for number, user in enumerate(USERS):
        stream = sources["clicks"]
        if number % 2:
            others = [sources["payments"]] + ([sources["alarms"]] if number % 4 == 3 else [])
            stream = stream.union(*others, name=f"{user}_all")
        stream.where(f"zone % 20 = {number}", name=f"{user}_filter").output(user)
    return net


def costs() -> jt.Profile:
    """Microseconds per tuple: from 1 for the first user to 20 for the last."""
    cost_us = {f"{user}_filter": float(number) for number, user in enumerate(USERS, start=1)}
    return jt.Profile({"clicks": 5.0, "payments": 5.0, "alarms": 5.0, **cost_us}, {}, fixed_ms=100.0)


def simulated(shedder: str) -> dict[str, float]:
    """Every user's SIC after a minute at twice the capacity."""
    rates = {name: jt.rates.Constant(rate) for name, rate in RATES.items()}
    result = simulate(network().graph, costs(), rates, trigger_ms=2_800, seconds=60, shedder=shedder)
    return dict(result.sic)


def on_spark(seconds: float = 30.0, folder: str = "out/shared") -> jt.Run:
    """Run it on Spark; the costs are given, so that the platform is overloaded on every machine."""
    spark = jt.local_session()
    fields = {name: jt.presets.TAXI[name] for name in ("trip", "zone", "fare")}
    run = jt.start(
        network(),
        {name: jt.generate(spark, fields, rate=jt.rates.Constant(rate)) for name, rate in RATES.items()},
        {user: jt.parquet(f"{folder}/{user}") for user in USERS},
        trigger="3 seconds",
        shedding=jt.Shedding(shedder="fair"),
        costs=jt.Costs(costs(), learn=False),
        checkpoint=f"{folder}/checkpoint",
    )
    run.await_termination(timeout=seconds)
    run.stop()
    return run


def main() -> None:
    if "--spark" in sys.argv:
        for user, output in sorted(on_spark().report().outputs.items(), key=lambda each: each[1].sic):
            print(f"{user}: SIC {output.sic:.2f}")
        return
    for shedder in ("fair", "random"):
        sic = simulated(shedder)
        print(f"{shedder}: SIC " + ", ".join(f"{user[-2:]} {sic[user]:.2f}" for user in USERS))


if __name__ == "__main__":
    main()
