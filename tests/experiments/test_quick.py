"""Every experiment in its quick form: it runs, gives the promised keys and draws. Times are not judged here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure
from pyspark.sql import SparkSession

from jettison.experiments.fair import fairness, sic_overhead, sic_truth
from jettison.experiments.harness import EXPERIMENTS, Result, save
from jettison.experiments.kafka import faults as kafka_faults
from jettison.experiments.kafka import lag as kafka_lag
from jettison.experiments.kafka import late_parse as kafka_late_parse
from jettison.experiments.kafka import rate as kafka_rate
from jettison.experiments.kafka.broker import Broker
from jettison.experiments.las import fig_3 as las_fig_3
from jettison.experiments.las import on_spark as las
from jettison.experiments.las import shift as las_shift
from jettison.experiments.las import sketch
from jettison.experiments.lasting import recovery, soak
from jettison.experiments.overloads import burst, drift, overload, parity, stale
from jettison.experiments.peers import comparison as peers
from jettison.experiments.road_map import exact_gap, fig_3_11, fig_3_12, fig_3_13, fig_3_14, fig_3_18
from jettison.experiments.speed import calibration, fixed_cost, keys, many_outputs, native, overhead, planning
from jettison.experiments.support.capacity import Capacity
from jettison.experiments.support.workload import taxi_network
from jettison.experiments.windows import estimate, fig_4_8, fig_4_10, fig_4_11, fig_4_12, table_4_4
from jettison.spark.batch.calibration import assumed_profile

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def given_capacity(trigger_ms: float = 500.0) -> Capacity:
    """A small load that any machine can take; measuring the real capacity takes a minute."""
    profile = assumed_profile(taxi_network().graph)
    return Capacity(2000.0, trigger_ms, 0.2 * trigger_ms, 350.0, profile, frozenset({"scored"}))


def drawn(result: Result, folder: Path) -> None:
    written = save(result, folder)
    assert [path.suffix for path in written] == [".csv", ".png"]
    assert all(path.stat().st_size > 20 for path in written)


def title_of(result: Result) -> str:
    """What the picture claims."""
    figure = Figure()
    assert result.draw is not None
    result.draw(figure)
    return str(figure.axes[0].get_title())


def quiet(_: str) -> None: ...


def test_overload(spark: SparkSession, tmp_path: Path) -> None:
    result = overload.run(quick=True, say=quiet, capacity=given_capacity())
    assert {"p99_triggers", "goodput_share", "goodput_share_by_rows", "unshed_growth"} <= set(result.metrics)
    assert {"unshed_goodput_share", "unshed_goodput_share_by_rows"} <= set(result.metrics)
    assert len(result.checks) == 3
    drawn(result, tmp_path)


def test_burst(spark: SparkSession, tmp_path: Path) -> None:
    result = burst.run(quick=True, say=quiet, capacity=given_capacity())
    assert "longest_over_budget" in result.metrics
    assert result.metrics["largest_batch_over_capacity"] > 2, "the burst must have arrived"
    drawn(result, tmp_path)


def test_overhead(spark: SparkSession, tmp_path: Path) -> None:
    result = overhead.run(quick=True, say=quiet)
    assert {"vs_plain", "vs_native"} <= set(result.metrics)
    assert {row["variant"] for row in result.rows} == {"jettison", "plain", "side_by_side", "native"}
    drawn(result, tmp_path)


@pytest.mark.long
@pytest.mark.long
def test_fixed_cost(spark: SparkSession, tmp_path: Path) -> None:
    result = fixed_cost.run(quick=True, say=quiet)
    assert {"one_output_ms", "with_window_ms", "complex_ms", "share_of_plain"} <= set(result.metrics)
    assert len(result.checks) == 4
    ours, plain = result.metrics["one_output_trigger_ms"], result.metrics["plain_one_output_trigger_ms"]
    assert result.metrics["one_output_ms"] == pytest.approx(ours - plain, abs=0.2), "ours less plain"
    assert {row["variant"] for row in result.rows} >= {"plain one output", "one output", "seven queries"}
    drawn(result, tmp_path)


@pytest.mark.long
def test_many_outputs(spark: SparkSession, tmp_path: Path) -> None:
    result = many_outputs.run(quick=True, say=quiet)
    assert {"thirty_vs_one", "thirty_s"} <= set(result.metrics)
    assert 0 < result.metrics["thirty_vs_one"] < 30, "thirty outputs cost less than thirty runs of one"
    drawn(result, tmp_path)


@pytest.mark.long
def test_calibration(spark: SparkSession, tmp_path: Path) -> None:
    result = calibration.run(quick=True, say=quiet)
    assert {"held_ms", "beside_ms", "work_s", "spread"} <= set(result.metrics)
    assert len(result.checks) == 5
    assert result.metrics["beside_batches"] >= 1
    graph = calibration.network().graph
    assert (len(graph.operators) - len(graph.outputs), len(graph.outputs)) == (12, 5)
    assert {row["operator"] for row in result.rows} == set(graph.by_name) - {each.name for each in graph.outputs}
    assert {row["calibration"] for row in result.rows} == {0, 1, 2}
    assert all(row["cost_us"] > 0 for row in result.rows)
    assert result.metrics["processor_s"] > 0
    drawn(result, tmp_path)


def test_native(spark: SparkSession, tmp_path: Path) -> None:
    result = native.run(quick=True, say=quiet)
    assert {"tumbling", "sliding_60_5", "sliding_60_1", "three_outputs"} <= set(result.metrics)
    assert all(equal for name, equal in result.checks.items() if name.endswith("the same results"))
    assert {row["variant"] for row in result.rows} == {"jettison", "native"}
    compared = {name: result.metrics[f"{name}_results_compared"] for name in native.SCENARIOS}
    # every slide is a window of some 200 zones, and the last output of three is of rows, not of windows
    assert 1000 < compared["tumbling"] < compared["sliding_60_5"] < compared["sliding_60_1"]
    assert compared["three_outputs"] > compared["tumbling"] + compared["sliding_60_5"]
    drawn(result, tmp_path)


def test_peers(spark: SparkSession, tmp_path: Path) -> None:
    result = peers.run(quick=True, say=quiet)
    assert {"vs_spark", "worth_vs_spark", "worth_vs_spark_by_rows"} <= set(result.metrics)
    assert not {"vs_flink", "worth_vs_flink"} & set(result.metrics), "the quick form has no Flink"
    assert result.checks["parquet: all engines have the same results"]
    assert result.metrics["parquet_results_compared"] > 5000
    assert result.checks["spark: live windows have all of their trips"]
    assert {row["part"] for row in result.rows} == {"parquet", "overload"}
    assert {row["engine"] for row in result.rows if row["part"] == "overload"} == {"jettison", "spark"}
    drawn(result, tmp_path)


@pytest.mark.long
def test_keys(spark: SparkSession, tmp_path: Path) -> None:
    result = keys.run(quick=True, say=quiet)
    assert {"us_per_row_1e4_over_1e3", "peak_gb_1e4", "windows_ratio", "history_ratio"} <= set(result.metrics)
    assert result.metrics["peak_gb_1e4"] > 0.2, "a JVM is among what is looked at"
    assert all(row["complete"] and row["results"] > 0 for row in result.rows)
    drawn(result, tmp_path)


@pytest.mark.long
def test_estimate(spark: SparkSession, tmp_path: Path) -> None:
    result = estimate.run(quick=True, say=quiet)
    assert result.metrics["groups_lost"] == 0
    assert 0 <= result.metrics["unknown_share"] < 0.1
    assert result.metrics["plain_drop_would_lose"] > 100
    assert result.metrics["coverage_min"] >= 0.87, "of some 100 results, and the lowest of 36 cells"
    assert result.metrics["coverage_pooled_min"] >= 0.93
    assert result.metrics["zero_width_wrong"] == 0
    assert result.metrics["width_vs_normal"] <= 1.5
    assert {row["groups"] for row in result.rows} == {"uniform", "skewed"}
    drawn(result, tmp_path)


def test_what_claims_to_be_exact_and_is_not_counts_as_a_miss() -> None:
    """Three results: one of all rows, one whose thinned rows have all gone, one that tells its count alone."""
    true = dict.fromkeys(estimate._AGGREGATES, 10)

    def ends(low: float | None, high: float | None) -> dict[str, Any]:
        return {f"{name}_{end}": at for name in true for end, at in (("low", low), ("high", high))}

    whole, missing = true | ends(10, 10), dict.fromkeys(true, 9) | ends(9, 9)
    few = true | ends(None, None) | {"n_low": 2.0, "n_high": 30.0}
    given = {("w", 1): whole, ("w", 2): missing, ("w", 3): few}
    row = estimate._compared(dict.fromkeys(given, true), given, 0.5)
    aggregates = len(estimate._AGGREGATES)
    unknown = (aggregates - 1) / (2 * aggregates)
    assert (row["estimated"], row["unknown_share"]) == (2 * aggregates, pytest.approx(unknown, abs=1e-4))
    assert row["coverage"] == pytest.approx(1 / 6, abs=0.001)
    assert row["coverage_n"] == 0.5


def test_planning(tmp_path: Path) -> None:
    result = planning.run(quick=True, say=quiet)
    assert {"roadmap_s", "lookup_ms", "tick_share"} <= set(result.metrics)
    drawn(result, tmp_path)


def test_fig_3_11(tmp_path: Path) -> None:
    result = fig_3_11.run(quick=True, say=quiet)
    assert result.checks["by chance loses no more than admission control at any rate"]
    assert result.metrics["least_gain_by_value_percent"] > -0.5
    drawn(result, tmp_path)


def test_fig_3_12(tmp_path: Path) -> None:
    result = fig_3_12.run(quick=True, say=quiet)
    assert result.passed
    drawn(result, tmp_path)


def test_fig_3_13(tmp_path: Path) -> None:
    result = fig_3_13.run(quick=True, say=quiet)
    assert all(row["ratio"] > 1 for row in result.rows)
    drawn(result, tmp_path)


def test_fig_3_14(tmp_path: Path) -> None:
    result = fig_3_14.run(quick=True, say=quiet)
    assert {row["skew"] for row in result.rows} == {0.0, 0.5, 1.0}
    assert result.passed, result.rows
    assert result.metrics["least_ratio"] > 1
    drawn(result, tmp_path)


def test_las_fig_3(tmp_path: Path) -> None:
    result = las_fig_3.run(quick=True, say=quiet)
    assert result.passed, result.metrics
    assert result.metrics["latency_vs_full_to_the_letter"] > result.metrics["latency_vs_full"]
    assert result.metrics["straw_man_synchronised_vs_full"] < result.metrics["straw_man_vs_full"]
    drawn(result, tmp_path)


def test_las_shift(tmp_path: Path) -> None:
    result = las_shift.run(quick=True, say=quiet)
    assert result.passed, result.metrics
    assert result.metrics["drop_gap_after"] < 2
    drawn(result, tmp_path)


@pytest.mark.long
def test_las(spark: SparkSession, tmp_path: Path) -> None:
    result = las.run(quick=True, say=quiet)
    assert {"work_error", "p99_vs_tau", "kept_vs_chance", "timing_overhead"} <= result.metrics.keys()
    assert 0 < result.metrics["cost_vs_chance"] < 0.8, result.metrics  # so the same time is enough for more of them
    drawn(result, tmp_path)


def test_sketch(spark: SparkSession, tmp_path: Path) -> None:
    pytest.importorskip("datasketches")
    result = sketch.run(quick=True, say=quiet)
    assert {"update_vs_peer", "lookup_ns", "sql_lookup_ns"} <= result.metrics.keys()
    assert result.metrics["lookup_ns"] < 2000, "keys are looked up together, not one by one"
    drawn(result, tmp_path)


def test_exact_gap(tmp_path: Path) -> None:
    result = exact_gap.run(quick=True, say=quiet)
    assert result.checks["the road map is never better than the exact plan"]
    assert 0.9 < result.metrics["mean"] <= 1.0 + 1e-5
    drawn(result, tmp_path)


@pytest.mark.long
def test_fig_3_18(spark: SparkSession, tmp_path: Path) -> None:
    result = fig_3_18.run(quick=True, say=quiet)
    assert result.passed, result.rows
    assert 0.0 < result.metrics["semantic_1"] < result.metrics["admission_control_1"]
    drawn(result, tmp_path)


@pytest.mark.long
def test_fig_4_8(spark: SparkSession, tmp_path: Path) -> None:
    result = fig_4_8.run(quick=True, say=quiet)
    assert {"input_at_50", "middle_at_50", "random_at_50", "random_most_excess_percent"} <= set(result.metrics)
    assert result.checks["seen on Spark: what is delivered is what the unshed run delivers"]
    counted = {name: holds for name, holds in result.checks.items() if name.startswith("counted: ")}
    assert len(counted) == 2
    assert all(counted.values()), counted
    drawn(result, tmp_path)


@pytest.mark.long
def test_fig_4_10(spark: SparkSession, tmp_path: Path) -> None:
    result = fig_4_10.run(quick=True, say=quiet)
    assert {"shared_at_50", "split_at_50", "random_at_50", "random_most_excess_percent"} <= set(result.metrics)
    assert result.checks["seen on Spark: what is delivered is what the unshed run delivers"]
    counted = {name: holds for name, holds in result.checks.items() if name.startswith("counted: ")}
    assert len(counted) == 2
    assert all(counted.values()), counted
    drawn(result, tmp_path)


@pytest.mark.long
def test_fig_4_11(spark: SparkSession, tmp_path: Path) -> None:
    result = fig_4_11.run(quick=True, say=quiet)
    assert {"tumbling_drop_rate_10", "slide_drop_rate_10", "furthest_tuples", "furthest_work"} <= set(result.metrics)
    assert result.checks["tuples that go early: within 0.01 of the estimate"], result.rows
    assert result.checks["what is delivered is what the unshed run delivers"]
    drawn(result, tmp_path)


@pytest.mark.long
def test_fig_4_12(spark: SparkSession, tmp_path: Path) -> None:
    result = fig_4_12.run(quick=True, say=quiet)
    assert {"early_share_10", "saved_share_10", "early_share_100"} <= set(result.metrics)
    assert result.checks["tuples that go early: within 0.01 of the estimate"], result.rows
    assert result.checks["what is delivered is what the unshed run delivers"]
    drawn(result, tmp_path)


@pytest.mark.long
def test_table_4_4(spark: SparkSession, tmp_path: Path) -> None:
    result = table_4_4.run(quick=True, say=quiet)
    assert {"min_ratio", "tumbling_ratio", "sliding_ratio", "nested_ratio", "fan_out_ratio"} <= set(result.metrics)
    assert all(equal for name, equal in result.checks.items() if name.endswith("the same results"))
    assert {row["shape"] for row in result.rows} == set(table_4_4.SHAPES)
    assert result.checks["every row that came to a drop passed it"]
    assert all(row["rows"] >= 4 * 2_000 for row in result.rows), "in all four ways"
    drawn(result, tmp_path)
    title = title_of(result)
    assert f"{result.metrics['min_ratio']:.3f} of the throughput or more" in title, title


def test_stale(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    result = stale.run(quick=True, say=quiet, capacity=given_capacity(), broker=broker)
    assert {"recover_s", "recover_s_without"} <= set(result.metrics)
    drawn(result, tmp_path)


def test_parity(spark: SparkSession, tmp_path: Path) -> None:
    result = parity.run(quick=True, say=quiet, capacity=given_capacity())
    assert {"max_share_gap", "plans_agree_share"} <= set(result.metrics)
    drawn(result, tmp_path)


@pytest.mark.long
def test_recovery(spark: SparkSession, tmp_path: Path) -> None:
    result = recovery.run(quick=True, say=quiet)
    assert result.metrics["kills"] == 2
    assert result.metrics["rows_compared"] > 0
    assert [result.metrics[word] for word in ("lost", "doubled", "wrong", "plans_differ")] == [0, 0, 0, 0]
    # of what each output delivered: rows, windows, pairs, windows of pairs, estimates
    compared = {name: result.metrics[f"{name}_compared"] for name in recovery._OUTPUTS}
    assert all(count > 0 for count in compared.values()), compared
    assert result.passed, result.checks
    drawn(result, tmp_path)


def test_drift(spark: SparkSession, tmp_path: Path) -> None:
    """Trust 3: shares are counted, not timed, so that they are judged here too."""
    result = drift.run(quick=True, say=quiet)
    assert result.passed, result.metrics
    assert result.metrics["worst_gap"] <= 0.1
    assert result.metrics["empty_runs"] == 0
    assert result.metrics["by_value_share"] > 0.5
    drawn(result, tmp_path)


@pytest.mark.long
def test_soak(spark: SparkSession, tmp_path: Path) -> None:
    result = soak.run(quick=True, say=quiet, batches=12)
    keys = {"files_growth", "rss_growth", "jvm_growth", "batch_growth", "restart_first_s", "restart_last_s"}
    assert keys <= set(result.metrics)
    assert result.metrics["shedding_share"] > 0
    assert {"files", "rss_mb", "jvm_mb", "batch_ms"} <= set(result.rows[0])
    drawn(result, tmp_path)


def test_kafka_lag(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    result = kafka_lag.run(quick=True, say=quiet, capacity=given_capacity(1000.0), broker=broker)
    assert {"max_lag_triggers", "native_max_lag_triggers"} <= set(result.metrics)
    assert {row["run"] for row in result.rows} == {"jettison", "native"}
    assert result.metrics["read_rows_per_s"] > 0
    drawn(result, tmp_path)


def test_kafka_rate(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    result = kafka_rate.run(quick=True, say=quiet, capacity=given_capacity(1000.0), broker=broker)
    assert {"mean_error", "p90_error", "correlation"} <= set(result.metrics)
    assert result.metrics["batches"] > 0
    assert abs(result.metrics["mean_error"]) < 0.3
    drawn(result, tmp_path)


def test_kafka_late_parse(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    result = kafka_late_parse.run(quick=True, say=quiet, broker=broker)
    assert result.metrics["gain"] > 0
    assert sorted(row["place"] for row in result.rows) == ["after parsing"] * 3 + ["before parsing"] * 3
    drawn(result, tmp_path)


@pytest.mark.long
def test_kafka_faults(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    result = kafka_faults.run(quick=True, say=quiet, broker=broker)
    assert (result.metrics["lost"], result.metrics["doubled"]) == (0, 0)
    assert result.metrics["gone_counted"] == result.metrics["gone_really"] > 0
    drawn(result, tmp_path)


@pytest.mark.long
def test_sic_truth(spark: SparkSession, tmp_path: Path) -> None:
    result = sic_truth.run(quick=True, say=quiet)
    assert result.passed, result.metrics
    assert {"count_correlation", "sic_error"} <= set(result.metrics)
    assert {row["query"] for row in result.rows} == {"all", "dear", "nested"}
    assert all(row["sic"] == row["processed_share"] == 1.0 for row in result.rows if row["keep_share"] == 1.0)
    drawn(result, tmp_path)


@pytest.mark.long
def test_sic_overhead(spark: SparkSession, tmp_path: Path) -> None:
    result = sic_overhead.run(quick=True, say=quiet)
    assert {"throughput_share", "sic_ms"} <= set(result.metrics)
    assert {row["sic"] for row in result.rows} == {True, False}
    drawn(result, tmp_path)


@pytest.mark.long
def test_fairness(spark: SparkSession, tmp_path: Path) -> None:
    """Twenty queries; the lowest SIC of a few batches is judged, fairness over a minute is not."""
    result = fairness.run(quick=True, say=quiet)
    assert {"jain", "spread", "lowest_vs_random"} <= set(result.metrics)
    assert len(result.rows) == 20
    assert result.metrics["lowest"] > result.metrics["lowest_road_map"]
    drawn(result, tmp_path)


def test_every_experiment_of_the_list_is_here() -> None:
    tested = {"overload", "burst", "overhead", "planning", "recovery", "native", "keys", "estimate", "drift", "soak"}
    tested |= {"peers"}
    tested |= {"fig-3-11", "fig-3-12", "fig-3-13", "fig-3-14", "fig-3-18", "exact-gap", "stale", "parity"}
    tested |= {"table-4-4", "fig-4-8", "fig-4-10", "fig-4-11", "fig-4-12"}
    tested |= {"fixed-cost", "many-outputs", "calibration", "las-fig-3", "las-shift", "las", "sketch"}
    tested |= {"sic-truth", "sic-overhead", "fairness", "fair-gap", "fair-speed", "fair-global"}
    tested |= {"policies", "qod-spark"}  # in test_quality_on_spark.py
    tested |= {"qod-scenario-1", "qod-scenario-2", "qod-scale"}  # in test_quality_quick.py
    tested |= {"kafka-lag", "kafka-rate", "kafka-late-parse", "kafka-faults"}
    others = [each for each in EXPERIMENTS if not each.module.startswith("nodes.")]  # tested without Spark
    assert {experiment.name for experiment in others} == tested
