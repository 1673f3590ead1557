"""Work beside the stream that nobody waits for: a thread that measures, and can be stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable

from pyspark.sql import SparkSession

from jettison.spark.batch.calibration import Calibration
from jettison.spark.batch.processor_time import Meter, StoppedError
from jettison.spark.ending.alive import session_alive
from jettison.spark.job_descriptions import described

_PATIENCE_S = 2.0
"""A job of a sample is over by then; one that is not is broken off."""
_BREAKING_OFF_S = 5.0


class CalibrationThread:
    """One calibration: begun when it is made, `found` or `failure` when it is `done`.

    Its jobs are its own: they belong to no batch, and neither a batch that fails nor one that is repeated takes notice.
    """

    def __init__(self, spark: SparkSession, description: str, work: Callable[[Meter], Calibration]) -> None:
        self._spark = spark
        self._description = description
        self._work = work
        self._meter = Meter(spark.sparkContext)
        self._stopping = False
        self.found: Calibration | None = None
        self.failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="jettison-calibration", daemon=True)
        self._thread.start()

    @property
    def done(self) -> bool:
        return not self._thread.is_alive()

    def wait(self, timeout_s: float) -> bool:
        """Whether it is done, within some time."""
        self._thread.join(timeout_s)
        return self.done

    def stop(self) -> bool:
        """End it, by breaking off its job if need be; whether it has ended."""
        self._stopping = True
        self._meter.stop()
        if not self.wait(_PATIENCE_S):
            self._meter.cancel()
        return self.wait(_BREAKING_OFF_S)

    def _run(self) -> None:
        try:
            with described(self._spark, self._description):
                self.found = self._work(self._meter)
        except StoppedError:
            pass
        except Exception as error:  # of a session that has ended too: whoever asks decides what to say
            if not self._stopping and session_alive(self._spark):
                self.failure = error
