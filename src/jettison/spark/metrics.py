"""Numbers for Prometheus, at http://127.0.0.1:PORT/metrics unless another address is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, start_http_server

from jettison.errors import StartError
from jettison.plan.plan import Plan
from jettison.statistics.samples import BatchSample


class Metrics:
    """A registry of one run and the server that shows it."""

    def __init__(self, port: int, address: str = "127.0.0.1") -> None:
        self.registry = CollectorRegistry()
        make: dict[str, Any] = {"registry": self.registry}
        self._rows_in = Counter("jettison_rows_in_total", "Rows that arrived", ["source"], **make)
        self._shed = Counter("jettison_shed_rows_total", "Rows that were shed", ["arc", "reason"], **make)
        self._rejected = Counter("jettison_rejected_rows_total", "Rows that did not parse", ["source"], **make)
        self._rows_out = Counter("jettison_output_rows_total", "Rows that were delivered", ["output"], **make)
        self._batches = Counter("jettison_batches_total", "Batches that ran", **make)
        self._duration = Gauge("jettison_batch_seconds", "How long the last batch took", **make)
        self._load = Gauge("jettison_load", "Work of the last batch, nothing shed, over its budget", **make)
        self._row = Gauge("jettison_plan_row", "Road map row in force (0: nothing is shed)", **make)
        self._keep = Gauge("jettison_keep_share", "Share kept by the drop on an arc", ["arc"], **make)
        self._latency = Gauge("jettison_latency_seconds", "Latency in the last batch", ["output", "quantile"], **make)
        self._gone = Counter("jettison_gone_rows_total", "Records gone before they were read", ["source"], **make)
        self._arrivals = Gauge("jettison_topic_rows_per_second", "Records that arrive at a topic", ["topic"], **make)
        self._lag_rows = Gauge("jettison_lag_records", "Records of a topic not read yet", ["topic"], **make)
        self._lag_s = Gauge("jettison_lag_seconds", "The same in seconds of arrivals", ["topic"], **make)
        self._infeasible = Counter(
            "jettison_infeasible_batches_total", "Batches whose budget no plan could hold", **make
        )
        try:
            self._server, self._thread = start_http_server(port, addr=address, registry=self.registry)
        except OSError as error:
            raise StartError(f"metrics_port {port}: cannot listen on {address}: {error.strerror}.") from error
        self.port = self._server.server_port

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def record(self, sample: BatchSample, plan: Plan, load: float) -> None:
        """Show one batch."""
        self._batches.inc()
        self._duration.set(sample.duration_ms / 1000)
        self._load.set(load)
        self._row.set(plan.row)
        for source, count in sample.rows_in.items():
            self._rows_in.labels(source).inc(count + sample.skipped.get(source, 0))
            self._rejected.labels(source).inc(sample.rejected.get(source, 0))
        self._keep.clear()
        for arc, (rows, kept) in sample.arcs.items():
            self._keep.labels(arc).set(plan.keep(arc))
            if rows > kept:
                self._shed.labels(arc, plan.reason).inc(rows - kept)
        for source, count in sample.skipped.items():
            self._shed.labels(source, "passed over unread").inc(count)
        for source, count in sample.gone.items():
            self._gone.labels(source).inc(count)
        for name, topic in sample.topics.items():
            self._arrivals.labels(name).set(topic.rows_per_s)
            self._lag_rows.labels(name).set(topic.lag_rows)
            self._lag_s.labels(name).set(topic.lag_s)
        self._outputs(sample.outputs)

    def infeasible(self, now: bool) -> None:
        """Count a batch whose budget no plan could hold."""
        self._infeasible.inc(int(now))

    def _outputs(self, outputs: Mapping[str, Any]) -> None:
        for name, seen in outputs.items():
            self._rows_out.labels(name).inc(seen.rows)
            if seen.latency_ms is not None:
                for quantile, index in (("0.5", 3), ("0.95", 5), ("0.99", 6), ("1", 7)):
                    self._latency.labels(name, quantile).set(seen.latency_ms[index] / 1000)
