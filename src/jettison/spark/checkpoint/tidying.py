"""Keep a checkpoint small, in a thread beside the run: old records are put together, then deleted with dead letters.

Everything is done in small steps, each of which may be the last one: closing waits for one of them, however much there
is to do, and the next run goes on.
"""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from jettison.options.retention import Retention
from jettison.spark.checkpoint.batch_files import MARGIN, SEGMENT, BatchFiles
from jettison.spark.checkpoint.run_clock import RunClock
from jettison.spark.checkpoint.small_files import Folder

DEAD_LETTERS = "dead_letters"
_BATCH = re.compile(r"batch=(\d+)")
_log = logging.getLogger(__name__)


class Tidying:
    """Tidies the records of a run. `check_held` raises when the checkpoint is no longer ours.

    `with_dead_letters` says that the folder `dead_letters` is the run's own: what is older than the retention is
    deleted there too. It is False where the user has chosen where dead letters are kept.
    """

    def __init__(
        self,
        folder: Folder,
        records: Sequence[BatchFiles],
        retention: Retention,
        check_held: Callable[[], None] = lambda: None,
        *,
        clock: RunClock | None = None,
    ) -> None:
        self._clock = clock or RunClock(lambda: None)
        self.with_dead_letters = False
        self._folder = folder
        self._records = records
        self._retention = retention
        self._check_held = check_held
        self._begun = False
        self._ended = threading.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="jettison-tidy")

    def after(self, batch: int) -> None:
        """Tidy beside the run, every hundred batches and after a start."""
        if not self._begun or batch % SEGMENT == MARGIN:
            self._begun = True
            with suppress(RuntimeError):  # closed meanwhile: the next run does it
                self._thread.submit(self._tidy, batch)

    def close(self) -> None:
        """Stop after the step that is being done."""
        self._ended.set()
        self._thread.shutdown(wait=True, cancel_futures=True)

    def _tidy(self, batch: int) -> None:
        for records in self._records:
            try:
                for _ in self._steps(records, batch):
                    if self._ended.is_set():
                        return
                    self._check_held()
            except Exception as error:  # the run goes on: more files are there than need be, and it is tried again
                _log.warning("checkpoint %r: old records could not be put together (%s)", self._folder.path, error)

    def _steps(self, records: BatchFiles, batch: int) -> Iterator[None]:
        yield
        deleted = -1
        for last in records.steps(batch, self._retention, self._clock.now_ms()):
            deleted = deleted if last is None else max(deleted, last)
            yield
        if deleted >= 0 and self.with_dead_letters:
            yield from self._delete_dead_letters(deleted)

    def _delete_dead_letters(self, until: int) -> Iterator[None]:
        """Delete the dead letters of batches up to this one, also those that a crash has left."""
        for name in self._folder.folders(DEAD_LETTERS):
            found = _BATCH.fullmatch(name)
            if found and int(found[1]) <= until:
                self._folder.delete(f"{DEAD_LETTERS}/{name}")
                yield
