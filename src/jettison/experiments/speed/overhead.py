"""What Jettison costs when it sheds nothing, beside a plain `foreachBatch` and native streaming queries.

All variants read the same generated trips in a closed loop, from Python workers, and write the same parquet outputs.
The plain variant does the same jobs as a Spark user writes them: parse and score once, persist, three writes one after
another; `side_by_side` is the same with the three writes in threads, as Jettison makes them. Variants alternate, and
the median batch counts.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.pool import ThreadPool
from pathlib import Path
from typing import Any, TypeVar

from jettison.experiments.harness import Result, Say
from jettison.experiments.support.capacity import closed_loop
from jettison.experiments.support.workload import SCHEMA, taxi_network
from jettison.network.columns.columns_needed import needed_columns
from jettison.network.operators import Select, Where, WithColumns
from jettison.spark.batch.calibration import assumed_profile
from jettison.spark.read.generator import generate
from jettison.spark.run.session import local_session
from jettison.synthetic.fields import TAXI_PAYLOAD

_NETWORK = taxi_network()
_SHARED = frozenset({"scored"})

Kind = TypeVar("Kind")


def run(*, quick: bool, say: Say) -> Result:
    rounds, batches, rows = (1, 2, 2_000) if quick else (4, 16, 40_000)
    spark = local_session()
    variants: dict[str, Callable[[Any, Path, int, int], list[float]]] = {
        "jettison": _jettison,
        "plain": partial(_plain, writers=1),
        "side_by_side": partial(_plain, writers=3),
        "native": _native,
    }
    times: dict[str, list[float]] = {name: [] for name in variants}
    table = []
    with tempfile.TemporaryDirectory(prefix="jettison-overhead-") as name:
        say("warming up")
        _plain(spark, Path(name) / "warm", 2 if quick else 10, rows, writers=1)
        for number in range(rounds):
            for variant, work in variants.items():
                say(f"round {number + 1} of {rounds}: {variant}")
                measured = work(spark, Path(name) / f"{variant}-{number}", batches, rows)[batches // 4 :]
                times[variant] += measured
                table += [{"round": number, "variant": variant, "batch_ms": round(ms, 1)} for ms in measured]
    median = {variant: statistics.median(values) for variant, values in times.items()}
    vs_plain, vs_native = median["plain"] / median["jettison"], median["native"] / median["jettison"]
    return Result(
        "overhead",
        {
            "vs_plain": round(vs_plain, 3),
            "vs_native": round(vs_native, 3),
            "vs_side_by_side": round(median["side_by_side"] / median["jettison"], 3),
            **{f"{variant}_rows_per_s": round(1000 * rows / ms) for variant, ms in median.items()},
        },
        {
            "throughput is at least .97 of a plain foreachBatch": vs_plain >= 0.97,
            "throughput is at least that of native queries": vs_native >= 1.0,
        },
        table,
        lambda figure: _draw(figure, times, rows),
    )


def _jettison(spark: Any, folder: Path, batches: int, rows: int) -> list[float]:
    costs = assumed_profile(_NETWORK.graph)
    running = closed_loop(spark, _NETWORK, folder, rows, batches, costs, _SHARED, in_python=True)
    return _trigger_times([running.query])


def _plain(spark: Any, folder: Path, batches: int, rows: int, *, writers: int) -> list[float]:
    def write(frame: Any, batch: int) -> None:
        shared = scored(frame).persist()
        try:
            jobs = [(each, f"{folder}/{name}/batch={batch}") for name, each in outputs_of(shared).items()]
            with ThreadPool(writers) as pool:
                pool.map(lambda job: job[0].write.mode("overwrite").parquet(job[1]), jobs)
        finally:
            shared.unpersist()

    stream = generate(spark, TAXI_PAYLOAD, rows_per_batch=rows, limit_rows=rows * batches)
    query = stream.writeStream.option("checkpointLocation", f"{folder}/checkpoint").foreachBatch(write).start()
    return _wait([query], batches)


def _native(spark: Any, folder: Path, batches: int, rows: int) -> list[float]:
    queries = []
    for name in (output.name for output in _NETWORK.graph.outputs):
        stream = generate(spark, TAXI_PAYLOAD, rows_per_batch=rows, limit_rows=rows * batches)
        frame = outputs_of(scored(stream))[name]
        writer = frame.writeStream.format("parquet").option("path", f"{folder}/{name}")
        queries.append(writer.option("checkpointLocation", f"{folder}/checkpoint-{name}").start())
    return _wait(queries, batches)


def scored(frame: Any, beside: tuple[str, ...] = ("trip", "pickup")) -> Any:
    """What the outputs share, as a Spark user writes it: parse (all but the columns beside), keep paid trips, score."""
    inside = ", ".join(part for part in SCHEMA.split(", ") if part.split()[0] not in beside)
    body = frame.selectExpr(*beside, f"from_json(string(value), '{inside}') AS body").where("body IS NOT NULL")
    added = dict(_operator("scored", WithColumns).columns)
    paid = body.select(*beside, "body.*").where("fare > 0")
    paid = paid.selectExpr("*", *(f"{sql} AS {name}" for name, sql in added.items()))
    return paid.select(*(needed_columns(_NETWORK.graph, "scored") or ("*",)))


def outputs_of(rows: Any) -> dict[str, Any]:
    """The three outputs of what they share."""
    suspicious = rows.where(_operator("suspicious", Where).predicate)
    return {
        "fares": rows.select(*_operator("fare_columns", Select).expressions),
        "routes": rows.select(*_operator("route_columns", Select).expressions),
        "alerts": suspicious.select(*_operator("alert_columns", Select).expressions),
    }


def _operator(name: str, kind: type[Kind]) -> Kind:
    found = _NETWORK.graph.by_name[name]
    assert isinstance(found, kind)
    return found


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


def _draw(figure: Any, times: dict[str, list[float]], rows: int) -> None:
    axes = figure.subplots()
    axes.boxplot(list(times.values()), tick_labels=list(times), showfliers=False)
    axes.set_ylabel(f"time of a batch of {rows:,} rows (ms)")
    axes.set_title("Nothing shed: Jettison, the same jobs in a plain foreachBatch, native streaming queries")
