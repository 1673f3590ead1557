"""Updates and look-ups of the cost sketch, beside the Count-Min sketch of Apache DataSketches.

A million tuples with 35,000 keys (long integers, then texts), a heavy tail, into 4 x 272 cells. Ours takes columns
and updates two matrices, counts and durations; the peer, a C++ library, takes one item per call and updates one: it is
given two sketches, for the same work. `lookup_ns` is one look-up by NumPy, hashing included, as the simulator and the
driver do it; `sql_lookup_ns` is one in Spark SQL, as a run judges tuples: a job on two cores, hashing included, less
the same job without looking up. The peer is measured only where it is installed (`pip install 'jettison[dev]'`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from jettison.errors import StartError
from jettison.experiments.harness import Result, Say
from jettison.spark.run.session import local_session
from jettison.statistics.sketches.cost_sketch import CostSketch, sketch_size
from jettison.statistics.sketches.key_hash import key_hash, key_hash_sql

_TUPLES, _QUICK_TUPLES, _KEYS = 1_000_000, 20_000, 35_000
_EPSILON, _DELTA = 0.01, 0.02
_TIMES = 3


def run(*, quick: bool, say: Say) -> Result:
    count = _QUICK_TUPLES if quick else _TUPLES
    rng = np.random.default_rng(3)
    keys = (_KEYS * rng.random(count) ** 3).astype(np.int64)
    durations_us = rng.integers(1000, 152_000, _KEYS)[keys].astype(np.float64)
    texts = np.array([f"entity {number}" for number in range(_KEYS)])[keys]
    rows, spark = [], local_session(cores=2)
    for kind, column, items in (
        ("long", pa.array(keys), keys.tolist()),
        ("text", pa.array(texts.tolist()), texts.tolist()),
    ):
        ours = _measured(kind, column, items, durations_us)
        rows.append(ours | {"SQL look-up ns": _sql_lookup_ns(spark, column, durations_us)})
        say(", ".join(f"{name} {value:.0f} ns" for name, value in rows[-1].items() if isinstance(value, float)))
    worst = {word: max(row[word] for row in rows) for word in ("update ns", "look-up ns", "SQL look-up ns")}
    metrics = {
        "update_vs_peer": min(row["peer update ns"] / row["update ns"] for row in rows),
        "lookup_vs_peer": min(row["peer look-up ns"] / row["look-up ns"] for row in rows),
        "update_ns": worst["update ns"],
        "lookup_ns": worst["look-up ns"],
        "sql_lookup_ns": worst["SQL look-up ns"],
    }
    checks = {
        "updates are at least as fast as the peer's": metrics["update_vs_peer"] >= 1,
        "a look-up takes at most 200 ns": metrics["lookup_ns"] <= 200,
        "a look-up in Spark SQL takes at most 200 ns": metrics["sql_lookup_ns"] <= 200,
    }
    return Result("sketch", metrics, checks, rows, lambda figure: _draw(figure, rows))


def _measured(kind: str, column: pa.Array, items: list[Any], durations_us: Any) -> dict[str, Any]:
    """Nanoseconds per tuple, the best of several runs, ours and the peer's in turn."""
    empty = CostSketch.empty(*sketch_size(_EPSILON, _DELTA))
    filled = empty.updated(key_hash([column]), durations_us)
    peer, durations = _Peer(), durations_us.tolist()
    ways: dict[str, Callable[[], object]] = {
        "update ns": lambda: empty.updated(key_hash([column]), durations_us),
        "peer update ns": lambda: peer.update(items, durations),
        "look-up ns": lambda: filled.table.costs_us(key_hash([column])),
        "peer look-up ns": lambda: peer.look_up(items),
    }
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(_TIMES):
        for name, way in ways.items():
            began = time.perf_counter()
            way()
            best[name] = min(best[name], 1e9 * (time.perf_counter() - began) / len(items))
    return {"keys": kind, **best}


def _sql_lookup_ns(spark: Any, column: pa.Array, durations_us: Any) -> float:
    """Nanoseconds per row of a job that looks costs up, less those of one that reads the keys, the best of several."""
    table = CostSketch.empty(*sketch_size(_EPSILON, _DELTA)).updated(key_hash([column]), durations_us).table
    frame = spark.createDataFrame(pa.table({"k": column})).repartition(2).persist()
    frame.count()
    hashed = frame.selectExpr("k", f"{key_hash_sql(['k'])} AS h")
    ways = {"costs": hashed.selectExpr(f"sum({table.cost_sql('h')})"), "keys": frame.selectExpr("count(k)")}
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(2 * _TIMES):  # the first ones are compiled
        for name, made in ways.items():
            began = time.perf_counter()
            made.collect()
            best[name] = min(best[name], 1e9 * (time.perf_counter() - began) / len(column))
    frame.unpersist()
    return best["costs"] - best["keys"]


class _Peer:
    """Two Count-Min sketches of Apache DataSketches, of the size of ours."""

    def __init__(self) -> None:
        try:
            from datasketches import count_min_sketch
        except ImportError as error:
            raise StartError("experiment 'sketch' compares with datasketches: pip install datasketches.") from error
        rows, columns = sketch_size(_EPSILON, _DELTA)
        self._counts, self._totals = count_min_sketch(rows, columns), count_min_sketch(rows, columns)

    def update(self, items: list[Any], durations: list[float]) -> None:
        count, total = self._counts.update, self._totals.update
        for item, duration in zip(items, durations, strict=True):
            count(item)
            total(item, duration)

    def look_up(self, items: list[Any]) -> list[float]:
        count, total = self._counts.get_estimate, self._totals.get_estimate
        return [total(item) / max(1.0, count(item)) for item in items]


def _draw(figure: Any, rows: list[dict[str, Any]]) -> None:
    axes = figure.subplots()
    ways = [name for name in rows[0] if name != "keys"]
    for number, row in enumerate(rows):
        places = [index + 0.4 * number - 0.2 for index in range(len(ways))]
        axes.bar(places, [row[name] for name in ways], width=0.38, label=f"keys are {row['keys']}s")
    axes.set_xticks(range(len(ways)), [name.removesuffix(" ns") for name in ways])
    axes.set_yscale("log")
    axes.set_ylabel("nanoseconds per tuple")
    axes.set_title("Cost sketch of 4 x 272 cells beside Apache DataSketches")
    axes.legend()
