"""Windows that are estimated from a part of their rows, against the truth of all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.network.windows.intervals import avg_interval, context_of, count_interval, sum_interval
from tests.spark.windowing import Hand, Row, S, by_spark, frame_of, source, trips_of

import jettison as jt
from jettison.errors import StartError
from jettison.network.windows.estimate_context import Context, remembered
from jettison.network.windows.estimates import WEIGHT
from jettison.plan.drops.random import Random
from jettison.plan.drops.stratified import Stratified
from jettison.plan.plan import Plan
from jettison.spark.compile.compiler import Compiler
from jettison.spark.compile.drops import group_hash, identity_of, keeps
from jettison.spark.run.checks import check_keys

pytestmark = pytest.mark.spark

AGGREGATES = {
    "n": "count(*)",
    "fares": "count(fare)",
    "dear": "count_if(fare > 25)",
    "total": "sum(fare)",
    "mean": "avg(fare)",
}


ONE = np.ones(1)


def network(on_loss: str = "estimate", by: Sequence[str] = ("zone",), size: str = "10 seconds") -> jt.Network:
    net = jt.Network("taxi")
    windows = source(net).where("fare IS NULL OR fare >= 0", name="paid").window(size, by=by, delay="5 seconds")
    windows.agg(AGGREGATES, name="busy").output("table", qos=jt.QoS(on_loss=on_loss))
    return net


def delivered(hand: Hand) -> dict[tuple[Any, float], dict[str, Any]]:
    """Results by zone and start of their window."""
    names = [name for name in hand.graph.columns["table"] if name != "zone"]
    return {(row[0], row[1]): dict(zip(names, row[1:], strict=True)) for row in hand.rows("table")}


@pytest.fixture
def hand(spark: SparkSession, tmp_path: Path) -> Any:
    made = Hand(spark, tmp_path, network())
    yield made
    made.close()


def test_where_nothing_is_dropped_results_are_exact(hand: Hand) -> None:
    batches = trips_of(4, 150, 10, 5)
    for number, rows in enumerate(batches):
        hand.run(number, rows)
    every = frame_of(hand.spark, [row for rows in batches for row in rows])
    exact = by_spark(every, "10 seconds", None, ["zone"], 20 * S, **AGGREGATES)
    columns = len(AGGREGATES) + 3
    assert [row[:columns] for row in hand.rows("table")] == exact
    for row in delivered(hand).values():
        for name in AGGREGATES:
            assert row[f"{name}_low"] == row[f"{name}_high"] == row[name]


def test_where_nothing_is_dropped_large_numbers_and_decimals_are_exact(spark: SparkSession, tmp_path: Path) -> None:
    """Beyond what a double holds, in results that are whole beside one that is estimated."""
    net = jt.Network("taxi")
    cents = source(net).select("trip", "zone", "CAST(trip AS decimal(20, 2)) + 0.01BD AS cents", name="paid")
    aggregates = {"numbers": "sum(trip)", "cents": "sum(cents)", "mean": "avg(cents)", "fares": "count(trip)"}
    cents.window("10 seconds", by="zone").agg(aggregates, name="busy").output("table", qos=jt.QoS(on_loss="estimate"))
    hand = Hand(spark, tmp_path, net)
    rows: list[Row] = [(2**53 + 1, S, 0, "cab", 1.0), (2**54, S, 1, "cab", 1.0), (2, S, 1, "cab", 1.0)]
    hand.run(0, rows)
    thinned = Stratified(("zone",), 0.5, ((_hash_of(spark, 2), 0.5),), 1.0)  # the other zones lose nothing
    hand.run(1, [(n, 2 * S, 2, "cab", 1.0) for n in range(100)], Plan({"trips": thinned}))
    hand.run(2, [(1, 30 * S, 0, "cab", 1.0)])
    hand.run(3, [])
    found = {row.zone: row.asDict() for row in hand.sinks["table"].rows}
    every = frame_of(spark, rows).selectExpr("trip", "zone", "CAST(trip AS decimal(20, 2)) + 0.01BD AS cents")
    exact = every.groupBy("zone").agg(*(F.expr(sql).alias(name) for name, sql in aggregates.items()))
    for row in exact.collect():
        assert {name: found[row.zone][name] for name in row.asDict()} == row.asDict()
        for name in aggregates:
            assert found[row.zone][f"{name}_low"] == found[row.zone][f"{name}_high"] == float(row[name])
    assert found[0]["numbers"] == 2**53 + 1
    assert found[2]["numbers_low"] < 4950 < found[2]["numbers_high"]
    assert {name: type(found[2][name]) for name in aggregates} == {name: type(found[0][name]) for name in aggregates}
    hand.close()


def test_ends_are_null_where_too_few_rows_tell_them(spark: SparkSession, tmp_path: Path) -> None:
    """Zones have 0, 1, 2, ... kept rows that tell of fares; each row stands for two."""
    hand = Hand(spark, tmp_path, network())
    zones, each = range(24), 30
    rows: list[Row] = [
        (n, 1000 + n, n // each, "cab", float(n) if n % each < n // each / 2 else None) for n in range(24 * each)
    ]
    judged = frame_of(spark, rows).selectExpr("*", identity_of(["trip"])).where(keeps("trips", Random(0.5))).collect()
    hand.run(0, rows, Plan({"trips": Random(0.5)}))
    hand.run(1, [(9999, 30 * S, 0, "cab", 1.0)])
    hand.run(2, [])
    found = delivered(hand)
    hand.close()
    told = {zone: [row.fare for row in judged if row.zone == zone and row.fare is not None] for zone in zones}
    assert {len(fares) for fares in told.values()} >= {0, 1, 2, 3, 4}
    known = _known([[(np.full(len(fares), 2.0), np.array(fares)) for fares in told.values()], [(ONE, ONE)]])
    for zone, fares in told.items():
        row = found[zone, 0.0]
        assert row["n_low"] < row["n"] < row["n_high"]
        ends = [row[f"{name}_{end}"] for name in ("total", "mean") for end in ("low", "high")]
        if len(fares) < 2:
            assert ends == [None] * 4
        else:
            assert None not in ends
            assert row["mean_low"] < row["mean"] < row["mean_high"]
            expected = sum_interval(np.full(len(fares), 2.0), np.array(fares), known)
            assert (row["total_low"], row["total_high"]) == pytest.approx(expected, rel=0.01)
        if not fares:
            assert (row["fares"], row["fares_low"]) == (0, 0.0)
            high = 1.5 * 1.96**2
            assert row["fares_high"] == pytest.approx(high, rel=0.001), "none of many, each of which stands for two"


def test_trust_4_results_that_are_missing_are_counted(spark: SparkSession, tmp_path: Path) -> None:
    """Groups of 1 to 40 rows in each of three windows, of one batch, and a tenth kept: nothing said that any went."""
    hand = Hand(spark, tmp_path, network())
    sizes = {zone: 1 + zone % 40 for zone in range(200)}
    places = [(zone, window) for zone, size in sizes.items() for window in range(3) for _ in range(size)]
    rows: list[Row] = [(n, 10 * S * window + n, zone, "cab", 1.0) for n, (zone, window) in enumerate(places)]
    first = hand.run(0, rows, Plan({"trips": Random(0.1)}))
    closing = [hand.run(1, [(99_999, 60 * S, 0, "cab", 1.0)]), hand.run(2, [])]
    found = delivered(hand)
    hand.close()
    gone = [size for zone, size in sizes.items() for window in range(3) if (zone, 10.0 * window) not in found]
    assert len(gone) > 50
    assert first.missing == {}, "no window has closed"
    missing = [each.missing["busy"] for each in closing]
    assert sum(each.rows for each in missing) == pytest.approx(sum(gone), rel=0.25)
    assert 0.4 * len(gone) < sum(each.results for each in missing) < 1.25 * len(gone)


@pytest.mark.long
def test_trust_4_a_group_that_lost_all_rows_of_a_batch_is_not_exact(spark: SparkSession, tmp_path: Path) -> None:
    """Batch 0 is whole, batch 1 drops every row that it has of zones 1 and 2, and cannot drop any of zone 0. Before,
    `1 [1, 1]` was said of counts that are 2."""
    zones, shares = range(3), {0: 1.0, 1: 0.02, 2: 0.05}
    drop = Stratified(("zone",), 0.05, tuple((_hash_of(spark, zone), shares[zone]) for zone in (0, 1)), shares[2])
    judged = frame_of(spark, [(n, 2 * S, n % 3, "cab", 7.0) for n in range(9, 60)]).selectExpr(
        "*", identity_of(["trip"])
    )
    dropped = judged.where(f"NOT ({keeps('trips', drop)})").collect()
    gone: list[Row] = [(next(row.trip for row in dropped if row.zone == z), 2 * S, z, "cab", 7.0) for z in (1, 2)]
    batches: list[list[Row]] = [
        [(100 * n + z, at, z, "cab", 7.0) for z in zones] for n, at in enumerate((S, 30 * S, 50 * S))
    ]
    hand = Hand(spark, tmp_path, network())
    hand.run(0, batches[0])
    hand.run(1, gone, Plan({"trips": drop}))
    hand.run(2, batches[1])
    hand.run(3, batches[2])
    once = delivered(hand)
    hand = hand.again()
    hand.sinks["table"].batches.pop(3)
    hand.run(3, batches[2])
    assert delivered(hand) == once, "a repeated batch says the same"
    hand.run(4, [(999, 90 * S, 0, "cab", 7.0)])
    hand.run(5, [])
    found = delivered(hand)
    hand.close()
    for zone, share in shares.items():
        row, later = found[zone, 0.0], found[zone, 50.0]
        assert (row["n"], row["total"], row["mean"]) == (1, 7.0, 7.0)
        for exact in (row, later) if share == 1 else (later,):
            assert all(exact[f"{name}_low"] == exact[f"{name}_high"] == exact[name] for name in AGGREGATES)
        if share < 1:
            for name in ("n", "fares", "dear"):
                assert row[f"{name}_low"] == row[name]
                assert row[f"{name}_high"] == pytest.approx(row[name] + 1.96**2 * (1 / share - 0.5), rel=0.001)
            assert [row[f"{name}_{end}"] for name in ("total", "mean") for end in ("low", "high")] == [None] * 4


def _hash_of(spark: SparkSession, zone: int) -> int:
    return int(spark.sql(f"SELECT {group_hash([str(zone)])} AS h").collect()[0].h)


def test_estimates_are_of_the_kept_rows_by_their_weight(hand: Hand) -> None:
    """Two batches of one window with different shares, recomputed row by row in plain Python."""
    draw = np.random.default_rng(5)
    shares = (0.5, 0.25)
    batches: list[list[Row]] = [
        [
            (1000 * batch + n, 1000 + n, n % 2, "cab", None if n % 10 == 0 else float(draw.lognormal(2, 0.6)))
            for n in range(800)
        ]
        for batch in range(2)
    ]
    kept: list[tuple[int, float | None, float]] = []
    for batch, rows in enumerate(batches):
        hand.run(batch, rows, Plan({"trips": Random(shares[batch])}))
        judged = (
            frame_of(hand.spark, rows)
            .selectExpr("*", identity_of(["trip"]))
            .where(keeps("trips", Random(shares[batch])))
        )
        kept += [(row.zone, row.fare, 1 / shares[batch]) for row in judged.collect()]
    hand.run(2, [(9999, 30 * S, 0, "cab", 1.0)])
    hand.run(3, [])
    found = delivered(hand)
    batches_by_zone = [
        [
            (np.full(len(fares), 1 / share), np.array(fares))
            for fares in (
                [fare for each, fare, w in kept if (each, w) == (zone, 1 / share) and fare] for zone in (0, 1)
            )
        ]
        for share in shares
    ]
    known = _known([*batches_by_zone, [(ONE, ONE)]])
    for zone in (0, 1):
        row = found[zone, 0.0]
        weights = np.array([w for each, _, w in kept if each == zone])
        fares = np.array([math.nan if fare is None else fare for each, fare, _ in kept if each == zone])
        assert row["n"] == round(weights.sum())
        assert (row["n_low"], row["n_high"]) == pytest.approx(count_interval(weights, 4.0))
        there = ~np.isnan(fares)
        w, x = weights[there], fares[there]
        assert row["fares"] == round(w.sum())
        assert row["dear"] == round(w[x > 25].sum())
        assert row["total"] == pytest.approx((w * x).sum())
        assert (row["total_low"], row["total_high"]) == pytest.approx(sum_interval(w, x, known), rel=1e-5)
        assert (row["mean_low"], row["mean_high"]) == pytest.approx(avg_interval(w, x, known), rel=1e-5)
        assert row["mean"] == pytest.approx((w * x).sum() / w.sum())
        assert row["mean_low"] < row["mean"] < row["mean_high"]


def _known(batches: list[list[Any]]) -> Context:
    """What is known after these batches, each of which says what came to every group."""
    return remembered({}, [{"fare": context_of(groups)} for groups in batches])["fare"]


def test_a_window_without_thinned_rows_is_exact_beside_one_that_has_some(hand: Hand) -> None:
    hand.run(0, [(n, n * 1000, 0, "cab", 7.0) for n in range(100)])
    hand.run(1, [(500, 15 * S, 1, "cab", 7.0)])  # with it the first window closes: drops cannot touch it any more
    hand.run(2, [(1000 + n, 12 * S + n, 0, "cab", 7.0) for n in range(100)], Plan({"trips": Random(0.5)}))
    hand.run(3, [(9999, 40 * S, 0, "cab", 1.0)])
    hand.run(4, [])
    found = delivered(hand)
    assert found[0, 0.0]["n"] == found[0, 0.0]["n_low"] == found[0, 0.0]["n_high"] == 100
    later = found[0, 10.0]
    assert later["n_low"] < 100 < later["n_high"]
    assert later["mean_low"] < 7.0 < later["mean_high"], "all fares are the same, but not all were seen"


def test_a_repeated_batch_gives_the_same_estimates(hand: Hand) -> None:
    batches = trips_of(4, 200, 10, 5)
    plan = Plan({"trips": Random(0.4)})
    for number, rows in enumerate(batches):
        hand.run(number, rows, plan)
    before = hand.rows("table")
    again = hand.again()
    again.run(3, batches[3], plan)
    assert again.rows("table") == before
    again.close()


def test_drops_on_inner_arcs_multiply(spark: SparkSession, tmp_path: Path) -> None:
    net = jt.Network("taxi")
    paid = source(net).where("fare >= 0", name="paid")
    paid.select("trip", name="narrow").output("ids")
    paid.window("10 seconds").agg(n="count(*)", name="busy").output("table", qos=jt.QoS(on_loss="estimate"))
    hand = Hand(spark, tmp_path, net)
    plan = Plan({"trips": Random(0.5), "paid>busy": Random(0.25)})
    hand.run(0, [(n, 1000 + n, 0, "cab", 1.0) for n in range(4000)], plan)
    hand.run(1, [(9999, 30 * S, 0, "cab", 1.0)])
    hand.run(2, [])
    start, _, n, low, high = hand.rows("table")[0]
    assert start == 0.0
    assert n % 8 == 0
    assert low < 4000 < high
    hand.close()


def test_the_truth_is_in_about_95_of_100_intervals(spark: SparkSession, tmp_path: Path) -> None:
    draw = np.random.default_rng(8)
    groups, per_group = 400, 120
    fares = draw.lognormal(2, 0.5, groups * per_group)
    rows: list[Row] = [(n, 1000 + n, n % groups, "cab", float(fare)) for n, fare in enumerate(fares)]
    hand = Hand(spark, tmp_path, network())
    hand.run(0, rows, Plan({"trips": Random(0.3)}))
    hand.run(1, [(10**6, 30 * S, 0, "cab", 1.0)])
    hand.run(2, [])
    truth = fares.reshape(per_group, groups)
    found = delivered(hand)
    hand.close()
    truths = {"n": np.full(groups, per_group), "total": truth.sum(axis=0), "mean": truth.mean(axis=0)}
    for name, values in truths.items():
        held = [
            found[zone, 0.0][f"{name}_low"] <= values[zone] <= found[zone, 0.0][f"{name}_high"]
            for zone in range(groups)
        ]
        # of 400 fair ones with 95 % less than 91 % hold once in a thousand times
        assert np.mean(held) >= 0.91, name


# --- shares by group --------------------------------------------------------------------------------------------------


def hash_of(spark: SparkSession, zone: int) -> int:
    """A group's hash, as drops and slices have it."""
    return int(spark.sql(f"SELECT {group_hash([f'int({zone})'])} AS h").collect()[0].h)


def test_large_groups_are_thinned_out_and_all_others_are_whole(spark: SparkSession, tmp_path: Path) -> None:
    hand = Hand(spark, tmp_path, network())
    rows: list[Row] = [(n, 1000 + n, 0 if n < 3000 else 1 if n < 5000 else n, "cab", 2.0) for n in range(5050)]
    drop = Stratified(("zone",), 0.2, ((hash_of(spark, 0), 0.1), (hash_of(spark, 1), 0.2)), 1.0)
    measured = hand.run(0, rows, Plan({"trips": drop}))
    hand.run(1, [(10**6, 30 * S, 0, "cab", 1.0)])
    hand.run(2, [])
    found = delivered(hand)
    hand.close()
    assert {zone for zone, start in found if start == 0.0} == {0, 1, *range(5000, 5050)}
    for zone in range(5000, 5050):
        assert found[zone, 0.0]["n"] == found[zone, 0.0]["n_low"] == found[zone, 0.0]["n_high"] == 1
    for zone, true in ((0, 3000), (1, 2000)):
        assert found[zone, 0.0]["n_low"] < true < found[zone, 0.0]["n_high"]
        assert found[zone, 0.0]["mean_low"] < 2 < found[zone, 0.0]["mean_high"]
    arrived, kept = measured.arcs["trips"]
    assert arrived == 5050
    assert kept == pytest.approx(300 + 400 + 50, rel=0.15)
    sample = measured.groups["busy"]
    assert sample.rows == pytest.approx(5050, rel=0.15), "what was dropped counts as well"
    assert sample.sizes[hash_of(spark, 0)] == pytest.approx(found[0, 0.0]["n"], abs=1)


def test_inside_of_a_payload_the_group_is_looked_at_before_the_rest_is_parsed(spark: SparkSession) -> None:
    net = jt.Network("taxi")
    trips = net.source("trips", "trip long, at timestamp, zone int", event_time="at", id=["trip"], payload="json")
    windows = trips.where("trip >= 0", name="real").window("10 seconds", by="zone")
    windows.agg(n="count(*)", name="busy").output("table", qos=jt.QoS(on_loss="estimate"))
    text = "to_json(struct(id AS trip, timestamp_seconds(5) AS at, int(IF(id < 900, 0, id)) AS zone)) AS value"
    raw = spark.range(1000).selectExpr(text)
    drop = Stratified(("zone",), 0.3, ((hash_of(spark, 0), 0.25),), 1.0)
    found = Compiler(net.graph, {"trips": raw}, Plan({"trips": drop}), {}).operator("trips").collect()
    large = [row for row in found if row.zone == 0]
    assert {row.zone for row in found} == {0, *range(900, 1000)}
    assert {row[WEIGHT] for row in large} == {4.0}
    assert {row[WEIGHT] for row in found if row.zone != 0} == {1.0}
    assert 4 * len(large) == pytest.approx(900, rel=0.2)


def test_a_function_that_loses_the_weight_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    net = jt.Network("taxi")
    lost = source(net).apply(without_weight, columns=["zone"], name="lost")
    lost.window("10 seconds", by="zone").agg(n="count(*)", name="busy").output("table", qos=jt.QoS(on_loss="estimate"))
    with pytest.raises(StartError, match=r"aggregate 'busy': the rows of 'lost' have lost their weight"):
        Hand(spark, tmp_path, net)


def test_a_function_that_loses_the_identity_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    net = jt.Network("taxi")
    lost = source(net).apply(without_identity, columns=["zone"], name="lost")
    lost.window("10 seconds", by="zone").agg(n="count(*)", name="busy").output("table", qos=jt.QoS(on_loss="estimate"))
    with pytest.raises(StartError, match=r"apply 'lost': its rows have lost.*keep column '_jt_id'"):
        Hand(spark, tmp_path, net)


def without_identity(rows: Any) -> Any:
    return rows.select("zone", "_jt_time", WEIGHT)


def test_a_table_with_several_rows_for_a_key_is_refused(spark: SparkSession) -> None:
    names = spark.createDataFrame(
        [(1, 1, "a"), (2, 1, "b"), (2, 1, "c"), (None, 1, "d"), (None, 1, "e")], "zone int, count int, y string"
    )

    def graph(how: str, on_loss: str = "estimate") -> Any:
        net = jt.Network("taxi")
        named = source(net).with_columns({"count": "1"}).join("names", on=["zone", "count"], how=how, name="named")
        busy = named.window("10 seconds", by="zone").agg(n="count(*)", name="busy")
        busy.output("table", qos=jt.QoS(on_loss=on_loss))
        return net.graph

    with pytest.raises(
        StartError, match=r"join 'named': table 'names' has several rows with zone = 2, count = 1.*behind the aggregate"
    ):
        check_keys(graph("left"), {"named": names})
    check_keys(graph("left"), {"named": names.where("y != 'c'")})
    check_keys(graph("left_semi"), {"named": names})
    check_keys(graph("inner", "ignore"), {"named": names})


def test_rows_of_two_sources_that_count_alike_go_one_by_one(spark: SparkSession) -> None:
    net = jt.Network("taxi")
    schema = "trip long, at timestamp"
    first, second = (net.source(name, schema, event_time="at", id=["trip"]) for name in ("first", "second"))
    both = first.union(second, name="both").where("trip >= 0", name="real")
    both.window("10 seconds").agg(n="count(*)", name="busy").output("table", qos=jt.QoS(on_loss="estimate"))
    rows = spark.range(1000).selectExpr("id AS trip", "timestamp_seconds(5) AS at")
    plan = Plan({"both>real": Random(0.5)})
    kept = Compiler(net.graph, {"first": rows, "second": rows}, plan, {}).operator("real")
    twice = kept.groupBy("trip").count().where("count = 2").count()
    assert twice == pytest.approx(250, abs=60), "half of a half, not half"


def without_weight(rows: Any) -> Any:
    return rows.select("zone", "_jt_time", "_jt_id")


# --- values that samples do not show ----------------------------------------------------------------------------------

_VALUES = {
    "rare": "IF(pmod(trip, 250) = 7, 1000, 0)",
    "flag": "IF(pmod(trip, 250) = 7, 0, 1)",
    "tail": "exp(4 * pmod(xxhash64(trip), 1009) / 1009)",
    "turn": "double(pmod(trip, 7) - 3)",
    "seven": "CAST(7.1 AS double)",
    "zero": "0",
}


@pytest.mark.long
def test_trust_4_equal_ends_mean_exact(spark: SparkSession, tmp_path: Path) -> None:
    """Every end of every interval, as NumPy has it from the kept rows; two batches of different shares, then a third
    that closes the window: before, `0 [0, 0]` was said of sums that are 8,000."""
    net = jt.Network("taxi")
    valued = source(net).select("trip", "zone", *(f"{sql} AS {name}" for name, sql in _VALUES.items()), name="valued")
    calls = {f"{call}_{name}": f"{call}({name})" for name in _VALUES for call in ("sum", "avg")}
    calls |= {"n": "count(*)", "hits": "count_if(rare > 0)"}
    valued.window("10 seconds", by="zone").agg(calls, name="busy").output("table", qos=jt.QoS(on_loss="estimate"))
    hand = Hand(spark, tmp_path, net)
    draw = np.random.default_rng(3)
    shares, kept = (0.5, 0.2), list[list[Any]]()
    for batch, share in enumerate(shares):
        zones = draw.integers(0, 12, 3000)
        rows: list[Row] = [(3000 * batch + n, 1000 + n, int(zone), "cab", 1.0) for n, zone in enumerate(zones)]
        hand.run(batch, rows, Plan({"trips": Random(share)}))
        judged = frame_of(spark, rows).selectExpr("*", identity_of(["trip"])).where(keeps("trips", Random(share)))
        kept.append(judged.selectExpr("zone", *(f"double({sql}) AS {name}" for name, sql in _VALUES.items())).collect())
    hand.run(2, [(10**6, 30 * S, 0, "cab", 1.0)])
    hand.run(3, [])
    found = {row.zone: row.asDict() for row in hand.sinks["table"].rows if row.window_start.second == 0}
    hand.close()
    assert len(found) == 12
    weight = np.concatenate([np.full(len(rows), 1 / share) for rows, share in zip(kept, shares, strict=True)])
    zone_of = np.array([row.zone for rows in kept for row in rows])
    for name in _VALUES:
        value = np.array([row[name] for rows in kept for row in rows])
        later = [(np.ones(1), np.array([_value_of(spark, name, 10**6)]))]
        seen = [
            context_of([(np.full((ours == zone).sum(), 1 / share), mine[ours == zone]) for zone in range(12)])
            for share, ours, mine in _by_batch(shares, kept, name)
        ]
        known = remembered({}, [{name: each} for each in [*seen, context_of(later)]])[name]
        for zone, row in found.items():
            w, x = weight[zone_of == zone], value[zone_of == zone]
            for call, expected in (("sum", sum_interval(w, x, known)), ("avg", avg_interval(w, x, known))):
                ends = row[f"{call}_{name}_low"], row[f"{call}_{name}_high"]
                if name == "zero":
                    assert ends == (None, None) == (expected or (None, None)), "no other value was ever seen"
                else:
                    assert ends == pytest.approx(expected, rel=0.01), (call, name)
                    assert ends[0] < ends[1]
            if name == "rare":
                hits = count_interval(w[x > 0], 5.0)
                assert (row["hits_low"], row["hits_high"]) == pytest.approx(hits, rel=1e-5)
    assert any(row["sum_rare"] == 0 < row["sum_rare_high"] for row in found.values()), "one that has seen zeros alone"


def _by_batch(shares: Sequence[float], kept: list[list[Any]], name: str) -> list[tuple[float, Any, Any]]:
    return [
        (share, np.array([row.zone for row in rows]), np.array([row[name] for row in rows]))
        for share, rows in zip(shares, kept, strict=True)
    ]


def _value_of(spark: SparkSession, name: str, trip: int) -> float:
    return float(spark.sql(f"SELECT double({_VALUES[name]}) AS x FROM (SELECT {trip}L AS trip)").collect()[0].x)
