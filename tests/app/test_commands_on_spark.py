"""Commands that start a Spark or a Kafka broker: how they are ended, and what they say then."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
import yaml
from pyspark.sql import SparkSession
from tests.app.commands import JETTISON, TAXI, changed, jettison
from tests.conftest import needs_kafka

from jettison.experiments.kafka.ports import HOST, free_ports


def started(*arguments: object, cwd: Path) -> subprocess.Popen[str]:
    """A process of its own: it starts a Spark, and gets signals."""
    command = [*JETTISON, *(str(each) for each in arguments)]
    environment = {**os.environ, "COLUMNS": "100"}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=cwd, env=environment)


def stopped(process: subprocess.Popen[str], *written: Path, batches: int = 1) -> str:
    """Wait until so many batches were written to each of these places, then press Ctrl-C; what it says in the end."""
    deadline = time.monotonic() + 400
    try:
        while min(len(list(place.glob("batch=*/_SUCCESS"))) for place in written) < batches:
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < deadline
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == 0, stderr
    assert "stopping after this batch" in stderr
    assert "Traceback" not in stderr
    return stdout


@pytest.mark.spark
@pytest.mark.slow
def test_ctrl_c_ends_the_example_between_batches_and_reports(tmp_path: Path) -> None:
    # without the burst of the example, which a slow machine would be at work on for long
    rate = {"kind": "constant", "rows_per_s": 2000}
    example = changed(tmp_path, "run", "sources", "trips", "generator", "rate", to=rate)
    process = started("run", example, "--metrics", ":0", cwd=tmp_path)
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("metrics: http://127.0.0.1:"):
            break
    out = tmp_path / "out" / "taxi"
    stdout = stopped(process, out / "busy", out / "alarms", batches=2)  # the first may have no rows
    assert re.search(
        r"^network taxi: [1-9]\d* batches in \d+ s, worth .+ [\d.]+%\n[1-9][\d,]* rows in", stdout, re.MULTILINE
    ), stdout
    for output in ("prices", "busy", "alarms"):
        assert re.search(rf"^{output} +[\d,]+ +[\d.]+%", stdout, re.MULTILINE), stdout


def test_run_ends_after_so_many_seconds(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[object] = []
    # the session is shared with other tests
    monkeypatch.setattr(type(spark), "stop", lambda session: ended.append(session))
    content = yaml.safe_load(TAXI.read_text(encoding="utf-8"))
    content["run"]["sources"]["trips"]["generator"]["rate"] = {"kind": "constant", "rows_per_s": 2000}
    content["run"]["sinks"] = {name: {"format": "noop"} for name in content["outputs"]}
    spec = tmp_path / "short.yaml"
    spec.write_text(yaml.safe_dump(content), encoding="utf-8")
    began = time.monotonic()
    result = jettison("run", spec, "--for", 2, "--verbose")
    assert time.monotonic() - began >= 2
    assert result.exit_code == 0, result.output
    assert re.search(
        r"^network taxi: \d+ batches in \d+ s, worth delivered in time \S+$", result.stdout, re.MULTILINE
    ), result.stdout
    assert len(ended) == 1
    assert not spark.streams.active
    # trust 22: on the way there the log tells how it goes, line by line, where no live line can be seen
    said = [line.removeprefix("jettison: ") for line in result.stderr.splitlines()]
    assert said[0] == "starting Spark"
    started = r"network 'taxi' starts: 1 source, 3 outputs, a batch every 1 s, checkpoint \S+, begins with batch 0$"
    assert re.match(started, said[1])
    ending = re.match(r"network 'taxi' has stopped: (\d+) batches, [\d,]+ rows in, \d+ shed", said[-1])
    assert ending
    logged = [line for line in said if re.match(r"batch \d+: [\d,]+ rows in \d+ of \d+ ms, plan row", line)]
    assert len(logged) == int(ending[1])  # on a busy machine perhaps none


@pytest.mark.kafka
@needs_kafka
def test_a_broker_on_a_port_that_is_in_use() -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        result = jettison("kafka", "--port", port)
    assert result.exit_code == 1
    assert f"port {port} on 127.0.0.1 is in use" in " ".join(result.stderr.split())


@pytest.mark.kafka
@pytest.mark.long
@needs_kafka
def test_the_kafka_example_reads_from_the_broker_that_jettison_starts(tmp_path: Path) -> None:
    port = str(free_ports(1)[0])
    example = tmp_path / "kafka.yaml"
    example.write_text((TAXI.parent / "kafka.yaml").read_text().replace("9092", port))
    broker = started("kafka", "--port", port, "--rate", 500, cwd=tmp_path)
    try:
        assert broker.stdout is not None
        shown = [broker.stdout.readline() for _ in range(2)]
        assert shown[0].startswith(f"Kafka listens on 127.0.0.1:{port}; topic 'trips'"), broker.communicate()[1]
        prices = tmp_path / "out" / "kafka" / "prices"
        stdout = stopped(started("run", example, cwd=tmp_path), prices, batches=2)
        assert re.search(r"^[1-9][\d,]* rows in", stdout, re.MULTILINE), stdout
        assert re.search(r"^topic trips: [1-9][\d,]* rows/s arrive", stdout, re.MULTILINE), stdout
        assert list(prices.glob("batch=*/*.parquet"))
        broker.send_signal(signal.SIGINT)
        assert broker.wait(60) == 0
    finally:
        broker.kill()
