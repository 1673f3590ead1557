"""The work of Spark jobs: the processor time of their tasks, whatever runs beside them.

Spark gives `executorCpuTime` by stage in its REST API, which has a port, and in the store behind that API, which has
none. The store is Spark's own: this file alone reads it. Where it is not as expected, jobs are measured by the clock.
"""

from __future__ import annotations

import itertools
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from py4j.protocol import Py4JError
from pyspark import SparkContext

_GROUP = "spark.jobGroup.id"
_LISTENER_TIMEOUT_MS = 500
"""How long Spark may take to hear of a job that has ended: its listeners come later than the caller."""
_WAITING = 2.0

T = TypeVar("T")


class StoppedError(Exception):
    """A meter that was stopped is asked to run another job."""


@dataclass(frozen=True)
class Work:
    """What a job took: processor time of its tasks, their run time, the time by the clock, and how many tasks its
    widest stage had.

    >>> Work(cpu_ms=100.0, run_ms=130.0, wall_ms=90.0, tasks=2).busy_ms
    100.0
    >>> Work(cpu_ms=5.0, run_ms=130.0, wall_ms=150.0, tasks=1).busy_ms  # of a Python worker, or of a broker
    130.0
    """

    cpu_ms: float
    run_ms: float
    wall_ms: float
    tasks: int

    @property
    def busy_ms(self) -> float:
        """Processor time; run time where tasks mostly wait for something else."""
        return self.cpu_ms if _WAITING * self.cpu_ms >= self.run_ms else self.run_ms

    @property
    def beside_ms(self) -> float:
        """What a job takes on the driver, before, between and after its tasks; at least."""
        return max(0.0, self.wall_ms - self.run_ms)


def task_slots(context: SparkContext) -> int:
    """How many tasks run at once: the slots of all executors, whatever `spark.default.parallelism` says."""
    try:
        spark: Any = context._jsc.sc()
        executors = spark.statusStore().executorList(True)
        slots = sum(executors.apply(number).maxTasks() for number in range(executors.size()))
    except (Py4JError, TypeError, AttributeError):
        slots = 0
    return slots or context.defaultParallelism


class Meter:
    """Runs jobs one after the other, and says what each took. `stop`, from another thread, ends it."""

    def __init__(self, context: SparkContext) -> None:
        self._context = context
        self._name = f"jettison-calibration-{uuid.uuid4()}"
        self._numbers = itertools.count()
        self._group = ""
        self._stopped = threading.Event()
        self.cpu_ms = 0.0

    @property
    def cores(self) -> int:
        """How many tasks run at once."""
        return task_slots(self._context)

    def run(self, job: Callable[[], T]) -> tuple[T, Work]:
        """Run a job of this thread."""
        if self._stopped.is_set():
            raise StoppedError
        before = self._context.getLocalProperty(_GROUP)
        self._group = f"{self._name}-{next(self._numbers)}"
        self._context.setLocalProperty(_GROUP, self._group)
        try:
            began = time.perf_counter()
            found = job()
            wall_ms = 1000 * (time.perf_counter() - began)
            work = self._work(wall_ms)
        finally:
            with suppress(Py4JError, OSError, AttributeError):  # a session that has ended must not hide why
                self._context.setLocalProperty(_GROUP, before)  # type: ignore[arg-type]
        self.cpu_ms += work.cpu_ms
        return found, work

    def stop(self) -> None:
        """Begin no more jobs."""
        self._stopped.set()

    def cancel(self) -> None:
        """Break off the job that runs."""
        with suppress(Py4JError, OSError, AttributeError):
            self._context.cancelJobGroup(self._group)

    def _work(self, wall_ms: float) -> Work:
        """What the last job took, as Spark's store has it; by the clock where it has nothing, or only a part."""
        try:
            spark: Any = self._context._jsc.sc()
            with suppress(Py4JError):  # listeners that are behind: `all_ended` notices
                spark.listenerBus().waitUntilEmpty(_LISTENER_TIMEOUT_MS)
            tracker, store = self._context.statusTracker(), spark.statusStore()
            jobs = [tracker.getJobInfo(number) for number in tracker.getJobIdsForGroup(self._group)]
            numbers = {stage for job in jobs if job is not None for stage in job.stageIds}
            stages = [store.lastStageAttempt(number) for number in numbers]
            ran = [stage for stage in stages if stage.numCompleteTasks() > 0]
            ended = all_ended(
                [None if job is None else job.status for job in jobs], [stage.status().toString() for stage in stages]
            )
            if ran and ended:
                cpu_ms = sum(stage.executorCpuTime() for stage in ran) / 1e6
                run_ms = float(sum(stage.executorRunTime() for stage in ran))
                return Work(cpu_ms, run_ms, wall_ms, max(stage.numTasks() for stage in ran))
        except (Py4JError, TypeError, AttributeError):
            pass
        return Work(wall_ms, wall_ms, wall_ms, 1)


def all_ended(jobs: Sequence[str | None], stages: Sequence[str]) -> bool:
    """Whether the store has heard the end of every job and of every stage that was not skipped: a job that it has heard
    in part would seem to take less than it did.

    >>> all_ended(["SUCCEEDED"], ["COMPLETE", "SKIPPED"]), all_ended(["SUCCEEDED", "RUNNING"], ["COMPLETE"])
    (True, False)
    >>> all_ended(["SUCCEEDED"], ["COMPLETE", "ACTIVE"]), all_ended([None], [])
    (False, False)
    """
    return all(job == "SUCCEEDED" for job in jobs) and all(stage in ("COMPLETE", "SKIPPED") for stage in stages)
