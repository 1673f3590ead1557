"""Costs by calibration: run prefixes of the network on a sample and look at the differences.

The first batch of some size is the sample. Each operator's cost is the time of the prefix that ends with it less that
of the prefixes before it. What one persisted copy costs and saves is measured in the same way, and decides which splits
share their rows.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from jettison.network.columns.schema import quoted
from jettison.network.graph import Graph
from jettison.network.operators import Aggregate, CountAggregate, Operator, Output, Select, Source, WithColumns
from jettison.network.windows.slice_groups import readers_below, slice_groups
from jettison.plan.plan import Plan
from jettison.plan.refine.staleness import stale_limits
from jettison.spark.compile.compiler import Compiler
from jettison.spark.compile.drops import TIME
from jettison.spark.compile.expression_cache import ExpressionCache
from jettison.spark.compile.raw_rows import look_at
from jettison.spark.compile.value_samples import value_metrics, value_samples, valued_columns
from jettison.statistics.profile import Profile

SAMPLE_ROWS = 20_000
LEAST_ROWS = 5_000
_TELLING_ROWS = 500
_RUNS = 3
_TURNS = 4
_LONG_MS = 200.0
_NOISE_SHARE = 0.1
_NOISE_MS = 20.0
_LEAST_COST_US = 0.02
_DROP_US = 0.02
_SINK_US = 0.5
_JOB_MS = 60.0
_LEAST_VALUES = 100
_TRIGGER_MS = 60.0


@dataclass(frozen=True)
class Calibration:
    """What was found: costs and selectivities, and the splits whose rows are worth keeping."""

    profile: Profile
    shared: frozenset[str]


def assumed_profile(graph: Graph) -> Profile:
    """A first guess before anything was measured: half a microsecond everywhere."""
    return Profile(
        cost_us={operator.name: _SINK_US for operator in graph.operators},
        selectivity={},
        fixed_ms=_TRIGGER_MS + _JOB_MS * _jobs(graph),
        read_us={source.name: 0.5 for source in graph.sources},
        drop_us=_DROP_US,
    ).completed(graph)


def calibrate(
    graph: Graph,
    raw: Mapping[str, DataFrame],
    rows: Mapping[str, int],
    tables: Mapping[str, DataFrame],
    known: ExpressionCache | None = None,
) -> Calibration:
    """Measure the network on a batch of at least `LEAST_ROWS` rows; a large one is read once and sampled."""
    sample = {name: _sampled(frame, rows[name]).persist() for name, frame in raw.items()}
    try:
        own = ExpressionCache() if known is None else ExpressionCache(careful=known.careful, set_aside=known.set_aside)
        return _calibrated(graph, raw, sample, rows, tables, own)
    finally:
        for frame in sample.values():
            frame.unpersist()


def _calibrated(
    graph: Graph,
    raw: Mapping[str, DataFrame],
    sample: Mapping[str, DataFrame],
    rows: Mapping[str, int],
    tables: Mapping[str, DataFrame],
    known: ExpressionCache,
) -> Calibration:
    empty_ms, source_ms, counts, read_us = _reading(raw, sample, rows)
    compiler = Compiler(graph, sample, Plan(), tables, known)
    times_ms: dict[str, float] = {}
    flow: dict[str, float] = {}
    cost_us: dict[str, float] = {}
    passes: dict[str, float] = {}
    values: dict[str, Sequence[float]] = {}
    together = _together(graph)
    for operator in graph.operators:
        if isinstance(operator, Output):
            cost_us[operator.name] = _SINK_US
            continue
        frame = compiler.operator(operator.name)
        times_ms[operator.name], flow[operator.name] = _time_ms(frame)
        if not _as_before(graph, operator):
            values |= _spread(graph, operator.name, frame)
        if isinstance(operator, Aggregate):
            read = sum(counts.values()) / max(1, sum(rows.values()))
            flow[operator.name] *= _steady_share(operator, compiler, flow, read)
        if isinstance(operator, CountAggregate):  # in a sample most groups have too few rows for a window
            flow[operator.name] = flow[operator.inputs[0]] / operator.window.slide_rows
        if operator.inputs:
            entering = sum(flow[tail] for tail in operator.inputs)
            before_ms = sum(times_ms[tail] for tail in operator.inputs) - empty_ms * (len(operator.inputs) - 1)
        else:
            entering, before_ms = counts[operator.name], source_ms[operator.name]
        if together.get(operator.name, operator.name) != operator.name:
            before_ms = times_ms[together[operator.name]]  # what they share is made once
        extra_ms = times_ms[operator.name] - before_ms
        with_groups_apart = entering >= _TELLING_ROWS and extra_ms > max(_NOISE_MS, _NOISE_SHARE * before_ms)
        cost_us[operator.name] = max(_LEAST_COST_US, 1000 * extra_ms / max(1.0, entering) if with_groups_apart else 0.0)
        # what no row of the sample passed may still pass one in many: never call it impossible
        passes[operator.name] = max(flow[operator.name], 0.5) / entering if entering else 1.0
    all_reading_ms = sum(read_us[source.name] * counts[source.name] / 1000 for source in graph.sources)
    shared = _choose_shared(graph, compiler, times_ms, all_reading_ms)
    fixed_ms = _TRIGGER_MS + max(_JOB_MS, empty_ms) * _jobs(graph)
    look_us = {
        # one value of a record is no more than the record
        source.name: min(_look_us(source, sample[source.name], columns), cost_us[source.name])
        for source in graph.sources
        if (columns := _looked_at(graph, source))
    }
    cost_us, read_us, look_us = _repeated(graph, shared, cost_us, read_us, look_us)
    profile = Profile(cost_us, passes, fixed_ms, read_us, drop_us=_DROP_US, look_us=look_us, values=values)
    return Calibration(profile, shared)


def _reading(
    raw: Mapping[str, DataFrame], sample: Mapping[str, DataFrame], rows: Mapping[str, int]
) -> tuple[float, dict[str, float], dict[str, float], dict[str, float]]:
    """What a job of no rows takes; by source, what reading its sample takes and gives, and what reading a row costs."""
    _once_ms(next(iter(sample.values())))
    empty_ms, _ = _time_ms(next(iter(sample.values())).limit(0))
    source_ms, counts = {}, {}
    read_us: dict[str, float] = {}
    for name, frame in sample.items():
        source_ms[name], counts[name] = _time_ms(frame)
        # the first read of a run also loads classes, compiles and starts workers, for seconds: never take it alone
        reading_ms = max(0.0, _time_ms(raw[name])[0] - empty_ms)
        # sources travel as one stream: who reads one of them reads all rows
        all_rows = sum(rows.values())
        telling = all_rows >= _TELLING_ROWS
        read_us[name] = max(_LEAST_COST_US, 1000 * reading_ms / all_rows) if telling else _SINK_US
    return empty_ms, source_ms, counts, read_us


def _as_before(graph: Graph, operator: Operator) -> bool:
    """Whether values are spread behind an operator as before it: it passes all rows, and makes none of them."""
    if not isinstance(operator, Select | WithColumns):
        return False
    tracks = [track for track in graph.tracks.all if operator.name in track.columns]
    return all(tail in track.columns for track in tracks for tail in operator.inputs)


def _spread(graph: Graph, operator: str, frame: DataFrame) -> dict[str, Sequence[float]]:
    """How the values that outputs are valued by are spread behind an operator."""
    columns = valued_columns(graph, operator)
    if not columns:
        return {}
    metrics = [item for number, name in enumerate(columns) for item in value_metrics(number, quoted(name))]
    row = frame.selectExpr(*metrics).first()
    samples = value_samples(graph, operator, {} if row is None else row.asDict())
    found: dict[str, Sequence[float]] = {}
    for track in graph.tracks.all:
        place = f"{operator}.{track.columns.get(operator)}"
        if place in samples and samples[place].rows >= _LEAST_VALUES:
            sample = samples[place]
            counts = track.count(sample.points) * (sample.rows - sample.others) / max(1, len(sample.points))
            counts[-1] += sample.others
            found[place] = [float(share) for share in counts / counts.sum()]
    return found


def _looked_at(graph: Graph, source: Source) -> Sequence[str]:
    """What a drop at a source has to find in the payload: the values that outputs are valued by, or what tells how
    stale a row is; the one is about as dear as the other."""
    if source.payload is None:
        return ()
    timed = [source.event_time] if source.event_time is not None and source.name in stale_limits(graph) else []
    return valued_columns(graph, source.name) or timed


def _look_us(source: Source, rows: DataFrame, columns: Sequence[str]) -> float:
    """What it costs to parse the value that a drop judges by, alone, before the drop. Of what cannot be parsed alone
    the whole record is: that is no more than it costs anyway.

    Runs with and without it take turns, for a young JVM gets faster from run to run.
    """
    inside = [column for column in columns if column not in rows.columns]
    if not inside or source.payload != "json":
        return 0.0
    looked = rows.where(" AND ".join(f"xxhash64({look_at(source, column)}) <> 0" for column in inside))
    turns = [(_once_ms(looked)[0], *_once_ms(rows)) for _ in range(_TURNS)]
    count = turns[0][2]
    extra_ms = min(with_it for with_it, _, _ in turns) - min(without for _, without, _ in turns)
    return max(0.0, 1000 * extra_ms / count) if count >= _TELLING_ROWS else 0.0


def _jobs(graph: Graph) -> int:
    """Jobs of a batch: one per output, for every join of streams the two that write what waits, and one for slices."""
    sliced = len(slice_groups(graph)) + len(graph.count_aggregates)
    return len(graph.outputs) + 2 * len(graph.stream_joins) + sliced


def _steady_share(aggregate: Aggregate, compiler: Compiler, flow: Mapping[str, float], read_share: float) -> float:
    """Of the windows that a sample's rows are in, the share that as many rows close in the long run.

    Rows of T seconds are in windows of T + size, and T is what the watermark goes on. Where the sample has all groups,
    as many come out when all rows are read.
    """
    row = (
        compiler.operator(aggregate.inputs[0])
        .selectExpr(f"timestampdiff(MICROSECOND, min({TIME}), max({TIME}))")
        .first()
    )
    span_us = 0 if row is None or row[0] is None else int(row[0])
    whole_us = span_us + aggregate.window.size_us
    groups = flow[aggregate.name] * aggregate.window.slide_us / whole_us
    return span_us / whole_us * (read_share if groups <= flow[aggregate.inputs[0]] / 2 else 1.0)


def _choose_shared(
    graph: Graph, compiler: Compiler, times_ms: Mapping[str, float], reading_ms: float
) -> frozenset[str]:
    """Splits for which one persisted copy is faster than reading and computing the prefix once per output."""
    chosen: set[str] = set()
    for operator in graph.operators:
        uses = len(readers_below(graph, operator.name))
        above = any(operator.name in _below(graph, other) for other in chosen)
        if len(graph.consumers[operator.name]) < 2 or uses < 2 or above:
            continue
        again_ms = times_ms[operator.name] + reading_ms
        kept = compiler.narrowed(operator.name, compiler.operator(operator.name)).persist()
        try:
            first_ms = _once_ms(kept)[0] + reading_ms
            cached_ms = min(_once_ms(kept)[0] for _ in range(2))
        finally:
            kept.unpersist()
        if first_ms + (uses - 1) * cached_ms < uses * again_ms:
            chosen.add(operator.name)
    return frozenset(chosen)


def _repeated(
    graph: Graph,
    shared: frozenset[str],
    cost_us: Mapping[str, float],
    read_us: Mapping[str, float],
    look_us: Mapping[str, float],
) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
    """Costs with the repetition that is left: what is not shared is computed once per output or aggregate below it."""
    together = _together(graph)

    def times(name: str) -> int:
        if name in shared or isinstance(graph.by_name[name], Output | Aggregate | CountAggregate):
            return 1
        return max(1, sum(times(head) for head in dict.fromkeys(together.get(h, h) for h in graph.consumers[name])))

    costs = {name: cost * times(name) for name, cost in cost_us.items()}
    jobs = sum(times(source.name) for source in graph.sources)
    reads = {name: cost * (jobs if len(graph.sources) > 1 else times(name)) for name, cost in read_us.items()}
    looks = {name: cost * times(name) for name, cost in look_us.items()}
    return costs, reads, looks


def _together(graph: Graph) -> dict[str, str]:
    """By aggregate, the first of those that share its slices."""
    return {member.name: group.name for group in slice_groups(graph) for member in group.members}


def _below(graph: Graph, name: str) -> set[str]:
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for head in graph.consumers[waiting.pop()]:
            if head not in found:
                found.add(head)
                waiting.append(head)
    return found


def _sampled(frame: DataFrame, rows: int) -> DataFrame:
    if rows <= SAMPLE_ROWS:
        return frame
    return frame.sample(fraction=SAMPLE_ROWS / rows, seed=1)


def _time_ms(frame: DataFrame) -> tuple[float, float]:
    """The best of a few runs (fewer when they are long), and the rows that came out."""
    runs = [_once_ms(frame)]
    while len(runs) < _RUNS and (len(runs) < 2 or runs[-1][0] < _LONG_MS):
        runs.append(_once_ms(frame))
    return min(elapsed for elapsed, _ in runs), runs[0][1]


def _once_ms(frame: DataFrame) -> tuple[float, float]:
    observation = Observation()
    observed = frame.observe(observation, F.count(F.lit(1)).alias("rows"))
    started = time.perf_counter()
    observed.write.format("noop").mode("overwrite").save()
    return 1000 * (time.perf_counter() - started), float(observation.get["rows"])
