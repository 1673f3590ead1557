"""What Jettison costs when it sheds nothing, beside a plain `foreachBatch` and native streaming queries.

All variants read the same generated trips in a closed loop and write the same parquet outputs. The plain variant does
the same jobs as a Spark user writes them: parse and score once, persist, three writes. Variants alternate, and the
median batch counts.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jettison.experiments.capacity import closed_loop
from jettison.experiments.harness import Result, Say
from jettison.experiments.workload import taxi_network
from jettison.network.fields import TAXI_PAYLOAD
from jettison.plan.plan import Plan
from jettison.spark.calibrate import assumed_profile
from jettison.spark.compile import Compiler
from jettison.spark.drops import HIDDEN
from jettison.spark.generator import generate
from jettison.spark.session import local_session

_ROWS = 40_000
_NETWORK = taxi_network()
_SHARED = frozenset({"scored"})


def run(*, quick: bool, say: Say) -> Result:
    rounds, batches = (2, 8) if quick else (4, 16)
    spark = local_session()
    variants: dict[str, Callable[[Any, Path, int], list[float]]] = {
        "jettison": _jettison,
        "plain": _plain,
        "native": _native,
    }
    times: dict[str, list[float]] = {name: [] for name in variants}
    table = []
    with tempfile.TemporaryDirectory(prefix="jettison-overhead-") as name:
        say("warming up")
        _plain(spark, Path(name) / "warm", 10)
        for number in range(rounds):
            for variant, work in variants.items():
                say(f"round {number + 1} of {rounds}: {variant}")
                measured = work(spark, Path(name) / f"{variant}-{number}", batches)[batches // 4 :]
                times[variant] += measured
                table += [{"round": number, "variant": variant, "batch_ms": round(ms, 1)} for ms in measured]
    median = {variant: statistics.median(values) for variant, values in times.items()}
    vs_plain, vs_native = median["plain"] / median["jettison"], median["native"] / median["jettison"]
    return Result(
        "overhead",
        {
            "vs_plain": round(vs_plain, 3),
            "vs_native": round(vs_native, 3),
            **{f"{variant}_rows_per_s": round(1000 * _ROWS / ms) for variant, ms in median.items()},
        },
        {
            "throughput is at least .97 of a plain foreachBatch": vs_plain >= 0.97,
            "throughput is at least that of native queries": vs_native >= 1.0,
        },
        table,
        lambda figure: _draw(figure, times),
    )


def _jettison(spark: Any, folder: Path, batches: int) -> list[float]:
    running = closed_loop(spark, _NETWORK, folder, _ROWS, batches, assumed_profile(_NETWORK.graph), _SHARED)
    return _trigger_times([running.query])


def _plain(spark: Any, folder: Path, batches: int) -> list[float]:
    def write(frame: Any, batch: int) -> None:
        frames = _frames(frame, shared=True)
        try:
            for name, rows in frames.outputs.items():
                rows.write.mode("overwrite").parquet(f"{folder}/{name}/batch={batch}")
        finally:
            for kept in frames.persisted:
                kept.unpersist()

    stream = generate(spark, TAXI_PAYLOAD, rows_per_batch=_ROWS, limit_rows=_ROWS * batches)
    query = stream.writeStream.option("checkpointLocation", f"{folder}/checkpoint").foreachBatch(write).start()
    return _wait([query], batches)


def _native(spark: Any, folder: Path, batches: int) -> list[float]:
    queries = []
    for name in (output.name for output in _NETWORK.graph.outputs):
        stream = generate(spark, TAXI_PAYLOAD, rows_per_batch=_ROWS, limit_rows=_ROWS * batches)
        rows = _frames(stream, shared=False).outputs[name]
        writer = rows.writeStream.format("parquet").option("path", f"{folder}/{name}")
        queries.append(writer.option("checkpointLocation", f"{folder}/checkpoint-{name}").start())
    return _wait(queries, batches)


class _Frames:
    def __init__(self, outputs: dict[str, Any], persisted: list[Any]) -> None:
        self.outputs = outputs
        self.persisted = persisted


def _frames(frame: Any, *, shared: bool) -> _Frames:
    """The network's outputs as frames, without drops and without counting."""
    compiler = Compiler(_NETWORK.graph, {"trips": frame}, Plan(), {}, _SHARED if shared else frozenset())
    outputs = {
        output.name: compiler.output(output.name, count=False).drop(*HIDDEN) for output in _NETWORK.graph.outputs
    }
    return _Frames(outputs, list(compiler.persisted.values()))


def _wait(queries: list[Any], batches: int, timeout_s: float = 300.0) -> list[float]:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if all((query.lastProgress or {"batchId": -1})["batchId"] >= batches - 1 for query in queries):
            break
        time.sleep(0.1)
    for query in queries:
        query.stop()
    return _trigger_times(queries)


def _trigger_times(queries: list[Any]) -> list[float]:
    """Time of each batch as Spark gives it; of several queries side by side, that of the slowest."""
    per_query = [
        [
            float(progress["durationMs"]["triggerExecution"])
            for progress in query.recentProgress
            if progress["numInputRows"] > 0
        ]
        for query in queries
    ]
    return [max(times) for times in zip(*per_query, strict=False)]


def _draw(figure: Any, times: dict[str, list[float]]) -> None:
    axes = figure.subplots()
    axes.boxplot(list(times.values()), tick_labels=list(times), showfliers=False)
    axes.set_ylabel(f"time of a batch of {_ROWS:,} rows (ms)")
    axes.set_title("Nothing shed: Jettison, the same jobs in a plain foreachBatch, native streaming queries")
