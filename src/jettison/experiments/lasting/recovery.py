"""Killed again and again: results equal those of an undisturbed run with the same plan log, and none is wrong.

A run that sheds is killed with SIGKILL at a random moment and started again on the same checkpoint, a hundred times,
then left to finish. It drops rows by chance and has windows, a join of streams, windows of its pairs and estimates.
From the plans and offsets that it logged the same batches are run once more, undisturbed, and the outputs are compared:
a row that is missing is lost, one that is there too often is doubled. What is wrong is told without either run: windows
and pairs must be those that Spark itself finds among all rows that were read, and so must estimates that claim to be
exact (`estimates_wrongly_exact` says how many of the wrong ones are such: a kill has no part in them). The next process
starts Spark while the one before it runs, so that a kill takes some seconds.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from jettison.experiments.harness import Result, Say
from jettison.network.declare import Network
from jettison.network.qos import QoS
from jettison.options.costs import Costs
from jettison.spark.batch.runner import BatchRunner
from jettison.spark.checkpoint.logs import Logged, PlanLog
from jettison.spark.checkpoint.small_files import LocalFolder
from jettison.spark.read.generator import generate, generated
from jettison.spark.run.checks import check_compiles
from jettison.spark.run.session import local_session
from jettison.spark.run.start import start
from jettison.spark.state.opening import open_states
from jettison.spark.write.batch_jobs import RunSinks
from jettison.spark.write.sinks import ParquetSink
from jettison.statistics.profile import Profile
from jettison.synthetic.fields import TAXI
from jettison.synthetic.rates import Constant

_RATE = Constant(300.0)
_SEED = 7
_BRIEF = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""A virtual machine that is killed after some seconds does not earn back what compiling thoroughly takes."""
_SOURCES = ("trips", "rides")
_SCHEMA = "trip long, pickup timestamp, zone int, fare double"
_KILLS = 100
_BACKLOG_S = 60
"""So long before the first batch the rows begin to come: batches are as large as they may be on any machine."""
_MOST_ROWS = (6_000, 3_000, 5_000, 9_000)
"""Limits of a batch, one process after another: windows are shed in part, not at all, in part, wholly."""
_OUTPUTS = ("fares", "alerts", "zones", "pairs", "seconds", "estimates")
_CENTS = "CAST(round(100 * fare) AS long)"
"""Sums of whole numbers are the same in any order."""


def network() -> Network:
    """Rows, windows, pairs, windows of pairs and estimates. Rows and pairs keep the trip's number, to be told apart."""
    net = Network("recovery")
    trips, rides = (net.source(name, _SCHEMA, event_time="pickup", id=["trip"]) for name in _SOURCES)
    paid = trips.where("fare > 0", name="paid")
    paid.select("trip", "zone", "fare", name="columns").output("fares", qos=QoS([(100, 1.0), (50, 0.8), (0, 0.0)]))
    paid.where("fare > 50", name="dear").output("alerts", qos=QoS(priority=3))
    windows = paid.window("2 seconds", slide="1 second", by="zone")
    windows.agg(n="count(*)", cents=f"sum({_CENTS})", name="busy").output("zones")
    even = paid.where("trip % 2 = 0", name="even").select("zone", "trip", name="evens")
    odd = paid.where("trip % 2 = 1", name="odd").select("zone", "trip AS other", name="odds")
    near = even.join(odd, "zone", within="500 milliseconds", name="near")
    near.output("pairs")
    near.window("1 second").agg(n="count(*)", name="meeting").output("seconds")
    sampled = rides.where("fare > 0", name="paid_rides").window("2 seconds", by="zone")
    thinned = QoS([(100, 1.0), (20, 0.95), (0, 0.0)], on_loss="estimate")
    sampled.agg(n="count(*)", cents=f"sum({_CENTS})", name="sampled").output("estimates", qos=thinned)
    return net


def profile() -> Profile:
    """Costs at which the limits of a batch (`_MOST_ROWS`) reach from no overload to one that closes windows."""
    named = {"trips": 20.0, "fares": 30.0, "alerts": 30.0, "busy": 40.0, "near": 40.0, "meeting": 20.0, "sampled": 90.0}
    costs = {operator.name: 0.24 * named.get(operator.name, 5.0) for operator in network().graph.operators}
    shares = {"paid": 0.98, "paid_rides": 0.98, "dear": 0.1, "even": 0.5, "odd": 0.5}
    return Profile(costs, shares, fixed_ms=100.0, read_us=dict.fromkeys(_SOURCES, 0.5))


class _Announcing(ParquetSink):
    """Says on standard output when it begins to write."""

    def write(self, rows: Any, batch: int) -> None:
        print("writing", flush=True)
        super().write(rows, batch)

    def write_few(self, rows: Any, batch: int) -> None:
        print("writing", flush=True)
        super().write_few(rows, batch)


def child(folder: str) -> None:
    """What is killed: a run that says on standard output when it writes, and ends when the source does.

    Spark is started at once, the run when standard input says after how many rows the source ends, and how many rows
    one batch may have.
    """
    spark = local_session("recovery-child")
    limit_rows, most_rows = map(int, sys.stdin.readline().split())
    given = {"limit_rows": limit_rows, "rows_per_batch": most_rows, "start_us": _started_us(folder)}
    streams = {name: generate(spark, TAXI, rate=_RATE, seed=_SEED, **given) for name in _SOURCES}
    sinks = {name: _Announcing(f"{folder}/{name}") for name in _OUTPUTS}
    running = start(
        network(),
        streams,
        sinks,
        trigger="400 milliseconds",
        checkpoint=f"{folder}/checkpoint",
        costs=Costs(profile(), learn=False),
    )
    print("started", flush=True)
    while not running.await_termination(timeout=0.2):
        progress = running.query.lastProgress
        if progress is not None and _rows_read(folder) >= limit_rows and not running.query.status["isTriggerActive"]:
            break
    running.stop()
    print("finished", flush=True)


def run(*, quick: bool, say: Say, kills: int | None = None) -> Result:
    kills = kills or (2 if quick else _KILLS)
    draw = random.Random(20261115)
    with tempfile.TemporaryDirectory(prefix="jettison-recovery-") as folder:
        (Path(folder) / "start_us").write_text(str(time.time_ns() // 1000 - _BACKLOG_S * 1_000_000))
        plans: dict[int, Logged] = {}
        changed: set[int] = set()
        repeated: set[int] = set()
        moments: list[tuple[int, float]] = []
        waiting = _start_child(folder)
        try:
            for number in range(kills):
                # 0 writes: before or in the first batch; else while an output of one of the first batches is written
                writes = draw.choice((3, 5) if quick else (0, 1, 2, 3, 4, 5, 7, 9, 12, 15))
                delay_s = draw.uniform(0.0, 3.0 if writes == 0 else 0.6)
                say(f"kill {number + 1} of {kills}: {delay_s:.2f} s after {writes} writes began")
                process, waiting = waiting, _start_child(folder)
                _run_and_kill(process, folder, writes, delay_s, _MOST_ROWS[number % len(_MOST_ROWS)])
                moments.append((writes, delay_s))
                repeated |= _uncommitted(folder)
                _compare_plans(folder, plans, changed)
            say("last run, to the end")
            _run_to_end(waiting, folder, _rows_read(folder) + 2 * _MOST_ROWS[0], _MOST_ROWS[0])
        finally:
            _kill(waiting)
        _compare_plans(folder, plans, changed)
        say(f"the same {len(plans)} batches once more, undisturbed")
        counts = _compare_outputs(folder, plans)
    rows = [{"kill": index, "writes": n, "seconds": round(delay, 3)} for index, (n, delay) in enumerate(moments)]
    compared = {f"{name}_compared": counts[name] for name in _OUTPUTS}
    metrics = {
        "kills": kills,
        "lost": counts["lost"],
        "doubled": counts["doubled"],
        "wrong": counts["wrong"] + counts["wrongly_exact"],
        "plans_differ": len(changed),
        "batches": len(plans),
        "batches_repeated": len(repeated),
        "batches_that_shed": counts["shedding"],
        "batches_that_thin_estimates": counts["thinning"],
        "estimates_wrongly_exact": counts["wrongly_exact"],
        "rows_compared": sum(compared.values()),
        **compared,
    }
    checks = {
        "nothing is lost": counts["lost"] == 0,
        "nothing is doubled": counts["doubled"] == 0,
        "nothing is wrong": counts["wrong"] + counts["wrongly_exact"] == 0,
        "no plan differs": not changed,
        "no batch is missing": sorted(plans) == list(range(len(plans))),
        "windows, pairs and estimates are among what is compared": all(counts[name] > 0 for name in _OUTPUTS[2:]),
        "some batches shed": counts["shedding"] > 0,
        "some rows of estimates were shed": counts["thinning"] > 0,
        "some batches were repeated": len(repeated) > 0,
    }
    return Result("recovery", metrics, checks, rows, lambda figure: _draw(figure, moments))


def _start_child(folder: str) -> subprocess.Popen[str]:
    code = f"from jettison.experiments.lasting.recovery import child; child({folder!r})"
    log = (Path(folder) / "child.log").open("a")
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        env={**os.environ, "JAVA_TOOL_OPTIONS": _BRIEF},
        start_new_session=True,
    )


def _tell(process: subprocess.Popen[str], limit_rows: int, most_rows: int) -> None:
    assert process.stdin is not None
    process.stdin.write(f"{limit_rows} {most_rows}\n")
    process.stdin.flush()


def _run_and_kill(process: subprocess.Popen[str], folder: str, writes: int, delay_s: float, most_rows: int) -> None:
    try:
        _tell(process, 10**9, most_rows)
        _expect(process, "started", folder)
        for _ in range(writes):
            _expect(process, "writing", folder)
        time.sleep(delay_s)
    finally:
        _kill(process)


def _run_to_end(process: subprocess.Popen[str], folder: str, limit_rows: int, most_rows: int) -> None:
    _tell(process, limit_rows, most_rows)
    _expect(process, "finished", folder)
    process.wait(timeout=60)


def _kill(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _expect(process: subprocess.Popen[str], word: str, folder: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == word:
            return
    tail = (Path(folder) / "child.log").read_text()[-2000:]
    raise RuntimeError(f"the run ended before it said {word!r}:\n{tail}")


def _started_us(folder: str) -> int:
    return int((Path(folder) / "start_us").read_text())


def _ends(logged: Logged | None) -> list[int]:
    """Rows read up to the end of a batch, by source."""
    return [0] * len(_SOURCES) if logged is None else [int(json.loads(each)["rows"]) for each in logged.offsets]


def _rows_read(folder: str) -> int:
    plans = PlanLog(LocalFolder(Path(folder) / "checkpoint"))
    batches = plans.batches()
    return min(_ends(plans.read(batches[-1]))) if batches else 0


def _uncommitted(folder: str) -> set[int]:
    """Batches that were planned and not committed when the run was killed."""
    committed = LocalFolder(Path(folder) / "checkpoint" / "spark").names("commits")
    planned = PlanLog(LocalFolder(Path(folder) / "checkpoint")).batches()
    return set(planned[-10:]) - {int(name) for name in committed if name.isdigit()}


def _compare_plans(folder: str, known: dict[int, Logged], changed: set[int]) -> None:
    """Remember the plan of each batch; a plan that is not what it was has changed."""
    plans = PlanLog(LocalFolder(Path(folder) / "checkpoint"))
    for batch in plans.batches():
        logged = plans.read(batch)
        if logged is not None and known.setdefault(batch, logged) != logged:
            changed.add(batch)


def _compare_outputs(folder: str, plans: dict[int, Logged]) -> dict[str, int]:
    """Run every logged batch again into another folder and compare rows, as multisets; then look for wrong ones."""
    spark = local_session()
    graph = network().graph
    sinks = {name: ParquetSink(f"{folder}/again/{name}") for name in _OUTPUTS}

    def rows_of(first: int, end: int) -> Any:
        return generated(spark, TAXI, first, end, start_us=_started_us(folder), rate=_RATE, seed=_SEED)

    kept = check_compiles(spark, graph, dict.fromkeys(_SOURCES, rows_of(0, 1).limit(0)), {})
    state, path = LocalFolder(Path(folder) / "again" / "state"), f"{folder}/again/state"
    dead_letters = ParquetSink(f"{folder}/again/dead_letters")
    states = open_states(spark, graph, state, path, kept)
    runner = BatchRunner(spark, graph, {}, RunSinks.of(graph, sinks, dead_letters), states)
    shedding, thinning = 0, 0
    for batch, logged in sorted(plans.items()):
        read = dict(zip(_SOURCES, zip(_ends(plans.get(batch - 1)), _ends(logged), strict=True), strict=True))
        shedding += bool(logged.plan.drops)
        thinning += "rides" in logged.plan.drops
        raw = {name: rows_of(*each) for name, each in read.items()}
        runner.run(raw, batch, logged.plan, {name: end - first for name, (first, end) in read.items()})
    runner.close()
    counts = {"lost": 0, "doubled": 0, "wrong": 0, "wrongly_exact": 0, "shedding": shedding, "thinning": thinning}
    true = _truth(spark, rows_of(0, max(end for logged in plans.values() for end in _ends(logged))))
    for name in _OUTPUTS:
        counts[name] = 0
        if not Path(f"{folder}/again/{name}").exists():  # shed wholly
            if any(Path(f"{folder}/{name}").glob("batch=*/*.parquet")):
                counts["doubled"] += spark.read.parquet(f"{folder}/{name}").count()
            continue
        wanted = spark.read.parquet(f"{folder}/again/{name}")
        actual = spark.read.schema(wanted.schema).parquet(f"{folder}/{name}")
        one, other = _comparable(wanted).persist(), _comparable(actual).persist()
        counts["lost"] += one.exceptAll(other).count()
        counts["doubled"] += other.exceptAll(one).count()
        counts[name] = one.count()
        if name in true:
            known = true[name]
            delivered = actual.where("n_low = n_high AND cents_low = cents_high") if name == "estimates" else actual
            word = "wrongly_exact" if name == "estimates" else "wrong"
            counts[word] += delivered.select(*known.columns).exceptAll(known).count()
    return counts


def _comparable(rows: Any) -> Any:
    """Rows whose numbers do not depend on the order in which doubles are added."""
    kinds = dict(rows.dtypes)
    shown = [f"round({name}, 2) AS {name}" if kinds[name] == "double" else name for name in rows.columns]
    return rows.selectExpr(*shown)


def _truth(spark: Any, trips: Any) -> dict[str, Any]:
    """What may be delivered of windows and pairs, by Spark's own functions over all rows at once."""
    trips.where("fare > 0").createOrReplaceTempView("paid")
    windows = (
        "SELECT zone, w.start AS window_start, w.end AS window_end, count(*) AS n, sum({cents}) AS cents "
        "FROM (SELECT *, window(pickup, '2 seconds', '{slide}') AS w FROM paid) GROUP BY zone, w"
    )
    half = "unix_micros(pickup) div 500000"  # only rows of neighbouring half seconds are compared
    pairs = (
        "SELECT e.zone, e.trip, o.trip AS other, greatest(e.pickup, o.pickup) AS at "
        f"FROM (SELECT *, {half} AS half FROM paid) e "
        f"JOIN (SELECT *, explode(array({half} - 1, {half}, {half} + 1)) AS half FROM paid) o "
        "ON e.zone = o.zone AND e.half = o.half AND e.trip % 2 = 0 AND o.trip % 2 = 1 "
        "AND abs(unix_micros(e.pickup) - unix_micros(o.pickup)) <= 500000"
    )
    seconds = (
        f"SELECT w.start AS window_start, w.end AS window_end, count(*) AS n "
        f"FROM (SELECT *, window(at, '1 second') AS w FROM ({pairs})) GROUP BY w"
    )
    return {
        "zones": spark.sql(windows.format(cents=_CENTS, slide="1 second")),
        "estimates": spark.sql(windows.format(cents=_CENTS, slide="2 seconds")),
        "pairs": spark.sql(pairs).drop("at"),
        "seconds": spark.sql(seconds),
    }


def _draw(figure: Any, moments: list[tuple[int, float]]) -> None:
    axes = figure.subplots()
    axes.scatter([writes for writes, _ in moments], [delay for _, delay in moments])
    axes.set_xlabel("writes of outputs that had begun")
    axes.set_ylabel("seconds since")
    axes.set_title("When the run was killed; after each kill it was started again on the same checkpoint")
