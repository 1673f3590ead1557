"""Why a run failed, in words that name the network, what became of its batch, and what to do."""

from __future__ import annotations

import logging
import tempfile
from typing import NoReturn

from pyspark.errors import AnalysisException

from jettison.errors import CheckpointError, JettisonError, SessionError, SinkError, SourceError, StartError
from jettison.spark.batch.parts import RunParts
from jettison.spark.checkpoint.spark_files import checksum_fault
from jettison.spark.ending.alive import session_alive
from jettison.spark.ending.full_disk import full_disk
from jettison.spark.error_text import reason_of, shown_cause, without_our_frames
from jettison.spark.read.kafka import hint

_log = logging.getLogger("jettison")


class RunFailures:
    """What one run says of its failures."""

    def __init__(self, parts: RunParts) -> None:
        self._spark, self._graph = parts.spark, parts.graph
        self._path = parts.checkpoint.path
        self._sources = ", ".join(repr(source.name) for source in parts.graph.sources)

    def at_start(self, error: BaseException) -> BaseException:
        """What to raise when the query does not start."""
        damage = checksum_fault(str(error))
        if damage is not None:
            return damage
        if not isinstance(error, AnalysisException):  # such as an aggregate before the network
            return error
        return StartError(f"network {self._graph.name!r}: {reason_of(error)} Sources: {self._sources}.")

    def raise_at_start(self, error: BaseException) -> NoReturn:
        """Raise what to say when the query does not start."""
        explained = self.at_start(error)
        if explained is error:
            raise error
        raise explained from (error if isinstance(explained, StartError) else shown_cause(error))

    def raise_explained(self, error: BaseException, failure: BaseException | None) -> NoReturn:
        """Raise what a run failed with (`explained`), with its first cause in few lines."""
        explained = self.explained(error, failure)
        _log.debug("network %s failed", self._graph.name, exc_info=error)
        cause = shown_cause(explained.__cause__ if explained is failure else failure or error)
        raise explained.with_traceback(None) from without_our_frames(cause)

    def session_ended(self) -> SessionError:
        return SessionError(
            f"network {self._graph.name!r}: its Spark session has ended while it ran (spark.stop(), or the driver's "
            f"JVM is gone). What is not committed is repeated: start again, in a new session, with checkpoint "
            f"{self._path!r}; call run.stop() before spark.stop()."
        )

    def hangs(self, patience_s: float) -> SinkError:
        """What to raise when a batch does not end."""
        return SinkError(
            f"network {self._graph.name!r}: the batch that runs has not ended, though stop() waited {patience_s:g} s "
            f"and then broke it off: a sink, or a function of the network, hangs. The batch is not committed, and "
            f"checkpoint {self._path!r} stays in use until it ends: end this process, mend the sink and start again."
        )

    def still_starting(self, patience_s: float) -> SourceError:
        """What to raise when Spark does not finish starting a query."""
        return SourceError(
            f"network {self._graph.name!r}: a query of it is still starting, though stop() waited {patience_s:g} s: a "
            f"source hangs ({self._sources}). It is stopped as soon as it has started, and checkpoint {self._path!r} "
            f"stays in use until then: mend the source, or end this process."
        )

    def no_ledger(self) -> StartError:
        """What to raise when a ledger is asked for and no session is there to read it."""
        return StartError(
            f"network {self._graph.name!r}: the ledger is a DataFrame, and its Spark session has ended: ask before "
            f"spark.stop(), or read the files in {self._path}/ledger."
        )

    def explained(self, error: BaseException, failure: BaseException | None) -> BaseException:
        """What Spark threw, explained; `failure` is what was noted in the batch, if it failed there."""
        if isinstance(failure, JettisonError):
            return failure
        if not session_alive(self._spark):
            return self.session_ended()
        detail = reason_of(failure or error)
        damage = checksum_fault(f"{detail} {error}")
        if damage is not None:
            return damage
        again = f"start again with checkpoint {self._path!r}."
        temporary = self._spark.conf.get("spark.local.dir", None) or tempfile.gettempdir()
        full = full_disk(f"{detail} {error}", {"the checkpoint": self._path, "Spark's temporary folder": temporary})
        if full is not None:
            return CheckpointError(
                f"network {self._graph.name!r} stopped: {full} The batch is not committed: then {again}"
            )
        on_kafka = any(source.kafka is not None for source in self._graph.sources)
        advice = hint(f"{detail} {error}") if on_kafka else ""
        return SourceError(
            f"network {self._graph.name!r} stopped: {detail}{' ' if advice else ''}{advice} Sources: {self._sources}. "
            f"The batch is not committed: mend the cause and {again}"
        )
