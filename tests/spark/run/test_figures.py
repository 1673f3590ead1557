"""What a run tells adds up (trust 7), and Prometheus, Grafana and alert rules find it (trust 21)."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from pyspark.sql import SparkSession
from tests.spark import running
from tests.spark.running import FREE, TRIGGER, ended, scrape
from tests.spark.windowing import Hand, S

import jettison as jt
from jettison.plan.drops.random import Random
from jettison.plan.drops.window import Fate, Window
from jettison.plan.plan import Plan
from jettison.plan.windows.decisions import decisions_of
from jettison.plan.windows.fates import Schedule, Segment, kept
from jettison.spark.checkpoint.size import size_of
from jettison.statistics.account import Account, accounts_of
from jettison.statistics.samples import BatchSample
from jettison.telemetry.checkpoint_size import SizeWatch
from jettison.telemetry.metrics import Metrics

ROOT = Path(__file__).resolve().parents[3]
TERMS = ("processed", "shed", "rejected", "late", "skipped")


def samples(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def expressions() -> Iterator[str]:
    """Every PromQL expression in deploy/."""
    board = json.loads((ROOT / "deploy/grafana-dashboard.json").read_text(encoding="utf-8"))
    for panel in board["panels"]:
        for target in panel["targets"]:
            shown = ", ".join(re.findall(r"{{(\w+)}}", target["legendFormat"]))
            yield f"{target['expr']} by ({shown})" if shown else target["expr"]
    for group in yaml.safe_load((ROOT / "deploy/prometheus-alerts.yaml").read_text(encoding="utf-8"))["groups"]:
        yield from (rule["expr"] for rule in group["rules"])


def uses(expression: str) -> Iterator[tuple[str, set[str]]]:
    """The metrics of an expression, each with the labels that selectors and `by` name."""
    grouped = {label.strip() for found in re.findall(r"by \(([^)]*)\)", expression) for label in found.split(",")}
    for found in re.finditer(r"(jettison_[a-z_]+)(?:\{([^}]*)\})?", expression):
        selected = {part.split("=")[0].strip(" ~!") for part in (found[2] or "").split(",") if part}
        yield found[1], selected | grouped


def broken(trips: int) -> list[tuple[str]]:
    """Trips as JSON lines: a third without an event time, some that do not parse."""
    lines = []
    for trip in range(trips):
        if trip % 10 == 9:
            lines.append(("{not json",))
        else:
            at = "" if trip % 3 == 0 else f', "at": "2026-01-01T00:00:{trip % 60:02d}Z"'
            lines.append((f'{{"trip": {trip}, "fare": {trip % 7}{at}}}',))
    return lines


def test_trust_7_and_21_tuples_add_up_and_every_series_of_deploy_is_there(spark: SparkSession, tmp_path: Path) -> None:
    """Two branches shed, one filters first, one has windows; rows do not parse or have no time."""
    source = tmp_path / "in"
    spark.createDataFrame(broken(600), "value string").coalesce(1).write.text(str(source))
    net = jt.Network("trips")
    trips = net.source("trips", "trip long, fare long, at timestamp", event_time="at", id=["trip"], payload="json")
    paid = trips.where("fare > 0", name="paid")
    paid.where("fare > 2", name="dear").output("alerts")
    paid.select("trip", "fare", name="narrow").output("fares")
    trips.window("10 seconds").agg(n="count(*)", name="busy").output("table", qos=jt.QoS(on_loss="ignore"))
    drops = {"trips": Random(0.8), "paid>dear": Random(0.5), "paid>narrow": Random(0.4)}
    running.log_plans(tmp_path / "checkpoint", [Plan(drops, "overload", 2.0)], {"trips": 600})
    outs = {name: jt.memory() for name in ("alerts", "fares", "table")}
    aside = jt.memory()
    run = jt.start(
        net,
        {"trips": spark.readStream.text(str(source))},
        outs,
        on_shed=dict.fromkeys(drops, aside),
        trigger=TRIGGER,
        checkpoint=str(tmp_path / "checkpoint"),
        costs=FREE,
        metrics=":0",
    )
    assert run.metrics is not None
    running.until(run, lambda: run.report().rows_in == 600)
    running.until(run, lambda: "jettison_checkpoint_bytes{" in scrape(run.metrics.port))
    text = scrape(run.metrics.port)
    ended(run, 600)

    report = run.report()
    shed = Counter(row["_arc"] for row in aside.rows)
    read = 600 - shed["trips"]
    sample = run.history[0][0]
    parsed = read - sample.rejected["trips"]
    assert sample.rejected["trips"] > 0 < sample.timeless_in["busy"]
    for output, drop in (("alerts", "paid>dear"), ("fares", "paid>narrow")):
        account = report.accounts["trips", output]
        assert account.read == 600 == pytest.approx(sum(getattr(account, term) for term in TERMS))
        assert (account.rejected, account.shed) == (sample.rejected["trips"], shed["trips"] + shed[drop])
        assert account.processed == parsed - shed[drop]
    # tuples that a filter removed were processed too: all others are in the output
    paid_rows = sample.arcs["paid>narrow"][0]
    assert report.accounts["trips", "fares"].processed == len(outs["fares"].rows) + parsed - paid_rows
    windows = report.accounts["trips", "table"]
    assert (windows.shed, windows.late) == (shed["trips"], 0)
    assert windows.rejected == sample.rejected["trips"] + sample.timeless_in["busy"]
    assert windows.processed == parsed - sample.timeless_in["busy"]
    # drops of two branches are not added up: each output tells its own
    shares = [each.account.shed / 600 for each in report.outputs.values()]
    assert min(shares) < report.shed_share < max(shares)
    assert report.outputs["fares"].delivered_share == pytest.approx(
        len(outs["fares"].rows) / paid_rows * read / 600, abs=1e-9
    )

    # --- the endpoint
    found = samples(text)
    for fate in TERMS:
        key = {"network": "trips", "source": "trips", "output": "fares", "fate": fate}
        assert found["jettison_source_rows_total", frozenset(key.items())] == pytest.approx(
            getattr(report.accounts["trips", "fares"], fate)
        )
    for arc in drops:
        key = {"network": "trips", "arc": arc, "reason": "overload"}
        assert found["jettison_shed_rows_total", frozenset(key.items())] == shed[arc]
    assert found["jettison_keep_ratio", frozenset({("network", "trips"), ("arc", "paid>narrow")})] == 0.4
    assert found["jettison_rows_in_total", frozenset({("network", "trips"), ("source", "trips")})] == 600
    delivered_rows = found["jettison_output_rows_total", frozenset({("network", "trips"), ("output", "fares")})]
    assert delivered_rows == len(outs["fares"].rows)
    assert found["jettison_batches_total", frozenset({("network", "trips")})] == 1
    assert found["jettison_plan_row", frozenset({("network", "trips")})] == 2
    assert run.metrics.host == "127.0.0.1"
    assert found["jettison_batch_budget_seconds", frozenset({("network", "trips")})] == pytest.approx(0.18)
    assert found["jettison_calibrating", frozenset({("network", "trips")})] == 0
    assert found["jettison_last_batch_timestamp_seconds", frozenset({("network", "trips")})] > 1e9
    bucket = {("network", "trips"), ("output", "fares"), ("le", "+Inf")}
    assert found["jettison_latency_seconds_bucket", frozenset(bucket)] == len(outs["fares"].rows)
    assert all(("network", "trips") in labels for _, labels in found)
    check_deploy(text, run.metrics)


def check_deploy(text: str, metrics: Metrics) -> None:
    """Every metric that deploy/ names is served, with the labels that it names."""
    families = {family.name: family for family in text_string_to_metric_families(text)}
    served = {sample.name: set(sample.labels) for family in families.values() for sample in family.samples}
    # of topics, of lags and of dropped results there is no series in this run: what is declared must do
    declared = {each._metric._name: {*each._metric._labelnames} for each in metrics._gauge.values()}
    declared |= {f"{each._metric._name}_total": {*each._metric._labelnames} for each in metrics._counter.values()}
    without = ("jettison_topic_", "jettison_source_lag_", "jettison_watermark_", "jettison_dropped_results_")
    named = {(name, frozenset(labels)) for expression in expressions() for name, labels in uses(expression)}
    assert len({name for name, _ in named}) > 25
    for name, labels in named:
        assert name in served or (name in declared and name.startswith(without)), f"{name} is not served"
        there = served.get(name) or declared[name]
        assert labels <= there, (name, labels, there)


def test_trust_21_the_checkpoint_is_looked_at_by_a_thread_of_its_own(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, then once a minute, here and on Hadoop's file systems; a look that fails ends nothing."""
    (tmp_path / "deep").mkdir()
    for name, text in (("a", "12345"), ("deep/b", "123")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert size_of(str(tmp_path), spark) == size_of(f"file://{tmp_path}", spark) == (8, 2)
    monkeypatch.setattr("jettison.telemetry.checkpoint_size.EVERY_S", 0.02)
    looks: list[int] = []
    shown = threading.Event()

    def look() -> tuple[int, int]:
        looks.append(threading.get_ident())
        if len(looks) == 1:
            raise OSError("gone while we looked")
        return 8, 2

    watch = SizeWatch(look, lambda size_bytes, files: shown.set())
    assert shown.wait(10)
    watch.close()
    assert threading.get_ident() not in looks


@pytest.mark.core
@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("0.0.0.0", "metrics is '0.0.0.0': the port must be a number up to 65535"),
        ("here:http", "metrics is 'here:http': the port must be a number"),
        (":70000", "metrics is ':70000': the port must be a number up to 65535"),
        (-1, "metrics is -1: the port must be a number"),
        ("::1:9100", r"write an IPv6 host in brackets, such as '\[::1\]:9100'"),
        (True, "metrics is True: give an address"),
        ("no.such.host.invalid:9100", "metrics no.such.host.invalid:9100: cannot listen there"),
    ],
)
def test_trust_21_addresses_that_cannot_be(given: str | int, says: str) -> None:
    with pytest.raises(jt.StartError, match=says):
        Metrics(running.taxi().graph, 900.0, given)


@pytest.mark.core
def test_trust_21_runs_of_one_process_share_an_address() -> None:
    """The label `network` tells them apart; a second run of the same network is refused, and the last one to go
    gives the port back."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    graphs = [running.taxi(name).graph for name in ("one", "two", "one")]
    first, second = (Metrics(graph, 900.0, f":{port}") for graph in graphs[:2])
    with pytest.raises(jt.StartError, match=rf"metrics 127.0.0.1:{port}: a run of network 'one' .* another port"):
        Metrics(graphs[2], 900.0, port)
    page = samples(scrape(port))
    assert {dict(labels)["network"] for name, labels in page if name == "jettison_batches_total"} == {"one", "two"}
    first.close()
    assert {dict(labels)["network"] for _, labels in samples(scrape(port))} == {"two"}
    second.close()
    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind(("127.0.0.1", port))


@pytest.mark.long
def test_trust_7_tuples_add_up_where_windows_are_dropped(spark: SparkSession, tmp_path: Path) -> None:
    """Of two outputs, every other window of 5 s goes, and three of four of 10 s every 5 s. Drops before the aggregates
    remove what neither needs, of times in sight. Rows without a time and late rows are in no window."""
    net = jt.Network("windows")
    schema = "trip long, at timestamp, zone int, kind string, fare double"
    trips = net.source("trips", schema, event_time="at", id=["trip"])
    trips.window("5 seconds", by="zone").agg(n="count(*)", name="busy").output("table")
    trips.window("10 seconds", slide="5 seconds", by="zone").agg(n="count(*)", name="wide").output("slow")
    hand = Hand(spark, tmp_path, net)
    schedules = {
        "busy": Schedule((Segment(0, drop_share=0.5, gap=1, seed="busy"),)),
        "wide": Schedule((Segment(0, drop_share=0.75, gap=3, seed="wide"),)),
    }
    fates = {name: Fate(5_000_000, each, 0.5) for name, each in schedules.items()}
    drops: Mapping[str, Any] = decisions_of(net.graph).arcs.drops(fates)
    plan = Plan(drops, "overload")
    total: dict[tuple[str, str], Account] = {}
    closed = kept_windows = early = 0.0
    seconds: list[int] = []
    for batch in range(3):
        times = [20 * batch + n % 20 for n in range(100)]
        seconds += times
        rows = [(100 * batch + n, at * S, n % 2, "cab", 1.0) for n, at in enumerate(times)]
        late = [(1000 + n, 2 * S, 0, "cab", 1.0) for n in range(7 if batch == 2 else 0)]
        timeless = [(2000 + n, None, 0, "cab", 1.0) for n in range(4 if batch == 0 else 0)]
        measured = hand.run(batch, [*rows, *late, *timeless], plan)
        given = {name: getattr(measured, name) for name in ("arcs", "late", "timeless_in", "unneeded", "windows")}
        sample = BatchSample(batch, 0.0, 1e3, 9e2, {"trips": len(rows) + len(late) + len(timeless)}, **given)
        for key, account in accounts_of(net.graph, sample).items():
            total[key] = total.get(key, Account()) + account
        ended_here, kept_here = sample.windows.get("busy", (0.0, 0.0))
        closed, kept_windows = closed + ended_here, kept_windows + kept_here
        early += sample.arcs["trips"][0] - sample.arcs["trips"][1]
    hand.close()
    assert early > 0 < sum(measured.unneeded.values())
    for output, aggregate, reach in (("table", "busy", 1), ("slow", "wide", 2)):
        indices = np.array([[at // 5 - back for back in range(reach)] for at in seconds])
        needed = kept(schedules[aggregate], indices.ravel()).reshape(indices.shape).any(axis=1).sum()
        expected = Account(read=311, processed=needed, shed=300 - needed, rejected=4, late=7)
        assert total["trips", output] == expected, output
    # windows are counted as windows: 7 of 5 s have ended, of which 4 are kept, and those are delivered
    assert (closed, kept_windows) == (7, 4) == (7, len({row[1] for row in hand.rows("table")}))
    assert isinstance(drops["trips"], Window)
