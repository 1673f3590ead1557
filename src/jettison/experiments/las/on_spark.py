"""Load-aware shedding on Spark: Python work of different length by key, at twice the capacity.

Three ways to meet the overload: tuples are dropped by chance, by the seed's rule (in order of arrival, 99 in 100 within
tau), and by worth per cost. What is measured (LAS 3.1, 4):

work_error        how far estimated work is from measured work, once costs are known
p99_vs_tau        age of results (99th percentile, from event to written) over tau, under the seed's rule
kept_vs_chance    tuples kept by worth per cost over tuples kept by chance
cost_vs_chance    what a tuple that was kept costs, by its zone, likewise: it holds however busy the machine is
timing_overhead   a batch whose tuples are timed over the same one untimed, in turns, the median of the ratios
"""

from __future__ import annotations

import hashlib
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any

from jettison.experiments.harness import Result, Say
from jettison.experiments.support.timeline import draw, p99_ms, table
from jettison.experiments.support.waiting import batches, first_batch
from jettison.network.declare import Network
from jettison.network.operators import Map
from jettison.network.qos import QoS
from jettison.options.costs import Costs
from jettison.options.shedding import Shedding
from jettison.plan.drops.cost_bound import CostBound
from jettison.plan.drops.latency_rule import LatencyRule
from jettison.plan.plan import Plan
from jettison.plan.shedders.las import Las
from jettison.plan.shedders.registry import RANDOM
from jettison.spark.compile.expression_cache import ExpressionCache
from jettison.spark.maps.mapped_rows import MappedRows
from jettison.spark.read.generator import generate, generated
from jettison.spark.run.run import Run
from jettison.spark.run.session import local_session
from jettison.spark.run.start import start
from jettison.statistics.profile import Profile
from jettison.statistics.samples import BatchSample
from jettison.statistics.sketches.cost_learner import CostLearning
from jettison.synthetic.fields import TAXI
from jettison.synthetic.rates import Constant

_CORES = 2
_TRIGGER_S, _QUICK_TRIGGER_S = 1.0, 2.0
"""In the quick form the machine may be busy with others, and the fixed cost of a batch alone take a second."""
_TAU_TRIGGERS = 2.0
_HASH_BYTES = b"x" * 4096
_CHEAP_US, _MIDDLE_US, _DEAR_US = 300.0, 3000.0, 12000.0
_OVERLOAD = 2.0
_WARM_BATCHES = 4
_JUDGED_BATCHES = 4
"""At least so many more, however slow the machine is."""
_LEARN_S = 90.0
"""How long a machine may take to learn costs, before what was kept is judged without."""
History = Sequence[tuple[BatchSample, Plan]]


def zone_us(zone: int) -> float:
    """About what a trip of a zone takes: one zone in seven is dear, one in seven in between.

    >>> [zone_us(zone) for zone in (0, 3, 5)]
    [300.0, 12000.0, 3000.0]
    """
    return _DEAR_US if zone % 7 == 3 else _MIDDLE_US if zone % 7 == 5 else _CHEAP_US


class Score:
    """The function: as many rounds of hashing as the row's zone asks for. `us_per_round` is measured once."""

    def __init__(self, us_per_round: float) -> None:
        self._rounds = {kind: max(1, round(kind / us_per_round)) for kind in (_CHEAP_US, _MIDDLE_US, _DEAR_US)}

    def __call__(self, row: Mapping[str, Any]) -> tuple[str]:
        return (hashed(self._rounds[zone_us(row["zone"])]),)


def hashed(rounds: int) -> str:
    """The work itself."""
    made = hashlib.sha256()
    for _ in range(rounds):
        made.update(_HASH_BYTES)
    return made.hexdigest()


def network(score: Score, tau_s: float) -> Network:
    """Trips, the map, and an output that has a goal for latency."""
    net = Network("las")
    trips = net.source("trips", "trip long, pickup timestamp, zone int, fare double", event_time="pickup", id=["trip"])
    scored = trips.map(score, key="zone", schema="score string", name="score")
    scored.output("scored", qos=QoS(latency_goal=f"{tau_s:g} seconds"))
    return net


def run(*, quick: bool, say: Say) -> Result:
    """Measure all three ways."""
    spark = local_session(cores=_CORES)
    seconds, trigger_s = (12.0, _QUICK_TRIGGER_S) if quick else (40.0, _TRIGGER_S)
    tau_s = _TAU_TRIGGERS * trigger_s
    score = Score(_us_per_round())
    overhead = timing_overhead(spark, score, rows=400 if quick else 1500, turns=3 if quick else 9)
    say(f"timing overhead {overhead:.3f}")
    mean_us = _mean_us(spark, score)
    rate = _OVERLOAD * _CORES * 1e6 / mean_us
    say(f"a tuple takes {mean_us:.0f} us: {rate:.0f} tuples/s are {_OVERLOAD:g} times what {_CORES} cores do")
    learning = CostLearning(window=200 if quick else 1000, tolerance=0.2)
    shedders = {
        "by chance": RANDOM,
        "seed's rule": Las(check="p99", learning=learning),
        "worth per cost": Las(order="worth", least_keep=0.002 if quick else 0.02, learning=learning),
    }
    runs, kept_us = {}, {}
    for label, shedder in shedders.items():
        say(f"{label}, {seconds:.0f} s")
        counted = _Counted()
        runs[label] = _run(spark, score, shedder, rate, mean_us, (trigger_s, seconds), counted)
        kept_us[label] = counted.mean_us(_first_learned(runs[label].history))
    kept = {label: _kept_share(each.history[_WARM_BATCHES:]) for label, each in runs.items()}
    warm = {label: [sample for sample, _ in each.history[_WARM_BATCHES:]] for label, each in runs.items()}
    p99_vs_tau = p99_ms(warm["seed's rule"]) / (1000 * tau_s)
    work_error = _work_error(runs["seed's rule"].history)
    kept_vs_chance = kept["worth per cost"] / max(1e-9, kept["by chance"])
    tables = {label: table(each, label) for label, each in runs.items()}
    return Result(
        "las",
        {
            "work_error": round(work_error, 4),
            "p99_vs_tau": round(p99_vs_tau, 3),
            "kept_vs_chance": round(kept_vs_chance, 3),
            "timing_overhead": round(overhead, 4),
            "cost_vs_chance": round(kept_us["worth per cost"] / kept_us["by chance"], 3),
            **{f"kept {label}": round(share, 3) for label, share in kept.items()},
            "p99_s worth per cost": round(p99_ms(warm["worth per cost"]) / 1000, 3),
            "p99_s by chance": round(p99_ms(warm["by chance"]) / 1000, 3),
            "tuples_per_s": round(rate),
            "mean_us": round(mean_us),
        },
        {
            "estimated work is within .05 of measured work": work_error <= 0.05,
            "p99 age of results is at most 1.3 tau": p99_vs_tau <= 1.3,
            "worth per cost keeps at least 1.5 times as many tuples as chance": kept_vs_chance >= 1.5,
            "timing takes at most 3 %": overhead <= 1.03,
        },
        [row for rows in tables.values() for row in rows],
        lambda figure: draw(figure, tables, "twice the capacity, costs differ by key", 900 * trigger_s),
    )


def timing_overhead(spark: Any, score: Score, rows: int, turns: int) -> float:
    """The same rows with and without timing, in turns: the median of the ratios."""
    operator = next(each for each in network(score, 1.0).graph.operators if isinstance(each, Map))
    frame = (
        generated(spark, TAXI, 0, rows, seed=5, start_us=0)
        .selectExpr("*", "trip AS _jt_id", "pickup AS _jt_time")
        .persist()
    )
    frame.count()

    def once_s(*, timed: bool) -> float:
        maps = MappedRows(ExpressionCache(), Las().functions if timed else None)
        began = time.perf_counter()
        maps.rows(operator, frame, count=True).write.format("noop").mode("overwrite").save()
        return time.perf_counter() - began

    for timed in (True, False):
        once_s(timed=timed)
    pairs = [(once_s(timed=True), once_s(timed=False)) if turn % 2 else _swapped(once_s) for turn in range(turns)]
    frame.unpersist()
    return statistics.median(timed_s / untimed_s for timed_s, untimed_s in pairs)


def _swapped(once_s: Any) -> tuple[float, float]:
    untimed_s = once_s(timed=False)
    return once_s(timed=True), untimed_s


def _us_per_round() -> float:
    times = []
    for _ in range(5):
        began = time.perf_counter()
        hashed(500)
        times.append(time.perf_counter() - began)
    return 1e6 * min(times) / 500


def _mean_us(spark: Any, score: Score) -> float:
    """What a tuple takes on average, by the zones of a sample and as measured for each kind."""
    zones = [row["zone"] for row in generated(spark, TAXI, 0, 4000, seed=7, start_us=0).select("zone").collect()]
    took = {}
    for zone in (0, 3, 5):
        times = []
        for _ in range(7):
            began = time.perf_counter()
            score({"zone": zone})
            times.append(time.perf_counter() - began)
        took[zone_us(zone)] = 1e6 * statistics.median(times)
    return statistics.fmean(took[zone_us(zone)] for zone in zones)


def _run(
    spark: Any, score: Score, shedder: object, rate: float, mean_us: float, lasts_s: tuple[float, float], sink: _Counted
) -> Run:
    trigger_s, seconds = lasts_s
    profile = Profile({"trips": 1.0, "score": mean_us / _CORES, "scored": 1.0}, {}, fixed_ms=150.0)
    with tempfile.TemporaryDirectory(prefix="jettison-las-") as name:
        running = start(
            network(score, _TAU_TRIGGERS * trigger_s),
            {"trips": generate(spark, TAXI, rate=Constant(rate))},
            {"scored": sink},
            trigger=f"{trigger_s:g} seconds",
            shedding=Shedding(shedder=shedder, headroom=0.9),
            checkpoint=f"{name}/checkpoint",
            costs=Costs(profile),
        )
        first_batch(running)
        running.await_termination(timeout=seconds)
        batches(running, _WARM_BATCHES + _JUDGED_BATCHES)
        late = time.monotonic() + _LEARN_S
        while isinstance(shedder, Las) and not shedder.known("score").published and time.monotonic() < late:
            batches(running, len(running.history) + _JUDGED_BATCHES)
        running.stop()
    return running


class _Counted:
    """A sink that keeps nothing but how many rows came in warm batches, and what they cost by their zones."""

    def __init__(self) -> None:
        self._rows: dict[int, tuple[int, float]] = {}

    def __call__(self, frame: Any, batch: int) -> None:
        cost = f"CASE zone % 7 WHEN 3 THEN {_DEAR_US} WHEN 5 THEN {_MIDDLE_US} ELSE {_CHEAP_US} END"
        (counts,) = frame.selectExpr("count(*) AS rows", f"sum(double({cost})) AS us").collect()
        self._rows[batch] = (counts["rows"], counts["us"] or 0.0)

    def mean_us(self, since: int) -> float:
        """What a row cost, of batches from this one on."""
        warm = [counts for batch, counts in self._rows.items() if batch >= since]
        return sum(us for _, us in warm) / max(1, sum(rows for rows, _ in warm))


def _kept_share(history: History) -> float:
    """Of tuples that came, the share that came out."""
    came = sum(sum(sample.rows_in.values()) for sample, _ in history)
    return sum(sample.outputs["scored"].rows for sample, _ in history) / max(1, came)


def _first_learned(history: History) -> int:
    """The first batch that was shed by what had been learned; after warm ones where nothing is learned."""
    learned = (sample.batch for sample, plan in history for drop in plan.drops.values() if _sketch(drop) is not None)
    return next(learned, _WARM_BATCHES)


def _sketch(drop: object) -> str | None:
    return drop.sketch if isinstance(drop, CostBound) else None


def _work_error(history: History) -> float:
    """How far estimated work, scaled as the plan says, is from measured work, over all batches with published costs."""
    estimated_us = measured_us = 0.0
    for sample, plan in history:
        drop = next((each for each in plan.drops.values() if isinstance(each, CostBound)), None)
        timed = sample.timed.get("score")
        if drop is None or drop.sketch is None or timed is None or not timed.estimated_us:
            continue
        scale = drop.rule.scale if isinstance(drop.rule, LatencyRule) else 1.0
        estimated_us += scale * timed.estimated_us
        measured_us += timed.sketch.work_us
    return abs(estimated_us - measured_us) / measured_us if measured_us else 1.0
