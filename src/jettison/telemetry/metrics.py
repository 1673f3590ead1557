"""Numbers for Prometheus. Every series has the label `network`; docs/figures.md defines each figure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from jettison.network.graph import Graph
from jettison.plan.reasons import STALE_UNREAD, UNREAD, kind_of_reason, reason_on
from jettison.statistics.arrival import SourceLag
from jettison.statistics.samples import BatchSample
from jettison.statistics.worth import timely_share
from jettison.telemetry.checkpoint_size import SizeWatch
from jettison.telemetry.events import BatchEvent
from jettison.telemetry.latency_buckets import LatencyBuckets
from jettison.telemetry.metrics_address import serve

_DURATION_BUCKETS_S = (0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 7.5, 10.0, 20.0, 30.0, 60.0, 300.0)


class _Series:
    """One metric of one network: its other labels are given with every value."""

    def __init__(self, metric: Any, network: str) -> None:
        self._metric = metric
        self._network = network

    def __call__(self, *labels: str) -> Any:
        return self._metric.labels(self._network, *labels)

    def clear(self) -> None:
        self._metric.clear()


class Metrics:
    """The metrics of one run, and the server that shows them. `port` is where it listens."""

    def __init__(self, graph: Graph, budget_ms: float, address: str | int) -> None:
        self.registry = CollectorRegistry()
        self._graph = graph
        self._network = graph.name
        counter, gauge = self._counters(), self._gauges()
        self._counter, self._gauge = counter, gauge
        duration = Histogram(
            "jettison_batch_duration_seconds",
            "How long batches took, from trigger to commit",
            ["network"],
            registry=self.registry,
            buckets=_DURATION_BUCKETS_S,
        )
        self._duration = _Series(duration, self._network)
        self._latency = LatencyBuckets(
            "jettison_latency_seconds", "Age of rows when they were delivered, by event time", ("network", "output")
        )
        self.registry.register(self._latency)
        gauge["batch_budget_seconds"]().set(budget_ms / 1000)
        gauge["calibrating"]().set(1)
        for name in (
            "batches",
            "over_budget_batches",
            "mispredicted_batches",
            "infeasible_batches",
            "uncertified_plans",
        ):
            counter[name]()  # 0 from the first moment on, so that a rate is right
        self._size: SizeWatch | None = None
        self._server = serve(address, graph.name, self.registry)
        self.host, self.port = self._server.host, self._server.port

    def _made(self, kind: Any, about: Sequence[tuple[str, str, tuple[str, ...]]]) -> dict[str, _Series]:
        return {
            name: _Series(kind(f"jettison_{name}", text, ["network", *labels], registry=self.registry), self._network)
            for name, text, labels in about
        }

    def _counters(self) -> dict[str, _Series]:
        """Their names end in _total."""
        return self._made(
            Counter,
            [
                ("batches", "Batches that ran", ()),
                ("over_budget_batches", "Batches that took longer than their budget", ()),
                ("mispredicted_batches", "Batches over budget that were predicted to fit", ()),
                ("infeasible_batches", "Batches that no plan could bring within the budget", ()),
                ("uncertified_plans", "Plans that were refused, so that a safe one took their place", ()),
                ("rows_in", "Source rows that arrived, skipped ones included", ("source",)),
                ("rejected_rows", "Rows that did not parse", ("source",)),
                ("rows_without_time", "Rows that have no event time", ("source",)),
                ("skipped_rows", "Records that were skipped unread", ("source",)),
                ("gone_rows", "Records that a source lost before they were read", ("source",)),
                ("shed_rows", "Rows that a drop removed; a row is counted on every arc", ("arc", "reason")),
                ("dropped_results", "Results of windows that a drop removed", ("arc", "reason")),
                ("late_rows", "Rows behind the watermark of a window or of a join of streams", ("operator",)),
                ("failed_windows", "Windows on which a function of the user's own failed", ("operator",)),
                ("unfit_rows", "Rows on which an expression of an operator failed", ("operator",)),
                ("withheld_windows", "Windows withheld, not seen from their first row on", ("operator",)),
                ("missing_result_rows", "Rows of groups that lost every row in a window, estimated", ("operator",)),
                ("would_shed_rows", "Rows that a drop would have removed, in a dry run", ("arc",)),
                ("output_rows", "Rows that were delivered", ("output",)),
                ("paused_batches", "Batches in which an output was paused for the minima of others", ("output",)),
                ("source_rows", "Source rows by what became of them for an output", ("source", "output", "fate")),
            ],
        )

    def _gauges(self) -> dict[str, _Series]:
        return self._made(
            Gauge,
            [
                ("batch_budget_seconds", "What a batch may take: trigger x headroom", ()),
                ("load_ratio", "Work of the last batch, nothing shed, over its budget", ()),
                ("plan_row", "Place on the road map (0: nothing is shed)", ()),
                ("infeasible", "1 while no plan brings batches within the budget", ()),
                ("calibrating", "1 until costs have been measured; nothing is shed before", ()),
                ("last_batch_timestamp_seconds", "When the last batch ended, since 1970", ()),
                ("delivered_ratio", "Share of an output's rows that the last batch delivered, counted", ("output",)),
                (
                    "utility_ratio",
                    "Utility of an output in the last batch, by its QoS, late rows priced",
                    ("output",),
                ),
                ("sic", "Source information content of an output over the source time window, 0 to 1", ("output",)),
                ("paused", "1 while an output is paused, so that the minima of others fit", ("output",)),
                ("below_minimum", "1 while an output is below its minimum accuracy on purpose", ("output",)),
                ("would_deliver_ratio", "Share that an output would have got, in a dry run", ("output",)),
                ("keep_ratio", "Share that the plan keeps on an arc", ("arc",)),
                ("watermark_timestamp_seconds", "Watermark of an aggregate, since 1970", ("operator",)),
                ("topic_arrival_rows_per_second", "Records that arrive at a topic", ("topic",)),
                ("topic_lag_rows", "Records of a topic not read yet", ("topic",)),
                ("topic_lag_seconds", "The same in seconds of arrivals; absent where none arrive", ("topic",)),
                ("source_lag_rows", "Rows of a source not read yet, where it tells", ("source",)),
                ("source_lag_files", "Files of a source not read yet, where it tells", ("source",)),
                ("source_lag_bytes", "Bytes of a source not read yet, where it tells", ("source",)),
                ("checkpoint_bytes", "Size of the checkpoint, looked at once a minute", ()),
                ("checkpoint_files", "Files in the checkpoint, looked at once a minute", ()),
            ],
        )

    def close(self) -> None:
        if self._size is not None:
            self._size.close()
        self._server.leave(self._network)

    def watch_checkpoint(self, look: Callable[[], tuple[int, int]]) -> None:
        """Show how large the checkpoint is, in bytes and files, as a thread of its own finds it every minute."""
        self._size = SizeWatch(look, self._show_size)

    def _show_size(self, size_bytes: int, files: int) -> None:
        self._gauge["checkpoint_bytes"]().set(size_bytes)
        self._gauge["checkpoint_files"]().set(files)

    def lag(self, lags: Mapping[str, SourceLag]) -> None:
        """Show how far behind sources are."""
        for source, lag in lags.items():
            for name, value in (("rows", lag.rows), ("files", lag.files), ("bytes", lag.size_bytes)):
                if value is not None:
                    self._gauge[f"source_lag_{name}"](source).set(value)

    def record(self, event: BatchEvent) -> None:
        """Show one batch."""
        sample, plan, count, show = event.sample, event.plan, self._counter, self._gauge
        self._duration().observe(sample.duration_ms / 1000)
        count["batches"]().inc()
        count["over_budget_batches"]().inc(event.over_budget)
        count["mispredicted_batches"]().inc(event.mispredicted)
        count["infeasible_batches"]().inc(event.infeasible is not None)
        count["uncertified_plans"]().inc(event.uncertified is not None)
        show["load_ratio"]().set(event.load)
        show["plan_row"]().set(plan.row)
        show["infeasible"]().set(event.infeasible is not None)
        show["calibrating"]().set(event.calibrating)
        show["keep_ratio"].clear()
        for arc in sample.arcs:
            show["keep_ratio"](arc).set(plan.keep(arc))
        for name, gone in (("shed_rows", event.dropped), ("dropped_results", event.results_dropped)):
            for arc, rows in gone.items():
                count[name](arc, kind_of_reason(reason_on(plan, arc))).inc(rows)
        for (source, output), account in event.accounts.items():
            for fate in ("processed", "shed", "rejected", "late", "skipped"):
                count["source_rows"](source, output, fate).inc(max(0.0, getattr(account, fate)))
        for name, found in (("unfit_rows", sample.unfit), ("withheld_windows", sample.withheld)):
            for operator, rows in found.items():
                count[name](operator).inc(rows)
        for operator, missing in sample.missing.items():
            count["missing_result_rows"](operator).inc(missing.rows)
        for arc, (_, rows) in sample.would.items():
            count["would_shed_rows"](arc).inc(rows)
        for output, share in sample.would_deliver.items():
            show["would_deliver_ratio"](output).set(share)
        self._sources(sample)
        self._outputs(event)
        show["last_batch_timestamp_seconds"]().set_to_current_time()

    def _sources(self, sample: BatchSample) -> None:
        count, show = self._counter, self._gauge
        for source, rows in sample.rows_in.items():
            skipped, stale = sample.skipped.get(source, 0), sample.stale.get(source, 0)
            count["rows_in"](source).inc(rows + skipped)
            count["rejected_rows"](source).inc(sample.rejected.get(source, 0))
            count["rows_without_time"](source).inc(sample.timeless.get(source, 0))
            count["skipped_rows"](source).inc(skipped)
            count["gone_rows"](source).inc(sample.gone.get(source, 0))
            for unread, reason in ((stale, STALE_UNREAD), (skipped - stale, UNREAD)):
                if unread > 0:
                    count["shed_rows"](source, kind_of_reason(reason)).inc(unread)
        for name, rows in sample.late.items():
            count["late_rows"](name).inc(rows)
        names = [each.name for each in self._graph.aggregates] + [each.name for each in self._graph.count_aggregates]
        for name in names:
            failed = sample.failed.get(name)
            count["failed_windows"](name).inc(0 if failed is None else failed.windows)
        for name, mark_us in sample.watermark_us.items():
            show["watermark_timestamp_seconds"](name).set(mark_us / 1e6)
        show["topic_lag_seconds"].clear()
        for name, topic in sample.topics.items():
            show["topic_arrival_rows_per_second"](name).set(topic.rows_per_s)
            show["topic_lag_rows"](name).set(topic.lag_rows)
            if topic.lag_s is not None:
                show["topic_lag_seconds"](name).set(topic.lag_s)

    def _outputs(self, event: BatchEvent) -> None:
        for output in self._graph.outputs:
            name, seen = output.name, event.sample.outputs.get(output.name)
            self._counter["paused_batches"](name).inc(name in event.paused)
            self._gauge["paused"](name).set(name in event.paused)
            self._gauge["below_minimum"](name).set(name in event.plan.below_minimum)
            got = event.delivered[name]
            if name in event.sic:
                self._gauge["sic"](name).set(event.sic[name])
            if got.weight > 0:  # else nothing was to be delivered
                self._gauge["delivered_ratio"](name).set(got.share)
                timely = timely_share(output.qos, None if seen is None else seen.latency_ms, math.inf)
                self._gauge["utility_ratio"](name).set(output.qos.utility(got.worth * timely))
            self._counter["output_rows"](name).inc(0 if seen is None else seen.rows)
            if seen is not None and seen.latency_ms is not None and seen.rows:
                self._latency.add((self._network, name), seen.rows, [each / 1000 for each in seen.latency_ms])
