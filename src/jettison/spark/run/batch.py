"""One batch: build its frames, run one job per output side by side, and put aside what is not delivered."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from typing import Any, TypeVar

from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from jettison.errors import SinkError
from jettison.network.event_time.lookahead import Sight
from jettison.network.graph import Graph
from jettison.network.operators import Aggregate, CountAggregate, Output, Source, StreamJoin
from jettison.network.windows.slice_groups import readers_below
from jettison.plan.delivered import windows_of_batch, without_withheld
from jettison.plan.plan import Plan
from jettison.plan.reasons import reason_on
from jettison.plan.refine.thinning import shares_above
from jettison.plan.refine.window_lookahead import for_batch
from jettison.plan.windows.window_arcs import WindowArcs
from jettison.spark.compile.compiler import Compiler
from jettison.spark.compile.drops import ALL, HIDDEN, TIME, passes
from jettison.spark.compile.expression_cache import Known
from jettison.spark.compile.raw_rows import dropped_raw, is_parsed
from jettison.spark.compile.value_samples import sample_mask, valued_columns
from jettison.spark.error_text import failed_at, reason_of
from jettison.spark.guard.care_period import CarePeriod
from jettison.spark.guard.careful import Rejecting, unfit_rows, with_care
from jettison.spark.guard.isolate import is_of_rows
from jettison.spark.run.job_descriptions import part
from jettison.spark.run.measure import Measured, Measuring, Written, output_metrics
from jettison.spark.state.count_state import CountState
from jettison.spark.state.join_progress import Seen
from jettison.spark.state.join_state import JoinState
from jettison.spark.state.presence import Presence
from jettison.spark.state.slice_state import SliceState
from jettison.spark.write.dead_letters import ShedSinks, put_aside, raw_aside, rows_aside
from jettison.spark.write.empty_results import EmptyResults
from jettison.spark.write.sinks import Sink, sink_place

_LOG = logging.getLogger("jettison")

T = TypeVar("T")


class BatchRunner:
    """Runs batches of one network. `shared` names the operators whose rows are persisted for several outputs."""

    def __init__(
        self,
        spark: SparkSession,
        graph: Graph,
        sinks: Mapping[str, Sink],
        tables: Mapping[str, DataFrame],
        dead_letters: Sink,
        on_shed: ShedSinks | None = None,
        joins: JoinState | None = None,
        slices: SliceState | None = None,
        counts: CountState | None = None,
        presence: Presence | None = None,
    ) -> None:
        self._spark = spark
        self._graph = graph
        self._sinks = sinks
        self._tables = tables
        self._dead_letters = dead_letters
        self._on_shed = on_shed or ShedSinks(graph, {})
        self._joins = joins
        self._slices = slices
        self._counts = counts
        self._presence = presence
        self._window_arcs = WindowArcs(graph)
        self._sight = Sight()
        self._estimated = [each for each in graph.aggregates if each.estimated]
        self.shared: frozenset[str] = frozenset()
        self.known = Known()
        self._care = CarePeriod()
        self.empty: EmptyResults | None = None
        self._compiler: Compiler | None = None  # of the last attempt at a batch
        self._batch: int | None = None
        jobs = len(graph.outputs) + len(self._on_shed.sinks)
        self._pool = ThreadPoolExecutor(max(1, min(4, jobs)), thread_name_prefix="jettison-output")

    @property
    def sinks(self) -> Mapping[str, Sink]:
        """The sinks of outputs."""
        return self._sinks

    @property
    def kept_sources(self) -> frozenset[str]:
        """Sources of which what is shed at the input is kept by some sink."""
        names = [source.name for source in self._graph.sources]
        return frozenset(name for name in names if self._on_shed.of([name]))

    def close(self) -> None:
        self._pool.shutdown(wait=False)
        if self._joins is not None:
            self._joins.close()
        for state in (self._slices, self._counts):
            if state is not None:
                state.close()

    def run(self, raw: Mapping[str, DataFrame], batch: int, plan: Plan, rows: Mapping[str, int]) -> Measured:
        """Write every output of a batch; rows on which expressions fail are rejected."""
        self.begin(batch)
        measured = self.carefully(raw, lambda: self._run(raw, batch, plan, rows))
        if any(rows.values()):
            rejected = sum(measured.unfit.values())
            self.known.careful = self._care.goes_on(careful=self.known.careful, rejected=rejected)
        if self.empty is not None:
            self.empty.write(batch)
        return measured

    def begin(self, batch: int) -> None:
        """Forget which rows were set aside in the batch before."""
        if batch != self._batch:
            self.known.set_aside.clear()
        self._batch = batch

    def carefully(self, raw: Mapping[str, DataFrame], work: Callable[[], T]) -> T:
        """Do some work of a batch; where it fails by its rows, find those, and do it again without them."""
        while True:
            self._compiler = None
            try:
                return with_care(self.known, work, _LOG.warning)
            except Exception as error:
                if not is_of_rows(error):
                    raise
                compiler = self._compiler or Compiler(self._graph, raw, Plan(), self._tables, known=self.known)
                try:
                    found = compiler.isolate(_LOG.warning)
                finally:
                    for frame in compiler.persisted.values():
                        frame.unpersist()
                if not found:
                    raise

    def _run(self, raw: Mapping[str, DataFrame], batch: int, plan: Plan, rows: Mapping[str, int]) -> Measured:
        session = next(iter(raw.values())).sparkSession
        if self._presence is not None:
            self._presence.begin(batch)
        slices = None if self._slices is None else self._slices.of_batch(batch, session)
        asked = time.perf_counter()
        if slices is not None:
            slices.batch_rows = sum(rows.values())
            sight_us = self._sight.before(slices.marks.newest_us, slices.batch_rows)
            if (
                self._graph.stream_joins or slices.marks.apart
            ):  # one stream may be far ahead of what another has reached
                sight_us = None
            slices.fates = plan.fates
            slices.shares = {each.name: shares_above(self._graph, plan, each) for each in self._estimated}
            closing = windows_of_batch(self._graph, plan, slices.marks, slices.oldest_us())
            plan = for_batch(self._window_arcs, plan, slices.marks, sight_us)
        drops_ms = 1000 * (time.perf_counter() - asked)
        closed = self._closed_arcs(plan, rows, frozenset() if slices is None else slices.quiet)
        live = [output for output in self._graph.outputs if not closed.issuperset(self._graph.arcs_into(output.name))]
        shared = self._worth_sharing(live)
        joins = None if self._joins is None else self._joins.of_batch(batch)
        counts = None if self._counts is None else self._counts.of_batch(batch, session)
        compiler = Compiler(
            self._graph,
            raw,
            plan,
            self._tables,
            shared,
            self.known,
            self._on_shed.tails,
            joins,
            closed if (joins, slices, counts) != (None, None, None) else frozenset(),
            slices,
            counts,
            sample_mask(sum(rows.values())),
        )
        self._compiler = compiler
        jobs: dict[str, Future[Written]] = {}
        aside: dict[str, Future[float]] = {}
        began = time.perf_counter()
        count = not self._told_by_slices(plan)
        try:
            self._keep_first(compiler, closed, count=count)
            if counts is not None and counts.quiet:
                closed = self._closed_arcs(plan, rows, counts.quiet | (frozenset() if slices is None else slices.quiet))
                live = [each for each in live if not closed.issuperset(self._graph.arcs_into(each.name))]
            for output in live:
                frame = compiler.output(output.name, count=count)
                columns = self.known.columns(output.name, frame)
                timed = TIME in columns
                observation = Observation()
                metrics = output_metrics(self._graph, output, timed=timed, mask=compiler.mask)
                counted = frame.observe(observation, *map(self.known.expression, metrics))
                visible = self.known.select(counted, [f"`{column}`" for column in columns if column not in HIDDEN])
                delivered = _with_quality(output, visible, plan, batch)
                work = inheritable_thread_target(self._spark)(self._write)
                jobs[output.name] = self._pool.submit(work, output.name, delivered, batch, observation, timed)
            aside = self._put_shed_aside(compiler, raw, batch, plan)
            built = time.perf_counter()
            finished = {name: self._finish(name, batch, job) for name, job in jobs.items()}
            for name, keeping in aside.items():
                self._kept_aside(name, batch, keeping)
            measuring = Measuring(self._graph, compiler, raw, plan, rows)
            newest_us = cache(measuring.newest_us)
            if slices is not None:
                slices.finish(newest_us)
            if joins is not None:
                open_us = (lambda name: None) if slices is None else slices.marks.open_us
                joins.finish(Seen(self._graph, newest_us(), open_us))
            if counts is not None:
                counts.finish()
            if self._presence is not None:
                in_slices_us = None if count or slices is None else slices.newest_us
                self._presence.saw(batch, measuring.seen_us(newest_us(), in_slices_us))
            written = time.perf_counter()
            with part(self._spark, "measuring"):
                measured = measuring.measured(finished)
            for kept in (joins, slices):
                if kept is not None:
                    measured.late.update(kept.late)
                    measured.parts_ms.update(kept.parts_ms)
            if counts is not None:
                measured.failed.update(counts.failed)
                measured.parts_ms.update(counts.parts_ms)
            if slices is not None:
                measured.failed.update(slices.failed)
                measured.withheld.update(slices.withheld)
                measured.missing.update(slices.missing)
                measured.groups.update(slices.groups)
                measured.timeless_in.update(slices.timeless_in)
                measured.unneeded.update(slices.unneeded)
                measured.windows.update(without_withheld(closing, slices.withheld))
                measured.watermark_us.update(slices.marks.watermarks_us())
                measuring.add_slices(measured, slices.came)
                if not count:
                    measured.timeless[self._graph.sources[0].name] = slices.timeless
            measured.parts_ms["window drops"] = drops_ms
            measured.parts_ms["building"] = 1000 * (built - began)
            measured.parts_ms["measuring"] = 1000 * (time.perf_counter() - written)
            measured.parts_ms.update({f"on_shed {name}": keeping.result() for name, keeping in aside.items()})
            measured.unfit.update(unfit_rows(compiler.rejecting))
            found = [each for each in compiler.rejecting.values() if each.place in measured.unfit]
            unfit = [_unfit_aside(self._graph, each) for each in found]
            parsed = [name for name, count in measured.rejected.items() if count > 0]
            self._keep_rejected(parsed, raw, batch, plan, unfit)
            return measured
        finally:
            running: list[Future[Any]] = [*jobs.values(), *aside.values()]
            for job in running:
                job.cancel()
            for windows in (slices, counts):
                if windows is not None:
                    windows.close()
            wait(running)  # a job of a failed batch must not write on while the batch is repeated
            for frame in compiler.persisted.values():
                frame.unpersist()

    def _closed_arcs(self, plan: Plan, rows: Mapping[str, int], quiet: frozenset[str]) -> frozenset[str]:
        """Arcs that nothing can reach or pass under this plan. One side of a join is enough: others wait there.

        An aggregate gives what it has kept, unless it is `quiet`, whether anything comes in or not.
        """
        closed: set[str] = set()
        for operator in self._graph.operators:
            entering = self._graph.arcs_into(operator.name)
            if not operator.inputs and (rows.get(operator.name, 0) == 0 or plan.closes(operator.name)):
                closed.update(entering)
            windowed = isinstance(operator, Aggregate)
            nothing = operator.name in quiet or (not windowed and closed.issuperset(entering))
            leaving = self._graph.arcs_out_of(operator.name)
            closed.update(arc for arc in leaving if nothing or plan.closes(arc))
        return frozenset(closed)

    def _told_by_slices(self, plan: Plan) -> bool:
        """Whether slices tell all there is to count behind the source: rows without event time, and how far times got.
        To look at every row for that takes a good part of the time of simple aggregates."""
        source = self._graph.sources[0]
        if source.payload is not None or valued_columns(self._graph, source.name):
            return False
        if any(passes(arc, plan) != ALL for arc in plan.arcs):
            return False
        if self._graph.count_aggregates or self._graph.stream_joins:
            return False  # their slices say nothing of times, and joins have none
        shapes = [] if self._slices is None else list(self._slices.shapes.values())
        direct = bool(shapes) and all(shape.group.tail == source.name for shape in shapes)
        return direct and len(self._graph.sources) == 1

    def _keep_first(self, compiler: Compiler, closed: frozenset[str], *, count: bool) -> None:
        """Joins and aggregates come first, also those whose outputs get nothing in this batch: later batches may need
        the rows of this one."""
        for operator in self._graph.operators:
            joins = isinstance(operator, StreamJoin) and not closed.issuperset(self._graph.arcs_into(operator.name))
            if (joins and self._joins is not None) or isinstance(operator, Aggregate | CountAggregate):
                compiler.output(operator.name, count=count)

    def _worth_sharing(self, live: list[Output]) -> frozenset[str]:
        idle = {output.name for output in self._graph.outputs} - {output.name for output in live}
        return frozenset(name for name in self.shared if len(readers_below(self._graph, name) - idle) > 1)

    def _write(self, name: str, rows: DataFrame, batch: int, observation: Observation, timed: bool) -> Written:
        began = time.perf_counter()
        with part(self._spark, f"output {name}"):
            self._sinks[name].write(rows, batch)
        return Written(observation, timed, 1000 * (time.perf_counter() - began), time.time())

    def _finish(self, name: str, batch: int, job: Future[Written]) -> Written:
        try:
            return job.result()
        except Exception as error:
            reason = failed_at(error, sink_place(self._sinks[name]))
            raise SinkError(
                f"output {name!r}: writing batch {batch} failed ({reason}). It is not committed: mend the sink or the "
                f"operators before it and start again; it is repeated with its plan."
            ) from error

    def _put_shed_aside(
        self, compiler: Compiler, raw: Mapping[str, DataFrame], batch: int, plan: Plan
    ) -> dict[str, Future[float]]:
        """Jobs that keep what this plan sheds, where somebody wants it."""
        started = {}
        for name, arcs in self._on_shed.of(plan.arcs).items():
            frames = [self._shed_rows(compiler, raw, arc, plan) for arc in arcs]
            work = inheritable_thread_target(self._spark)(self._timed_aside)
            started[name] = self._pool.submit(work, name, frames, batch)
        return started

    def _timed_aside(self, name: str, frames: Sequence[DataFrame], batch: int) -> float:
        """Keep rows; how long that took, in milliseconds."""
        began = time.perf_counter()
        with part(self._spark, f"on_shed {name}"):
            put_aside(self._on_shed.sinks[name], frames, batch)
        return 1000 * (time.perf_counter() - began)

    def _shed_rows(self, compiler: Compiler, raw: Mapping[str, DataFrame], arc: str, plan: Plan) -> DataFrame:
        tail, inner, _ = arc.rpartition(">")
        if inner:
            return rows_aside(arc, compiler.operator(tail).where(f"NOT ({passes(arc, plan)})"), reason_on(plan, arc))
        source, columns = self._source(arc), raw[arc].columns
        rows = dropped_raw(source, raw[arc], columns, plan, self.known, shed=True)
        return raw_aside(source, rows, columns, reason_on(plan, arc))

    def _kept_aside(self, name: str, batch: int, job: Future[float]) -> None:
        try:
            job.result()
        except Exception as error:
            raise SinkError(
                f"on_shed {name!r}: keeping what batch {batch} sheds failed ({type(error).__name__}: "
                f"{reason_of(error)}). It is not committed: mend the sink and start again, and it is repeated."
            ) from error

    def _keep_rejected(
        self, sources: Sequence[str], raw: Mapping[str, DataFrame], batch: int, plan: Plan, unfit: Sequence[DataFrame]
    ) -> None:
        """Put rows that do not parse, and those on which expressions fail, where they can be looked at."""
        frames = [*unfit]
        for name in sources:
            source = self._source(name)
            bad = dropped_raw(source, raw[name], raw[name].columns, plan, self.known).where(f"NOT {is_parsed(source)}")
            frames.append(raw_aside(source, bad, raw[name].columns, "does not parse"))
        if frames:
            try:
                with part(self._spark, "dead letters"):
                    put_aside(self._dead_letters, frames, batch)
            except Exception as error:
                raise SinkError(
                    f"dead_letters: keeping the rejected rows of batch {batch} failed ({type(error).__name__}: "
                    f"{reason_of(error)}). It is not committed: mend the sink and start again."
                ) from error

    def _source(self, name: str) -> Source:
        return next(source for source in self._graph.sources if source.name == name)


def _unfit_aside(graph: Graph, rejecting: Rejecting) -> DataFrame:
    arc = rejecting.place if rejecting.place in graph.arcs else graph.arcs_into(rejecting.place)[0]
    return rows_aside(arc, rejecting.rows, rejecting.reason)


def _with_quality(output: Output, rows: DataFrame, plan: Plan, batch: int) -> DataFrame:
    if not output.quality:
        return rows
    kept = plan.delivered.get(output.name, 1.0)
    return rows.withColumns({"_kept": F.lit(kept), "_batch": F.lit(batch).cast("long")})
