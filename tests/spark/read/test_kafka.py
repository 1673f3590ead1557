"""Kafka as source, sink and keeper of shed rows, against a real broker."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from pyspark.sql import SparkSession
from tests.spark.running import FREE, ended, ledger, log_plans, until

import jettison as jt
from jettison.experiments.kafka.broker import Broker
from jettison.experiments.kafka.producer import send
from jettison.network.kafka import Kafka
from jettison.plan.drops.random import Random
from jettison.plan.plan import Plan
from jettison.spark.checkpoint.logs import PlanLog
from jettison.spark.checkpoint.small_files import LocalFolder
from jettison.spark.compile.drops import RECORD, identity_of, keeps
from jettison.spark.read import reading
from jettison.spark.read.kafka import read_between
from jettison.spark.read.kafka_admin import Watch
from jettison.statistics.profile import Profile

TRIGGER = "200 milliseconds"
SCHEMA = "trip long, fare double"


@pytest.fixture
def topic(broker: Broker) -> str:
    """A topic of its own, with two partitions."""
    name = f"t-{uuid.uuid4().hex[:8]}"
    broker.create(name)
    return name


def earliest(broker: Broker, topic: str, **others: Any) -> Kafka:
    return jt.kafka(broker.servers, topic, **{"schema": SCHEMA, "starting_offsets": "earliest", **others})


def trip(number: int) -> bytes:
    return b'{"trip": %d, "fare": %d.5}' % (number, number % 100)


def passing(source: Kafka, **others: Any) -> jt.Network:
    """Source trips to output out."""
    net = jt.Network("passing")
    net.source("trips", source, **others).output("out")
    return net


def start(net: jt.Network, checkpoint: Path, sink: Any, **others: Any) -> jt.Run:
    options = {"trigger": TRIGGER, "costs": FREE, **others}
    return jt.start(net, sinks={"out": sink}, checkpoint=str(checkpoint), **options)


def records(broker: Broker, topic: str) -> list[Message]:
    """All that a topic holds."""
    ends = broker.ends(topic)
    consumer = Consumer({"bootstrap.servers": broker.servers, "group.id": "test", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, int(number), 0) for number in ends])
    found: list[Message] = []
    deadline = time.monotonic() + 30
    while len(found) < sum(ends.values()) and time.monotonic() < deadline:
        found += consumer.consume(1000, timeout=0.5)
    consumer.close()
    return found


def headers(message: Message) -> dict[str, str]:
    return {name: value.decode() for name, value in message.headers() or []}


def test_records_come_in_and_go_out(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "count_rows", lambda *_: pytest.fail("the size is in the offsets: nothing is counted"))
    send(broker.servers, topic, [trip(number) for number in range(300)])
    broker.create(f"{topic}-out")
    run = start(passing(earliest(broker, topic)), tmp_path, jt.kafka(broker.servers, f"{topic}-out", key="trip"))
    until(run, lambda: run.report().rows_in == 300)
    send(broker.servers, topic, [trip(number) for number in range(300, 500)])
    ended(run, 500)

    sent = records(broker, f"{topic}-out")
    assert sorted(int(message.key()) for message in sent) == list(range(500))
    assert all(json.loads(m.value()) == {"fare": int(m.key()) % 100 + 0.5} for m in sent)
    assert {headers(message)["batch"] for message in sent} <= {str(sample.batch) for sample, _ in run.history}
    assert sum(sample.rows_in["trips"] for sample, _ in run.history) == 500


def test_records_that_do_not_parse_go_to_a_topic_as_they_were(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    bad = [b"{", b"", b'{"trip": "x"}', b"\xff\xfe", b"[]"]
    send(broker.servers, topic, [trip(1), *bad, trip(2)])
    broker.create(f"{topic}-bad")
    out = jt.memory()
    run = start(passing(earliest(broker, topic)), tmp_path, out, dead_letters=jt.kafka(broker.servers, f"{topic}-bad"))
    ended(run, 7)

    assert sorted(row.trip for row in out.rows) == [1, 2]
    assert run.report().rows_rejected == 5
    kept = records(broker, f"{topic}-bad")
    assert sorted(message.value() or b"" for message in kept) == sorted(bad)
    for message in kept:
        assert {"arc": "trips", "reason": "does not parse", "topic": topic}.items() <= headers(message).items()
        assert int(headers(message)["offset"]) >= 0


def test_drops_judge_topic_partition_and_offset_and_what_they_shed_is_kept(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    send(broker.servers, topic, [trip(7)] * 400)  # alike: only their offsets tell them apart
    broker.create(f"{topic}-shed")
    log_plans(tmp_path, [Plan({"trips": Random(0.3)}, "tested")], {"trips": 400})
    out = jt.memory()
    shed = {"trips": jt.kafka(broker.servers, f"{topic}-shed")}
    source = earliest(broker, topic)
    run = ended(start(passing(source), tmp_path, out, on_shed=shed), 400)

    ends = broker.ends(topic)
    rows = read_between(spark, source, {topic: dict.fromkeys(ends, 0)}, {topic: ends})
    judged = (
        rows.selectExpr("*", identity_of(RECORD)).selectExpr("*", f"{keeps('trips', Random(0.3))} AS kept").collect()
    )
    kept = [row for row in judged if row.kept]
    assert 60 < len(kept) < 180
    assert len(out.rows) == len(kept)
    aside = records(broker, f"{topic}-shed")
    assert all(message.value() == trip(7) for message in aside)
    found = {(int(headers(m)["partition"]), int(headers(m)["offset"])) for m in aside}
    assert found == {(row._jt_partition, row._jt_offset) for row in judged if not row.kept}
    assert {headers(m)["reason"] for m in aside} == {"tested"}
    assert run.report().rows_shed == 400 - len(kept)


def test_an_output_keeps_what_is_shed_anywhere_on_its_way(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    send(broker.servers, topic, [trip(number) for number in range(300)])
    net = jt.Network("two")
    cheap = net.source("trips", earliest(broker, topic, timestamp="sent"), event_time="sent").where(
        "fare < 50", name="cheap"
    )
    cheap.output("low")
    cheap.where("trip >= 0", name="all").output("other")
    log_plans(tmp_path, [Plan({"trips": Random(0.5), "cheap>low": Random(0.4)}, "tested")], {"trips": 300})
    low, other = jt.memory(), jt.memory()
    run = jt.start(
        net,
        sinks={"low": low, "other": other},
        checkpoint=str(tmp_path),
        trigger=TRIGGER,
        costs=FREE,
        on_shed={"low": jt.parquet(f"{tmp_path}/low"), "trips": jt.parquet(f"{tmp_path}/trips")},
    )
    ended(run, 300)

    shed = spark.read.parquet(f"{tmp_path}/low").collect()
    at_input = [row for row in shed if row._arc == "trips"]
    assert {row._arc for row in shed} == {"trips", "cheap>low"}
    assert len(at_input) == spark.read.parquet(f"{tmp_path}/trips").count()
    below = sorted(json.loads(bytes(row.value))["trip"] for row in shed if row._arc == "cheap>low")
    assert sorted([*below, *(row.trip for row in low.rows)]) == sorted(row.trip for row in other.rows)
    assert (
        len(at_input)
        + sum(entry["rows_in"] - entry["rows_shed"] for entry in ledger(tmp_path) if entry["arc"] == "trips")
        == 300
    )
    assert all(row._event_time is not None for row in shed)
    assert all(row.topic == topic for row in at_input)


def test_when_reading_alone_is_too_much_the_newest_records_are_read(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    send(broker.servers, topic, [trip(number) for number in range(1000)])
    dear = Profile({"trips": 1.0, "out": 1.0}, {}, fixed_ms=10.0, read_us={"trips": 1000.0})
    out = jt.memory()
    run = ended(start(passing(earliest(broker, topic)), tmp_path, out, costs=dear), 1000)

    (sample, plan), *_ = run.history
    read = sample.rows_in["trips"]
    assert 20 < read < 200, "four tenths of what the fixed part leaves of 180 ms"
    assert sample.skipped["trips"] == 1000 - read
    log = PlanLog(LocalFolder(tmp_path)).read(0)
    assert log is not None
    begins, ends = log.records.begins["trips"][topic], log.records.ends["trips"][topic]
    assert sum(ends[number] - begins[number] for number in ends) == read
    assert ends == broker.ends(topic), "the newest"
    entries = [entry for entry in ledger(tmp_path) if entry["reason"] == "passed over unread" and entry["batch"] == 0]
    assert [entry["rows_shed"] for entry in entries] == [1000 - read]
    assert plan.delivered["out"] == pytest.approx(len(out.batches[0]) / 1000, abs=0.05)
    assert run.report().rows_shed == 1000 - len(out.rows)


def test_stale_records_are_passed_over_unread(spark: SparkSession, broker: Broker, topic: str, tmp_path: Path) -> None:
    now_ms = int(1000 * time.time())
    producer = Producer({"bootstrap.servers": broker.servers})
    for number in range(500):
        # the last two hundred tell of what was an hour ago, in young records: read they are, and there is time for them
        minutes = 0 if number < 300 else 60
        value = {"trip": number, "at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now_ms / 1000 - 60 * minutes))}
        sent_ms = now_ms - (3_600_000 if number < 200 else 0)
        producer.produce(topic, value=json.dumps(value), timestamp=sent_ms, partition=number % 2)
    producer.flush()
    dear = Profile({"trips": 1.0, "out": 500.0}, {}, fixed_ms=10.0)  # 180 ms: 340 of them
    out = jt.memory()
    source = earliest(broker, topic, schema="trip long, at timestamp")
    net = passing(source, event_time="at")
    run = ended(start(net, tmp_path, out, costs=dear, shedding=jt.Shedding(stale="10 minutes")), 500)

    (sample, plan), *_ = run.history
    assert sample.skipped == {"trips": 200}
    assert sample.rows_in == {"trips": 300}
    assert plan.reason == "stale"
    assert (plan.delivered["out"], plan.worth["out"]) == (pytest.approx(0.6), pytest.approx(1.0))
    assert sorted(row.trip for row in out.rows) == list(range(200, 500)), "what is left fits, whatever its time"
    unread = [entry for entry in ledger(tmp_path) if "unread" in entry["reason"]]
    assert [(entry["rows_shed"], entry["reason"]) for entry in unread] == [(200, "stale, passed over unread")]
    log = PlanLog(LocalFolder(tmp_path)).read(0)
    assert log is not None
    assert log.records.stale == log.records.skipped == {"trips": 200}


def test_a_stale_backlog_of_many_batches_goes_whole(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    now_ms = int(1000 * time.time())
    producer = Producer({"bootstrap.servers": broker.servers})
    for number in range(1200):
        old_ms = 3_600_000 if number < 1000 else 0
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime((now_ms - old_ms) / 1000))
        value = json.dumps({"trip": number, "at": at})
        producer.produce(topic, value=value, timestamp=now_ms - old_ms, partition=number % 2)
    producer.flush()
    dear = Profile({"trips": 1.0, "out": 1000.0}, {}, fixed_ms=10.0)  # 180 ms: 170 of them
    out = jt.memory()
    limited = {"maxOffsetsPerTrigger": "250"}
    source = earliest(broker, topic, schema="trip long, at timestamp", options=limited)
    run = start(
        passing(source, event_time="at"),
        tmp_path,
        out,
        costs=dear,
        shedding=jt.Shedding(headroom=0.9, stale="10 minutes"),
    )
    ended(run, 1200)
    assert all(row.trip >= 1000 for row in out.rows), "of no batch was the old half thinned out by chance"
    assert sum(sample.stale.get("trips", 0) for sample, _ in run.history) == 1000


def test_nothing_is_stale_while_there_is_time_for_it(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    producer = Producer({"bootstrap.servers": broker.servers})
    producer.produce(topic, value=b'{"trip": 1, "at": "2026-01-01T00:00:00Z"}', timestamp=1_000_000)
    producer.flush()
    out = jt.memory()
    net = passing(earliest(broker, topic, schema="trip long, at timestamp"), event_time="at")
    ended(start(net, tmp_path, out, shedding=jt.Shedding(stale="10 minutes")), 1)
    assert [row.trip for row in out.rows] == [1]


def test_what_somebody_keeps_is_read(spark: SparkSession, broker: Broker, topic: str, tmp_path: Path) -> None:
    send(broker.servers, topic, [trip(number) for number in range(300)])
    dear = Profile({"trips": 1.0, "out": 1.0}, {}, fixed_ms=10.0, read_us={"trips": 1000.0})
    out, shed = jt.memory(), jt.memory()
    ended(start(passing(earliest(broker, topic)), tmp_path, out, costs=dear, on_shed={"trips": shed}), 300)
    kept = [json.loads(bytes(row.value))["trip"] for row in shed.rows]
    assert sorted([*kept, *(row.trip for row in out.rows)]) == list(range(300))


def test_names_that_kafka_uses_may_be_fields_and_records_have_a_time(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    value = {"value": "v", "timestamp": "2026-01-01T00:00:00Z", "topic": "mine", "offset": 7, "key": "inner"}
    producer, sent_ms = Producer({"bootstrap.servers": broker.servers}), int(1000 * time.time()) - 60_000
    producer.produce(topic, value=json.dumps(value), key=b"k", timestamp=sent_ms)
    producer.flush()
    schema = "value string, timestamp timestamp, topic string, offset long, key string"
    out = jt.memory()
    source = earliest(broker, topic, schema=schema, key="record_key", timestamp="sent")
    run = ended(start(passing(source, event_time="sent"), tmp_path, out), 1)

    (row,) = out.rows
    assert (row.value, row.topic, row.offset, row.key, row.record_key) == ("v", "mine", 7, "inner", "k")
    assert row.sent.timestamp() * 1000 == sent_ms
    assert run.report().outputs["out"].latency_ms["max"] is not None


def test_text_as_it_is(spark: SparkSession, broker: Broker, topic: str, tmp_path: Path) -> None:
    send(broker.servers, topic, [b"one", b"{not json"])
    broker.create(f"{topic}-out")
    source = earliest(broker, topic, value="text", schema="line string")
    ended(start(passing(source), tmp_path, jt.kafka(broker.servers, f"{topic}-out", value="text")), 2)
    assert sorted(message.value() for message in records(broker, f"{topic}-out")) == [b"one", b"{not json"]


def test_a_topic_may_be_given_at_the_start_beside_another_source(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    send(broker.servers, topic, [trip(number) for number in range(50)])
    net = jt.Network("both")
    net.source("trips", SCHEMA).output("out")
    net.source("ticks", "timestamp timestamp, value long", id=["value"]).output("other")
    out, other = jt.memory(), jt.memory()
    ticks = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
    run = jt.start(
        net,
        {"trips": earliest(broker, topic), "ticks": ticks},
        {"out": out, "other": other},
        checkpoint=str(tmp_path),
        trigger=TRIGGER,
        costs=FREE,
    )
    until(run, lambda: len(out.rows) >= 50 and len(other.rows) >= 5)
    run.stop()
    assert sorted(row.trip for row in out.rows) == list(range(50))
    assert sum(sample.rows_in["trips"] for sample, _ in run.history) == 50


def test_a_run_goes_on_where_it_stopped(spark: SparkSession, broker: Broker, topic: str, tmp_path: Path) -> None:
    net, out = passing(earliest(broker, topic)), jt.parquet(f"{tmp_path}/out")
    for first in (0, 200):
        send(broker.servers, topic, [trip(number) for number in range(first, first + 200)])
        ended(start(net, tmp_path / "checkpoint", out), 200)
    delivered = sorted(row.trip for row in spark.read.parquet(f"{tmp_path}/out").collect())
    assert delivered == list(range(400))


def test_rates_and_lag_are_told(spark: SparkSession, broker: Broker, topic: str, tmp_path: Path) -> None:
    run = start(passing(earliest(broker, topic)), tmp_path, jt.memory(), metrics=0)
    began, sent = time.monotonic(), 0

    def seen() -> list[float]:
        return [sample.topics[topic].rows_per_s for sample, _ in list(run.history) if topic in sample.topics]

    def sent_until_a_rate_is_known() -> bool:
        nonlocal sent
        send(broker.servers, topic, [trip(number) for number in range(sent, sent + 100)])
        sent += 100
        return any(seen())

    until(run, sent_until_a_rate_is_known)
    until(run, lambda: run.report().rows_in == sent)
    fastest = 100 / 0.05  # so long `until` waits at least between two hundreds
    assert run.metrics is not None
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://127.0.0.1:{run.metrics.port}/metrics") as answer:
        shown = answer.read().decode()
    run.stop()
    assert f'jettison_topic_lag_rows{{network="{run.graph.name}",topic="{topic}"}}' in shown
    assert f'jettison_topic_arrival_rows_per_second{{network="{run.graph.name}",topic="{topic}"}}' in shown
    assert "jettison_source_lag_rows{" in shown  # as Spark's own progress has it: also of a stream that is no jt.kafka
    assert sent / (time.monotonic() - began) / 10 < max(seen()) < 2 * fastest
    assert f"topic {topic}:" in str(run.report())


def test_a_look_at_the_broker(spark: SparkSession, broker: Broker, topic: str) -> None:
    send(broker.servers, topic, [trip(number) for number in range(40)])
    watch = Watch(spark, earliest(broker, topic))
    seen = watch.look(learn=True)
    assert seen is not None
    assert sum(seen.latest[topic].values()) == 40
    assert seen.earliest[topic] == {"0": 0, "1": 0}
    assert watch.lag({topic: {"0": 0, "1": 0}}, seen)[topic].lag_rows == 40
    watch.close()
    nowhere = Watch(spark, jt.kafka("127.0.0.1:9", "t"), first_timeout_ms=300)
    assert nowhere.look() is None, "a broker that does not answer is not waited for"
    nowhere.close()


def test_records_that_are_gone_end_a_run_that_must_not_lose_any(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    send(broker.servers, topic, [trip(number) for number in range(100)])
    net, out = passing(earliest(broker, topic)), jt.memory()
    ended(start(net, tmp_path, out), 100)
    read = broker.ends(topic)
    send(broker.servers, topic, [trip(number) for number in range(100, 300)])
    oldest = {number: (read[number] + end) // 2 for number, end in broker.ends(topic).items()}
    gone = sum(oldest.values()) - 100  # about 100: how records spread over partitions is the producer's choice
    broker.forget(topic, oldest)
    run = start(net, tmp_path, out)
    with pytest.raises(jt.SourceError, match=rf": {gone} records are gone.*fail_on_data_loss=False"):
        until(run, lambda: False)

    forgiving = passing(earliest(broker, topic, fail_on_data_loss=False))
    run = ended(start(forgiving, tmp_path, out), 200 - gone)
    assert run.report().rows_gone == gone
    assert f"{gone} rows were gone" in str(run.report())
    assert [(e["rows_gone"], e["reason"]) for e in ledger(tmp_path) if e["reason"].startswith("gone")] == [
        (gone, "gone before it was read")
    ]
    assert len(out.rows) == 300 - gone


def test_a_topic_made_anew_is_read_from_its_first_record(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    send(broker.servers, topic, [trip(number) for number in range(100)])
    source = earliest(broker, topic, fail_on_data_loss=False)
    out = jt.parquet(f"{tmp_path}/out")
    ended(start(passing(source), tmp_path / "checkpoint", out), 100)
    broker.delete(topic)
    broker.create(topic)
    send(broker.servers, topic, [trip(number) for number in range(1000, 1300)])  # longer than the old one was
    strict = start(passing(earliest(broker, topic)), tmp_path / "checkpoint", out)
    with pytest.raises(jt.SourceError, match="made anew"):  # Spark may see it first, and says less
        until(strict, lambda: False)
    ended(start(passing(source), tmp_path / "checkpoint", out), 300)
    delivered = sorted(row.trip for row in spark.read.parquet(f"{tmp_path}/out").collect())
    assert delivered == [*range(100), *range(1000, 1300)]
    log = PlanLog(LocalFolder(tmp_path / "checkpoint"))
    anew = [logged for logged in map(log.read, log.batches()) if logged is not None and logged.records.begins]
    assert [logged.records.begins for logged in anew] == [{"trips": {topic: {"0": 0, "1": 0}}}]


def in_flight(broker: Broker, topic: str, checkpoint: Path, out: Any) -> None:
    """A batch of 100 records that is planned and written, and not committed: what a crash leaves."""
    send(broker.servers, topic, [trip(number) for number in range(100)])
    ended(start(passing(earliest(broker, topic)), checkpoint, out), 100)
    send(broker.servers, topic, [trip(number) for number in range(100, 200)])
    ended(start(passing(earliest(broker, topic)), checkpoint, out), 100)
    commits = checkpoint / "spark" / "commits"
    last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
    (commits / str(last)).unlink()
    (commits / f".{last}.crc").unlink(missing_ok=True)


@pytest.mark.parametrize("longer", [False, True], ids=["shorter than before", "longer than before"])
def test_a_batch_that_is_repeated_on_a_topic_made_anew(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path, longer: bool
) -> None:
    out, checkpoint = jt.parquet(f"{tmp_path}/out"), tmp_path / "checkpoint"
    in_flight(broker, topic, checkpoint, out)
    broker.delete(topic)
    broker.create(topic)
    new = range(1000, 1350 if longer else 1040)
    send(broker.servers, topic, [trip(number) for number in new])
    strict = start(passing(earliest(broker, topic)), checkpoint, out)
    with pytest.raises(jt.SourceError, match="made anew"):  # Spark may see it first, and says less
        until(strict, lambda: False)
    run = start(passing(earliest(broker, topic, fail_on_data_loss=False)), checkpoint, out)
    until(run, lambda: run.report().rows_in >= len(new))
    send(broker.servers, topic, [trip(number) for number in range(2000, 2010)])
    ended(run, len(new) + 10)
    assert run.report().rows_gone == 100
    delivered = sorted(row.trip for row in spark.read.parquet(f"{tmp_path}/out").collect())
    # what the first attempt had written stays, as nothing takes its place; of the new topic everything comes, once
    assert delivered == [*range(200), *new, *range(2000, 2010)]


def test_an_identity_inside_the_value_is_parsed_alone(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    send(broker.servers, topic, [trip(number % 50) for number in range(400)])
    log_plans(tmp_path, [Plan({"trips": Random(0.5)}, "tested")], {"trips": 400})
    out = jt.memory()
    ended(start(passing(earliest(broker, topic), id=["trip"]), tmp_path, out), 400)
    kept = Counter(row.trip for row in out.rows)
    assert set(kept.values()) == {8}, "all records of a trip fare alike"
    assert 10 < len(kept) < 40


def test_a_topic_that_is_not_there(spark: SparkSession, broker: Broker, tmp_path: Path) -> None:
    run = start(passing(earliest(broker, "no-such-topic")), tmp_path, jt.memory())
    with pytest.raises(jt.SourceError, match=r"The topic does not exist: make it"):
        until(run, lambda: False)


def test_a_sink_whose_key_is_no_column(spark: SparkSession, broker: Broker, topic: str, tmp_path: Path) -> None:
    send(broker.servers, topic, [trip(1)])
    broker.create(f"{topic}-out")
    run = start(passing(earliest(broker, topic)), tmp_path, jt.kafka(broker.servers, f"{topic}-out", key="zone"))
    with pytest.raises(jt.SinkError, match=r"output 'out': .*no column 'zone' for the key"):
        until(run, lambda: False)


@pytest.mark.parametrize(
    ("on_shed", "fault"),
    [
        ({"fares": jt.memory()}, r"'fares' is neither an output nor an arc.*Arcs: trips, trips>out"),
        ({"out": 5}, "5 is not"),
    ],
)
def test_shed_rows_are_kept_where_there_are_some(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path, on_shed: dict[str, Any], fault: str
) -> None:
    with pytest.raises(jt.StartError, match=fault):
        start(passing(earliest(broker, topic)), tmp_path, jt.memory(), on_shed=on_shed)


def test_sinks_that_would_undo_each_other_are_refused(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    same = jt.parquet(f"{tmp_path}/same")
    with pytest.raises(jt.StartError, match=r"on_shed trips and dead_letters both write to"):
        start(passing(earliest(broker, topic)), tmp_path, jt.memory(), on_shed={"trips": same}, dead_letters=same)


def test_a_checkpoint_of_another_topic_is_refused(
    spark: SparkSession, broker: Broker, topic: str, tmp_path: Path
) -> None:
    send(broker.servers, topic, [trip(1)])
    ended(start(passing(earliest(broker, topic)), tmp_path, jt.memory()), 1)
    with pytest.raises(jt.CheckpointError, match=f"topic was '{topic}' and is 'other'"):
        start(passing(earliest(broker, "other")), tmp_path, jt.memory())


def test_avro(spark: SparkSession, broker: Broker, topic: str, tmp_path: Path) -> None:
    fields = [{"name": "trip", "type": "long"}, {"name": "who", "type": "string"}]
    schema = json.dumps({"type": "record", "name": "trip", "fields": fields, "doc": "a rider's \\ trip"})
    send(broker.servers, topic, [b"\x0e\x06bob", b"\xff", b"\x10\x06eva"])
    out = jt.memory()
    source = earliest(broker, topic, value="avro", schema=schema)
    run = ended(start(passing(source), tmp_path, out, dead_letters=jt.parquet(f"{tmp_path}/bad")), 3)
    assert sorted((row.trip, row.who) for row in out.rows) == [(7, "bob"), (8, "eva")]
    assert run.report().rows_rejected == 1
    assert [bytes(row.value) for row in spark.read.parquet(f"{tmp_path}/bad").collect()] == [b"\xff"]


@pytest.mark.long
def test_without_the_connector_one_sentence_says_what_to_do(tmp_path: Path) -> None:
    script = """
import jettison as jt
spark = jt.local_session()
net = jt.Network("n")
net.source("trips", jt.kafka("127.0.0.1:9092", "trips", schema="trip long")).output("out")
try:
    jt.start(net, sinks={"out": jt.memory()})
except jt.StartError as error:
    print(error)
try:
    jt.local_session(kafka=True)
except jt.StartError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, cwd=tmp_path)
    first, second = done.stdout.strip().splitlines()
    assert first.startswith("this Spark session has no Kafka connector: make it with jt.local_session(kafka=True)")
    assert "org.apache.spark:spark-sql-kafka-0-10_2.13:" in first
    assert second.startswith("Spark runs in this process already, without the Kafka connector")
