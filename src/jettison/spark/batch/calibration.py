"""Costs by calibration: run prefixes of the network on a sample, and look at the processor time of their tasks.

The sample is some rows of a batch, read once. Prefixes begin at copies of dear operators' rows (`network_sample`), and
run in turns while there is time: the least processor time of each counts, for a young JVM gets faster from run to run.
What copies cost and save also decides which splits share their rows.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame

from jettison.network.columns.schema import quoted
from jettison.network.graph import Graph
from jettison.network.operators import Aggregate, CountAggregate, Operator, Output, Select, Source, WithColumns
from jettison.network.windows.slice_groups import slice_groups
from jettison.plan.refine.staleness import stale_limits
from jettison.spark.batch.network_sample import SAMPLE_ROWS, NetworkSample
from jettison.spark.batch.processor_time import Meter
from jettison.spark.compile.expression_cache import ExpressionCache
from jettison.spark.compile.raw_rows import look_at
from jettison.spark.compile.value_samples import value_metrics, value_samples, valued_columns
from jettison.statistics.operator_costs import PrefixWork, operator_costs, work_above_ms
from jettison.statistics.profile import Profile
from jettison.statistics.shared_rows import Copy, choose_shared, computed_times, slices_made_by, splits

LEAST_ROWS = 5_000
WORK_S = 2.0
"""After so long no prefix is run again. With what comes after, calibration stays within three seconds."""
_MIN_MEASURED_ROWS = 500
_LEAST_COST_US = 0.02
_DROP_US = 0.02
_SINK_US = 0.5
_JOB_MS = 60.0
_LEAST_VALUES = 100
_TRIGGER_MS = 60.0


@dataclass(frozen=True)
class Calibration:
    """What was found: costs and selectivities, and the splits whose rows are worth keeping; how long that took beside
    the stream, and the processor time of its tasks."""

    profile: Profile
    shared: frozenset[str]
    took_s: float = 0.0
    cpu_s: float = 0.0


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
    meter: Meter | None = None,
    most_rows: int = SAMPLE_ROWS,
) -> Calibration:
    """Measure the network on a batch of at least `LEAST_ROWS` rows, or on a sample of at most so many of a source."""
    own = ExpressionCache() if known is None else ExpressionCache(careful=known.careful, set_aside=known.set_aside)
    meter = meter or Meter(next(iter(raw.values())).sparkSession.sparkContext)
    began = time.monotonic()
    sample = NetworkSample(graph, raw, rows, tables, own, meter, most_rows)
    try:
        sample.read()
        sample.measure(began + WORK_S)
        found = _Findings(graph, sample, meter).calibration()
        return replace(found, took_s=time.monotonic() - began, cpu_s=meter.cpu_ms / 1000)
    finally:
        sample.close()


class _Findings:
    """What the runs of a sample say."""

    def __init__(self, graph: Graph, sample: NetworkSample, meter: Meter) -> None:
        self._graph = graph
        self._rows = sample.batch_rows
        self._sample = sample
        self._meter = meter
        self._flow = self._flows()
        self._entering = {
            each.name: sum(self._flow[tail] for tail in each.inputs) if each.inputs else sample.raw_rows[each.name]
            for each in graph.operators
        }

    def calibration(self) -> Calibration:
        graph, sample = self._graph, self._sample
        work = PrefixWork(sample.prefix_ms, sample.copy_ms, sample.read_ms, slices_made_by(graph))
        work_us = operator_costs(graph, work, self._entering)
        shared = choose_shared(graph, self._copies(work_us))
        times, side_by_side = computed_times(graph, shared), self._side_by_side()
        cost_us = {each.name: _SINK_US for each in graph.operators}
        for name, cost in work_us.items():
            if self._entering[name] >= _MIN_MEASURED_ROWS:
                cost_us[name] = max(_LEAST_COST_US, cost * times[name] / side_by_side)
            else:
                cost_us[name] = _LEAST_COST_US
        profile = Profile(
            cost_us,
            self._passes(),
            _TRIGGER_MS + max(_JOB_MS, sample.job_ms) * _jobs(graph),
            self._read_us(times),
            drop_us=_DROP_US,
            look_us={name: min(look, cost_us[name]) for name, look in self._look_us(times).items()},
            values=self._values(),
        )
        return Calibration(profile, shared)

    def _flows(self) -> dict[str, float]:
        """Rows behind each operator, as many as come in the long run."""
        flow: dict[str, float] = {}
        counted = self._sample.rows
        for operator in self._graph.operators:
            entering = sum(flow[tail] for tail in operator.inputs)
            flow[operator.name] = counted.get(operator.name, entering)
            if isinstance(operator, Aggregate) and operator.name in counted:
                flow[operator.name] *= self._steady_share(operator, counted)
            if isinstance(operator, CountAggregate):  # in a sample most groups have too few rows for a window
                flow[operator.name] = entering / operator.window.slide_rows
        return flow

    def _steady_share(self, aggregate: Aggregate, counted: Mapping[str, float]) -> float:
        """Of the windows that a sample's rows are in, the share that as many rows close in the long run.

        Rows of T seconds are in windows of T + size, and T is what the watermark goes on. Where the sample has all
        groups, as many come out when all rows are read.
        """
        tail = aggregate.inputs[0]
        span_us = self._sample.spans_us.get(tail, 0)
        whole_us = span_us + aggregate.window.size_us
        groups = counted[aggregate.name] * aggregate.window.slide_us / whole_us
        read_share = sum(self._sample.raw_rows.values()) / max(1, sum(self._rows.values()))
        return span_us / whole_us * (read_share if groups <= counted.get(tail, 0.0) / 2 else 1.0)

    def _passes(self) -> dict[str, float]:
        # what no row of the sample passed may still pass one in many: never call it impossible
        return {
            name: max(self._flow[name], 0.5) / entering if entering else 1.0
            for name, entering in self._entering.items()
            if not isinstance(self._graph.by_name[name], Output)
        }

    def _side_by_side(self) -> float:
        """How many tasks of a batch run at once: costs are time of a batch, and were measured as work."""
        cores = self._meter.cores
        tasks = max((work.tasks for work in self._sample.reading.values()), default=cores)
        return float(max(1, min(cores, tasks * len(self._graph.outputs))))

    def _read_us(self, times: Mapping[str, int]) -> dict[str, float]:
        """What reading a row costs. Sources travel as one stream: who reads one of them reads all rows."""
        all_rows, sources = sum(self._rows.values()), self._graph.sources
        if all_rows < _MIN_MEASURED_ROWS:
            return {source.name: _SINK_US for source in sources}
        jobs = sum(times[source.name] for source in sources)
        found = {}
        for source in sources:
            once_us = 1000 * self._sample.reading[source.name].busy_ms / all_rows / self._side_by_side()
            found[source.name] = max(_LEAST_COST_US, once_us) * (jobs if len(sources) > 1 else times[source.name])
        return found

    def _copies(self, work_us: Mapping[str, float]) -> dict[str, Copy]:
        """What copies of splits cost and save, on the sample."""
        sample = self._sample
        found: dict[str, Copy] = {}
        share = sum(sample.raw_rows.values()) / max(1, sum(self._rows.values()))
        reading_ms = share * sum(work.busy_ms for work in sample.reading.values())
        for name in splits(self._graph):
            if name not in sample.copy_ms or name not in sample.prefix_ms:
                continue
            again_ms = work_above_ms(self._graph, work_us, self._entering, name) + reading_ms
            found[name] = Copy(again_ms, sample.storing_ms(name), sample.copy_ms[name])
        return found

    def _look_us(self, times: Mapping[str, int]) -> dict[str, float]:
        """What it costs to parse the value that a drop judges by, alone, before the drop. Of what cannot be parsed
        alone the whole record is: that is no more than it costs anyway."""
        found = {}
        for source in self._graph.sources:
            frame, count = self._sample.frames[source.name], self._sample.raw_rows[source.name]
            columns = _looked_at(self._graph, source)
            inside = [column for column in columns if column not in frame.columns]
            if columns:
                found[source.name] = 0.0
            if not inside or source.payload != "json" or count < _MIN_MEASURED_ROWS:
                continue
            looked = frame.where(" AND ".join(f"xxhash64({look_at(source, column)}) <> 0" for column in inside))
            ms = min(self._sample.run(looked).cpu_ms for _ in range(2)) - self._sample.read_ms[source.name]
            found[source.name] = max(0.0, 1000 * ms / count) * times[source.name] / self._side_by_side()
        return found

    def _values(self) -> dict[str, Sequence[float]]:
        """How the values that outputs are valued by are spread behind operators."""
        found: dict[str, Sequence[float]] = {}
        for operator in self._graph.operators:
            counted = operator.name in self._sample.rows
            if isinstance(operator, Output) or _as_before(self._graph, operator) or not counted:
                continue
            columns = valued_columns(self._graph, operator.name)
            if not columns or self._sample.late:  # batches tell values, too
                continue
            metrics = [item for number, name in enumerate(columns) for item in value_metrics(number, quoted(name))]
            frame = self._sample.compiler.operator(operator.name)
            row, _ = self._meter.run(frame.selectExpr(*metrics).first)
            found |= _spread(self._graph, operator.name, {} if row is None else row.asDict())
        return found


def _as_before(graph: Graph, operator: Operator) -> bool:
    """Whether values are spread behind an operator as before it: it passes all rows, and makes none of them."""
    if not isinstance(operator, Select | WithColumns):
        return False
    tracks = [track for track in graph.tracks.all if operator.name in track.columns]
    return all(tail in track.columns for track in tracks for tail in operator.inputs)


def _spread(graph: Graph, operator: str, row: Mapping[str, Any]) -> dict[str, Sequence[float]]:
    """The shares of the cells of values behind an operator."""
    samples = value_samples(graph, operator, row)
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


def _jobs(graph: Graph) -> int:
    """Jobs of a batch: one per output, for every join of streams the two that write what waits, and one for slices."""
    sliced = len(slice_groups(graph)) + len(graph.count_aggregates)
    return len(graph.outputs) + 2 * len(graph.stream_joins) + sliced
