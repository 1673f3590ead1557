"""One batch: build its frames, run one job per output side by side, commit state, and put aside what is rejected."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from jettison.errors import SinkError
from jettison.network.arc import Arc
from jettison.network.columns.reserved import BATCH, KEPT, SIC
from jettison.network.event_time.watermarks import BatchMarks
from jettison.network.graph import Graph
from jettison.network.operators import Aggregate, Map, Operator, Output, Source, StreamJoin
from jettison.network.row_bounds import most_rows_of
from jettison.plan.plan import Plan
from jettison.plan.reasons import reason_on
from jettison.plan.refine.window_lookahead import without_idle
from jettison.spark.batch.live_arcs import closed_arcs, counted_by_slices, live_outputs, worth_sharing
from jettison.spark.batch.measure import Measuring, output_metrics
from jettison.spark.batch.processor_time import task_slots
from jettison.spark.batch.result_sic import WHOLE
from jettison.spark.compile.batch_alone import group_of
from jettison.spark.compile.compiler import Compiler, Scope
from jettison.spark.compile.drops import HIDDEN, TIME, passes
from jettison.spark.compile.expression_cache import ExpressionCache
from jettison.spark.compile.isolation import set_failing_rows_aside
from jettison.spark.compile.raw_rows import dropped_raw, is_parsed
from jettison.spark.compile.value_samples import sample_mask
from jettison.spark.error_text import reason_of
from jettison.spark.guard.care_period import CarePeriod
from jettison.spark.guard.careful import Rejecting, unfit_rows, with_care
from jettison.spark.guard.isolate import is_of_rows
from jettison.spark.job_descriptions import part
from jettison.spark.maps.cost_filter import without_judgement
from jettison.spark.state.operator_state import BatchState, OpenedBatch, OperatorState, Progress
from jettison.spark.state.presence import Presence
from jettison.spark.state.slice_state import SliceState
from jettison.spark.write.batch_jobs import BatchJobs, RunSinks, Written
from jettison.spark.write.dead_letters import put_aside, raw_aside, rows_aside
from jettison.spark.write.small_outputs import SmallOutputs, width_of
from jettison.statistics.samples import Measured
from jettison.statistics.sketches.universal import HashFunctions

_LOG = logging.getLogger("jettison")

T = TypeVar("T")
Rows = Mapping[str, int]
Frames = Mapping[str, DataFrame]


class BatchRunner:
    """Runs batches of one network. `shared` names the operators whose rows are persisted for several outputs."""

    def __init__(
        self,
        spark: SparkSession,
        graph: Graph,
        tables: Frames,
        sinks: RunSinks,
        states: Sequence[OperatorState] = (),
        presence: Presence | None = None,
    ) -> None:
        self._spark = spark
        self._graph = graph
        self._tables = tables
        self.sinks = sinks
        # windows of time are committed first: when their slices are written, all rows have been looked at
        self._states = sorted(states, key=lambda state: not isinstance(state, SliceState))
        self._presence = presence
        self._slices = next((state for state in states if isinstance(state, SliceState)), None)
        self.shared: frozenset[str] = frozenset()
        self._maps = frozenset(each.name for each in graph.operators if isinstance(each, Map))
        self.sketch_functions: HashFunctions | None = None
        """Those of the sketches that maps are timed into; None: they are not timed."""
        self.known = ExpressionCache()
        self._care = CarePeriod()
        self._small = SmallOutputs()
        self._compiler: Compiler | None = None  # of the last attempt at a batch
        self._batch: int | None = None
        jobs = len(graph.outputs) + len(sinks.on_shed.sinks)
        self._pool = ThreadPoolExecutor(max(1, min(4, jobs)), thread_name_prefix="jettison-output")

    @property
    def lanes(self) -> int:
        """How many tasks share the work of a map; 1 where there is none."""
        return max(1, task_slots(self._spark.sparkContext)) if self._maps else 1

    def close(self) -> None:
        self._pool.shutdown(wait=False)
        for state in self._states:
            state.close()

    def marks(self, batch: int) -> BatchMarks | None:
        """How far windows of time have got before a batch; None where there are none."""
        return None if self._slices is None else self._slices.marks(batch)

    def closes_windows(self, batch: int) -> bool:
        """Whether windows of time close in a batch, whatever comes in."""
        return self._slices is not None and self._slices.closes(batch)

    def run(
        self,
        raw: Frames,
        batch: int,
        plan: Plan,
        rows: Rows,
        marks: BatchMarks | None = None,
        sic: Mapping[str, str] | None = None,
    ) -> Measured:
        """Write every output of a batch; rows on which expressions fail are rejected. `plan` is obeyed as it stands.
        `sic` has the SQL of `_sic` by output that has lost something."""
        self.begin(batch)
        if self._presence is not None:
            self._presence.begin(batch)
        session = next(iter(raw.values())).sparkSession
        opened = OpenedBatch(batch, session, plan, sum(rows.values()), marks or self.marks(batch), sic or {})
        measured = self.carefully(raw, lambda: self._attempt(raw, opened, rows))
        if opened.rows:
            rejected = sum(measured.unfit.values())
            before = self.known.careful
            self.known.careful = self._care.goes_on(careful=before, rejected=rejected)
            if before and not self.known.careful:
                _LOG.info(f"no row was rejected for a while: expressions are trusted again (from batch {batch + 1} on)")
            self._small.saw({name: seen.rows for name, seen in measured.outputs.items()}, read=opened.rows)
        if self.sinks.empty is not None:
            self.sinks.empty.write(batch)
        return measured

    def begin(self, batch: int) -> None:
        """Forget which rows were set aside in the batch before."""
        if batch != self._batch:
            self.known.set_aside.clear()
        self._batch = batch

    def carefully(self, raw: Frames, work: Callable[[], T]) -> T:
        """Do some work of a batch; where it fails by its rows, find those, and do it again without them."""
        while True:
            self._compiler = None
            try:
                return with_care(self.known, work, _LOG.warning)
            except Exception as error:
                if not is_of_rows(error):
                    raise
                compiler = self._compiler or Compiler(self._graph, raw, Plan(), self._tables, self.known)
                try:
                    found = set_failing_rows_aside(self._graph, compiler, _LOG.warning)
                finally:
                    for frame in compiler.persisted.values():
                        frame.unpersist()
                if not found:
                    raise

    def _attempt(self, raw: Frames, batch: OpenedBatch, rows: Rows) -> Measured:
        """One try at a batch: open state, build frames, write outputs, commit state, measure, keep what is rejected."""
        plan = without_idle(batch.plan)
        states = [state.open(batch) for state in self._states]
        count = not counted_by_slices(self._graph, plan, {} if self._slices is None else self._slices.shapes)
        compiler = self._compiler = self._compile(raw, plan, rows, states)
        jobs = BatchJobs(self._spark, self._pool, self.sinks, batch.number, self._small)
        began = time.perf_counter()
        try:
            live = self._advance(compiler, states, plan, rows, count=count)
            results = {name: state.most_rows(name) for name, state in self._by_operator(states).items()}
            for output in live:
                most_rows = most_rows_of(self._graph, output.name, rows, results)
                self._write(jobs, compiler, output, batch, most_rows, count=count)
            for sink, arcs in self.sinks.on_shed.of(plan.arcs).items():
                jobs.keep_shed(sink, [_shed_rows(self._graph, compiler, raw, arc, plan, self.known) for arc in arcs])
            built = time.perf_counter()
            written = jobs.written()
            measuring = Measuring(self._graph, compiler, raw, plan, rows)
            self._commit(measuring, states, batch, count=count)
            parts_ms = {"building": 1000 * (built - began), **jobs.shed_ms()}
            unfit = Measured(unfit=unfit_rows(compiler.guard.rejecting), parts_ms=parts_ms)
            measured = self._measured(measuring, states, written, count=count).plus(unfit)
            measured = measured.plus(measuring.maps(self.lanes))
            self._keep_rejected(compiler, raw, batch.number, plan, measured)
            return measured
        finally:
            jobs.cancel()
            for state in states:
                state.close()
            jobs.close()
            for frame in compiler.persisted.values():
                frame.unpersist()

    def _compile(self, raw: Frames, plan: Plan, rows: Rows, states: Sequence[BatchState]) -> Compiler:
        """What builds the frames of a batch."""
        closed = closed_arcs(self._graph, plan, rows, _quiet(states))
        scope = Scope(
            # a map is never computed twice
            shared=worth_sharing(self._graph, self.shared | self._maps, live_outputs(self._graph, closed)),
            whole=self.sinks.on_shed.tails,
            closed=closed if states else frozenset(),
            stateful=frozenset().union(*(state.operators for state in self._states)),
            mask=sample_mask(sum(rows.values())),
            sketch_functions=self.sketch_functions,
        )
        return Compiler(self._graph, raw, plan, self._tables, self.known, scope)

    def _advance(
        self, compiler: Compiler, states: Sequence[BatchState], plan: Plan, rows: Rows, *, count: bool
    ) -> list[Output]:
        """Hand operators with state their rows, in order: also those whose outputs get nothing in this batch, for later
        batches may need the rows of this one. The outputs that may get rows then."""
        before = frozenset(output.name for output in live_outputs(self._graph, compiler.scope.closed))
        opened = self._by_operator(states)
        wanted = [operator for operator in self._graph.operators if self._takes(operator, compiler, before)]
        # what does not wait for others begins first, so that all of it is kept side by side
        early = [each for each in wanted if all(map(compiler.is_built_above, each.inputs))]
        taken: set[str] = set()
        for operator in early:
            self._take(operator, compiler, opened[operator.name], taken, count=count)
        for operator in wanted:
            if not compiler.has_results(operator.name):
                self._take(operator, compiler, opened[operator.name], taken, count=count)
                compiler.give(opened[operator.name].frames(operator))
            compiler.output(operator.name, count=count)
        closed = closed_arcs(self._graph, plan, rows, _quiet(states))
        return [output for output in live_outputs(self._graph, closed) if output.name in before]

    def _takes(self, operator: Operator, compiler: Compiler, live: frozenset[str]) -> bool:
        """Whether an operator keeps rows of this batch: not a join where nothing comes, and of which nobody reads."""
        if not any(operator.name in state.operators for state in self._states):
            return False
        idle = compiler.scope.closed.issuperset(self._graph.arcs_into(operator.name))
        read = self.sinks.on_shed.sinks or live & self._graph.outputs_below(operator.name)
        return not (isinstance(operator, StreamJoin) and idle and not read)

    def _take(self, operator: Operator, compiler: Compiler, state: BatchState, taken: set[str], *, count: bool) -> None:
        """Hand an operator with state its rows, unless one that shares its state had them with its own."""
        if operator.name not in taken:
            state.take(operator, compiler.arriving(operator, count=count, outside=state.outside))
            members = group_of(self._graph, operator).members if isinstance(operator, Aggregate) else (operator,)
            taken.update(each.name for each in members)

    def _by_operator(self, states: Sequence[BatchState]) -> dict[str, BatchState]:
        return {name: batch for kept, batch in zip(self._states, states, strict=True) for name in kept.operators}

    def _write(
        self,
        jobs: BatchJobs,
        compiler: Compiler,
        output: Output,
        batch: OpenedBatch,
        most_rows: int | None,
        *,
        count: bool,
    ) -> None:
        """Build an output's frame, and start to write it. `most_rows` is what bounds it."""
        frame = compiler.output(output.name, count=count)
        columns = self.known.columns(output.name, frame)
        timed, mask = TIME in columns, compiler.mask
        metrics = output_metrics(self._graph, output, timed=timed, mask=mask)

        def rows(observation: Observation) -> DataFrame:
            counted = frame.observe(observation, *map(self.known.expression, metrics))
            visible = [f"`{column}`" for column in columns if column not in HIDDEN]
            if not output.quality:
                return self.known.select(counted, visible)
            return counted.select(*map(self.known.expression, visible), *_quality(output.name, batch, timed=timed))

        width = self.known.asked(f"{output.name} (width)", lambda: width_of(frame.schema))
        few = self._small.is_small(output.name, width, most_rows=most_rows, read=batch.rows)
        jobs.write(output.name, rows, timed=timed, few=few)

    def _commit(self, measuring: Measuring, states: Sequence[BatchState], batch: OpenedBatch, *, count: bool) -> None:
        """Let all state be kept, and say how far event times have got."""
        progress = Progress(self._graph, measuring.newest_us, batch.marks)
        for state in states:
            state.commit(progress)
        if self._presence is not None:
            measured_states = [state.measured().newest_us for state in states]
            in_slices_us = None if count else next((each for each in measured_states if each is not None), None)
            self._presence.saw(batch.number, measuring.seen_us(progress.newest_us, in_slices_us))

    def _measured(
        self, measuring: Measuring, states: Sequence[BatchState], written: Mapping[str, Written], *, count: bool
    ) -> Measured:
        began = time.perf_counter()
        measured_states = [state.measured() for state in states]
        came = {name: rows for each in measured_states for name, rows in each.came.items()}
        with part(self._spark, "measuring"):
            measured = measuring.measured(written, came)
        for each in measured_states:
            measured = measured.plus(each.sample)
        if not count:
            timeless = max((each.timeless for each in measured_states), default=0)
            measured = measured.plus(Measured(timeless={self._graph.sources[0].name: timeless}))
        return measured.plus(Measured(parts_ms={"measuring": 1000 * (time.perf_counter() - began)}))

    def _keep_rejected(self, compiler: Compiler, raw: Frames, batch: int, plan: Plan, measured: Measured) -> None:
        """Put rows that do not parse, and those on which expressions fail, where they can be looked at."""
        threw = [each for each in compiler.guard.rejecting.values() if each.place in measured.unfit]
        frames = [_unfit_aside(self._graph, each) for each in threw]
        for source in (_source(self._graph, name) for name, count in measured.rejected.items() if count > 0):
            name = source.name
            bad = dropped_raw(source, raw[name], raw[name].columns, plan, self.known).where(f"NOT {is_parsed(source)}")
            frames.append(raw_aside(source, bad, raw[name].columns, "does not parse"))
        if frames:
            try:
                with part(self._spark, "dead letters"):
                    put_aside(self.sinks.dead_letters, frames, batch)
            except Exception as error:
                raise SinkError(
                    f"dead_letters: keeping the rejected rows of batch {batch} failed ({type(error).__name__}: "
                    f"{reason_of(error)}). It is not committed: mend the sink and start again."
                ) from error


def _shed_rows(
    graph: Graph, compiler: Compiler, raw: Frames, arc: str, plan: Plan, known: ExpressionCache
) -> DataFrame:
    """What a plan drops on an arc, as it is put aside."""
    if Arc(arc).tail is not None:
        shed = compiler.before_drop(arc).where(f"NOT ({passes(arc, plan)})")
        return rows_aside(arc, without_judgement(shed), reason_on(plan, arc))
    source, columns = _source(graph, arc), raw[arc].columns
    rows = dropped_raw(source, raw[arc], columns, plan, known, shed=True)
    return raw_aside(source, rows, columns, reason_on(plan, arc))


def _source(graph: Graph, name: str) -> Source:
    return next(source for source in graph.sources if source.name == name)


def _quiet(states: Sequence[BatchState]) -> frozenset[str]:
    return frozenset().union(*(state.quiet for state in states))


def _unfit_aside(graph: Graph, rejecting: Rejecting) -> DataFrame:
    arc = rejecting.place if rejecting.place in graph.arcs else graph.arcs_into(rejecting.place)[0]
    return rows_aside(arc, rejecting.rows, rejecting.reason)


def _quality(output: str, batch: OpenedBatch, *, timed: bool) -> tuple[Column, ...]:
    """What results say of themselves; rows that have lost their time cannot tell of which window they are."""
    kept = F.lit(batch.plan.delivered.get(output, 1.0)).alias(KEPT)
    sic = batch.sic.get(output, WHOLE)
    shown = F.expr(sic if timed or TIME not in sic else WHOLE).alias(SIC)
    return kept, F.lit(batch.number).cast("long").alias(BATCH), shown
