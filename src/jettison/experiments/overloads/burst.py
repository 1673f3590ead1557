"""A burst of ten times the capacity for five seconds: no batch may run far past its budget.

Claim: because a batch's size is known before its plan is made, a burst of any height is cut down in its first batch.
"""

from __future__ import annotations

from jettison.experiments.harness import Result, Say
from jettison.experiments.overloads.overload import timed_run
from jettison.experiments.support.capacity import ONE_SECOND_MS, Capacity, measure_capacity
from jettison.experiments.support.timeline import draw, p99_ms, table
from jettison.experiments.support.workload import taxi_network
from jettison.spark.run.session import local_session
from jettison.synthetic.rates import Burst


def run(*, quick: bool, say: Say, capacity: Capacity | None = None) -> Result:
    """Measure; `capacity` may be given to save the time of measuring it."""
    before_s, length_s, after_s = (3.0, 2.0, 3.0) if quick else (12.0, 5.0, 10.0)
    spark = local_session()
    capacity = capacity or measure_capacity(
        spark, taxi_network(), say, batches=6 if quick else 12, most_trigger_ms=ONE_SECOND_MS
    )
    slower = capacity.trigger_ms / 1000
    before_s, length_s, after_s = slower * before_s, slower * length_s, slower * after_s
    rate = Burst(0.5 * capacity.rows_per_s, 10 * capacity.rows_per_s, at_s=before_s, length_s=length_s)
    say(f"half the capacity, then a burst of ten times the capacity for {length_s:.0f} s")
    running = timed_run(spark, capacity, rate, before_s + length_s + after_s)
    budget_ms = running.settings.budget_us / 1000
    samples = [sample for sample, _ in running.history]
    longest = max(sample.duration_ms for sample in samples) / budget_ms
    largest = max(sum(sample.rows_in.values()) for sample in samples) / (slower * capacity.rows_per_s)
    rows = table(running, "burst")
    return Result(
        "burst",
        {
            "longest_over_budget": round(longest, 3),
            "capacity_rows_per_s": round(capacity.rows_per_s),
            "trigger_s": capacity.trigger_ms / 1000,
            "largest_batch_over_capacity": round(largest, 2),
            "p99_triggers": round(p99_ms(samples) / capacity.trigger_ms, 3),
            "worth_in_time_share": round(running.report().worth_in_time, 3),
            "worth_by_rows_share": round(running.report().worth_by_rows, 3),
        },
        {
            "the longest batch is at most 1.3 budgets": longest <= 1.3,
            "a batch of more than five times the capacity was among them": largest > 5,
        },
        rows,
        lambda figure: draw(
            figure,
            {"with shedding": rows},
            f"A burst of 10 x capacity: the longest batch is {longest:.2f} budgets",
            budget_ms,
        ),
    )
