"""What a batch's jobs told: rows by arc and output, latencies, values, and how far event times have got."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, Observation

from jettison.network.arc import Arc
from jettison.network.columns.schema import quoted
from jettison.network.graph import Graph
from jettison.network.operators import Apply, Output, Source
from jettison.network.windows.slice_groups import complete_after_us
from jettison.plan.plan import Plan
from jettison.spark.compile.compiler import Compiler
from jettison.spark.compile.drops import ALL, IDENTITY, TIME, passes
from jettison.spark.compile.observations import observed_if_at_all, observed_within
from jettison.spark.compile.observed_places import before_place, map_place, newest_place, tail_place
from jettison.spark.compile.raw_rows import dropped_raw, newest_metric
from jettison.spark.compile.value_samples import VALUES_MASK, value_metrics, value_sample, value_samples, valued_columns
from jettison.spark.maps.mapped_rows import reports_in
from jettison.spark.maps.timed_samples import timed_sample
from jettison.spark.write.batch_jobs import Written
from jettison.statistics.samples import LATENCY_QUANTILES, Measured, OutputSample, ValueSample
from jettison.statistics.timed import TimedSample

_SAMPLE_MASK = 63
_ACCURACY = 200


@dataclass
class _Found:
    """What was found so far."""

    arcs: dict[str, tuple[int, int]] = field(default_factory=dict)
    outputs: dict[str, OutputSample] = field(default_factory=dict)
    rejected: dict[str, int] = field(default_factory=dict)
    timeless: dict[str, int] = field(default_factory=dict)
    values: dict[str, ValueSample] = field(default_factory=dict)
    before: dict[str, ValueSample] = field(default_factory=dict)
    parts_ms: dict[str, float] = field(default_factory=dict)


def output_metrics(graph: Graph, output: Output, *, timed: bool, mask: int = VALUES_MASK) -> list[str]:
    """What is observed of an output's rows, in SQL: how many, their values, and event times in a sample of one row in
    64 with the exact ends."""
    columns = valued_columns(graph, output.name)
    looked_at = min(mask, VALUES_MASK)
    values = [item for number, name in enumerate(columns) for item in value_metrics(number, quoted(name), looked_at)]
    if not timed:
        return ["count(1) AS rows", *values]
    inner = ", ".join(f"{1 - share:.2f}" for share in LATENCY_QUANTILES[1:-1])
    sampled = f"CASE WHEN {IDENTITY} & {_SAMPLE_MASK} = 0 THEN unix_micros(CAST({TIME} AS timestamp)) END"
    return [
        "count(1) AS rows",
        f"unix_micros(CAST(min({TIME}) AS timestamp)) AS oldest",  # as a number: not every time is one in Python
        f"unix_micros(CAST(max({TIME}) AS timestamp)) AS newest",
        f"percentile_approx({sampled}, array({inner}), {_ACCURACY}) AS times",
        *values,
    ]


class Measuring:
    """Reads what was observed of one batch. Where Spark has nothing to tell, a job of its own counts again."""

    def __init__(
        self, graph: Graph, compiler: Compiler, raw: Mapping[str, DataFrame], plan: Plan, rows: Mapping[str, int]
    ) -> None:
        self._graph = graph
        self._compiler = compiler
        self._counted = compiler.counted
        self._raw = raw
        self._plan = plan
        self._rows = rows

    def newest_us(self) -> dict[str, int]:
        """How far event times have got, by operator whose rows come to windows or joins of streams, rows that were shed
        included."""
        found = {}
        for name in self._compiler.timed:
            seen = self._counts(newest_place(name) if name in self._counted.newest else name)
            if not seen and name in {*self._counted.newest, *self._counted.sources}:
                seen = self._newest_again(name)
            if seen.get("newest") is not None:
                found[name] = int(seen["newest"])
        return found

    def seen_us(self, newest_us: Mapping[str, int], in_slices_us: int | None) -> dict[str, int | None]:
        """How far event times have got at every source and function, whoever reads it: `newest_us`, or what slices tell
        of the only source, or else what its rows tell; None where not all rows were looked at."""
        read: dict[str, int] = {}
        for source in self._graph.sources:
            if source.name not in newest_us and source.event_time is not None:
                seen = in_slices_us if in_slices_us is not None else self._counts(source.name).get("newest")
                read |= {} if seen is None else {source.name: int(seen)}
        return seen_or_unknown(self._graph, self._plan, self._rows, self._compiler.timed, newest_us, read)

    def measured(self, finished: Mapping[str, Written], came: Mapping[str, int]) -> Measured:
        """What sources, arcs and outputs tell, once all outputs are written; `came` are rows by aggregate, where
        slices tell them."""
        found = _Found()
        for source in self._graph.sources:
            self._add_source(found, source)
        for arc in self._counted.arcs:
            seen = self._counts(arc) or self._arc_again(arc)
            found.arcs[arc] = (seen.get("rows", 0), seen.get("kept", 0))
            sample = value_sample(0, seen)
            if sample is not None:
                found.before[arc] = sample
        for output in self._graph.outputs:
            if output.name in finished:
                self._add_output(found, output, finished[output.name])
            else:
                found.outputs[output.name] = OutputSample(0)
        for name, rows in came.items():
            for arc in self._graph.arcs_into(name):
                if (condition := passes(arc, self._plan)) is not None:
                    before = rows if condition == ALL else self._rows_before(found, arc)
                    found.arcs[arc] = (max(rows, before), rows)
        return Measured(**vars(found))

    def maps(self, most_lanes: int) -> Measured:
        """What maps told: rows that they have rejected, which are put aside, and what tuples took."""
        unfit, timed = dict[str, int](), dict[str, TimedSample]()
        for name in self._counted.maps:
            seen = self._counts(map_place(name))
            reports = reports_in(seen)
            if seen.get("unfit"):
                # a partition that was computed twice is counted once here
                unfit[name] = sum(each.unfit for each in reports)
                self._compiler.guard.rejecting[f"{name} (function)"] = self._compiler.maps.rejecting(name, reports)
            (arc,) = self._graph.arcs_into(name)
            sample = timed_sample(reports, most_lanes, self._plan.drops.get(arc), self._counts(arc))
            timed |= {} if sample is None else {name: sample}
        return Measured(unfit=unfit, timed=timed)

    def _add_source(self, found: _Found, source: Source) -> None:
        name = source.name
        seen = self._counts(name)
        whole = name not in self._plan.arcs
        kept = self._rows[name] if whole else seen.get("kept", 0)
        if not whole and name in self._counted.sources and not seen:
            # the sink did not look at its rows, or no row passed
            again = self._counted.again.get(name)
            kept = self._dropped_raw(source).count() if again is None else again
        # a partition that is computed twice (a lost executor) is counted twice
        found.arcs[name] = (self._rows[name], min(kept, self._rows[name]))
        found.rejected[name] = seen.get("rejected", 0)
        found.timeless[name] = seen.get("timeless", 0)
        found.values |= value_samples(self._graph, name, seen)
        if name in self._counted.before:
            looked = value_sample(0, self._counts(before_place(name)) or self._before_again(source))
            if looked is not None:
                found.before[name] = looked

    def _add_output(self, found: _Found, output: Output, written: Written) -> None:
        seen = observed_if_at_all(written.observation)
        complete_s = complete_after_us(self._graph, output.name) / 1e6
        latency = _latency_ms(seen, written.ended_s - complete_s) if written.timed and seen else None
        found.outputs[output.name] = OutputSample(seen.get("rows", 0), latency)
        found.values |= value_samples(self._graph, output.name, seen)
        for arc in self._graph.arcs_into(output.name):
            if passes(arc, self._plan) == ALL:
                found.arcs[arc] = (seen.get("rows", 0), seen.get("rows", 0))
        found.parts_ms[output.name] = written.took_ms

    def _counts(self, place: str) -> dict[str, Any]:
        """What was counted at a source or an arc."""
        observation = self._counted.by_place().get(place)
        if observation is None:
            return {}
        persisted = self._counted.within.get(place)
        return observed_if_at_all(observation) if persisted is None else observed_within(observation, persisted)

    def _rows_before(self, found: _Found, arc: str) -> int:
        """The rows that came to a drop before slices."""
        tail = Arc(arc).origin
        if tail in found.rejected:
            return found.arcs[tail][1] - found.rejected[tail]
        seen = self._counts(tail_place(tail))
        return int(seen["rows"]) if seen else self._compiler.operator(tail).count()

    def _newest_again(self, name: str) -> dict[str, Any]:
        """How far times have got where no row passed, and what was observed of them was cut off with them."""
        if name not in self._raw:
            row = self._compiler.operator(name).selectExpr(newest_metric(TIME)).first()
            return {} if row is None else row.asDict()
        newest = Observation()
        source = next(each for each in self._graph.sources if each.name == name)
        self._counted.again[name] = self._dropped_raw(source, newest).count()
        return observed_if_at_all(newest)

    def _arc_again(self, arc: str) -> dict[str, Any]:
        """What reached an arc and passed its drop, where the sink below did not look at its rows."""
        row = self._compiler.before_drop(arc).selectExpr(*self._compiler.arc_metrics(arc)).first()
        return {} if row is None else row.asDict()

    def _before_again(self, source: Source) -> dict[str, Any]:
        """The values before a drop, where no row passed and Spark cut off what was observed before it."""
        before = Observation()
        self._dropped_raw(source, before=before).count()
        return observed_if_at_all(before)

    def _dropped_raw(
        self, source: Source, newest: Observation | None = None, before: Observation | None = None
    ) -> DataFrame:
        raw, mask = self._raw[source.name], self._compiler.mask
        known = self._compiler.known
        return dropped_raw(source, raw, raw.columns, self._plan, known, newest=newest, before=before, mask=mask)


def seen_or_unknown(
    graph: Graph,
    plan: Plan,
    rows: Mapping[str, int],
    timed: Collection[str],
    newest_us: Mapping[str, int],
    read_us: Mapping[str, int],
) -> dict[str, int | None]:
    """How far event times have got by source and function: None where rows were shed before anybody looked at them.

    `newest_us` is of the places in `timed`, where shed rows are looked at too; `read_us` is of rows that were kept.
    """
    found: dict[str, int | None] = dict(newest_us)
    for operator in graph.operators:
        name, above = operator.name, [source.name for source in graph.sources_above(operator.name)]
        place = isinstance(operator, Apply) or (isinstance(operator, Source) and operator.event_time is not None)
        if not place or name in found or not any(rows.get(each, 0) for each in above):
            continue
        if name in read_us and name not in plan.arcs:
            found[name] = read_us[name]
        elif name not in timed:
            found[name] = None
    return found


def _latency_ms(seen: Mapping[str, Any], ended_s: float) -> tuple[float, ...] | None:
    if seen.get("oldest") is None:
        return None
    oldest_s, newest_s = seen["oldest"] / 1e6, seen["newest"] / 1e6
    times = seen.get("times")
    if times is None:
        inner = [newest_s - share * (newest_s - oldest_s) for share in LATENCY_QUANTILES[1:-1]]
    else:
        inner = [micros / 1e6 for micros in times]
    return tuple(max(0.0, 1000 * (ended_s - moment)) for moment in (newest_s, *inner, oldest_s))
