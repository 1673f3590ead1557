"""A run that works through all data that is there, and ends: `trigger="available now"`.

Spark's own trigger of that name reads all data, in as many batches as read limits ask for. The watermark of a batch is
that of the rows before it, so the last rows would close their windows in a batch that never comes. Spark's stateful
queries have a batch without data for this. So has this run:

    offsets/7   the last batch, committed
    offsets/8   the same offsets once more: Spark finds a batch that was begun, and repeats it. It has no rows
    commits/8   written by Spark when that batch has run

Whatever is killed in between, the next start finds batch 8 begun and runs it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from jettison.spark.checkpoint.small_files import Folder
from jettison.spark.ending.alive import end_query, session_alive, wait_for_end

_LOOK_EVERY_S = 0.1
_ENDING_S = 30.0


class ToTheEnd:
    """Waits for the end of a query, then lets one more batch run if windows can close, then says that all is done.

    `has_more(batch)` tells whether windows close in that batch, `last_batch` starts it. `done(None)` is called at the
    end, unless a batch failed or the run was stopped, and `done(error)` when something fails between batches.
    `starting` is held while the last batch is begun and its query started.
    """

    def __init__(
        self,
        spark: SparkSession,
        folder: Folder,
        query: StreamingQuery,
        *,
        has_more: Callable[[int], bool],
        last_batch: Callable[[], StreamingQuery],
        done: Callable[[BaseException | None], None],
        starting: threading.RLock,
    ) -> None:
        self._spark = spark
        self._folder = folder
        self._query = query
        self._has_more = has_more
        self._last_batch = last_batch
        self._done = done
        self._starting = starting
        self._stopped = False
        self._given_up = threading.Event()
        self._finished = threading.Event()
        threading.Thread(target=self._watch, name="jettison-to-the-end", daemon=True).start()

    @property
    def finished(self) -> bool:
        """Whether the last batch has run, or the run was stopped or failed."""
        return self._finished.is_set()

    def stop(self, patience_s: float) -> bool:
        """Let no more batch begin, and wait while one is being started. False when that takes longer: its query is
        stopped when it has started, and then all is done."""
        self._stopped = True
        if self._starting.acquire(timeout=min(patience_s, threading.TIMEOUT_MAX)):
            self._starting.release()
        else:
            self._given_up.set()
        return not self._given_up.is_set()

    def wait(self, timeout_s: float | None, interrupted: threading.Event) -> bool:
        """Wait for the end; False when it did not come within the time, or before somebody `interrupted`."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while not self._finished.wait(_LOOK_EVERY_S):
            if interrupted.is_set() or (deadline is not None and time.monotonic() >= deadline):
                return False
        return True

    def _watch(self) -> None:
        try:
            wait_for_end(self._spark, self._query, None)
            last = self._begun_last()
            if last is not None and not wait_for_end(self._spark, last, None, self._given_up):
                end_query(self._spark, last, _ENDING_S)
            if self._goes_on or self._given_up.is_set():
                self._done(None)
        except StreamingQueryException:
            pass  # whoever asks the query hears of it
        except BaseException as error:
            self._done(error)
        finally:
            self._finished.set()

    def _begun_last(self) -> StreamingQuery | None:
        """The query of the batch without rows; None where there is none, or the run was stopped before."""
        with self._starting:  # whoever stops the run finds the query that there is then, and what failed
            try:
                if self._goes_on and begin_empty_batch(self._folder, self._has_more):
                    return self._last_batch()
            except BaseException as error:
                self._stopped = True
                self._done(error)
            return None

    @property
    def _goes_on(self) -> bool:
        return not self._stopped and session_alive(self._spark)


def begin_empty_batch(folder: Folder, has_more: Callable[[int], bool]) -> bool:
    """Note a batch without rows behind the last one, if that is committed and `has_more` says that windows close."""
    committed = newest_batch(folder, "commits")
    if committed is None or committed != newest_batch(folder, "offsets"):
        return False
    offsets = folder.read(f"offsets/{committed}")
    if offsets is None or not has_more(committed + 1):
        return False
    return folder.create(f"offsets/{committed + 1}", offsets)


def newest_batch(folder: Folder, below: str) -> int | None:
    """The newest batch in a log of Spark's."""
    return max((int(name) for name in folder.names(below) if name.isdigit()), default=None)
