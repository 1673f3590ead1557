"""Who ends a run, and when: threads that stop it, work it through and close it side by side. No Spark is needed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import jettison as jt
from jettison.control.loop import Settings
from jettison.spark.batch.intake import Intake
from jettison.spark.batch.planning import Planning
from jettison.spark.checkpoint.small_files import LocalFolder
from jettison.spark.run.available_now import ToTheEnd
from jettison.spark.run.failures import RunFailures
from jettison.spark.run.query import RunQuery
from jettison.spark.run.run import Run

pytestmark = pytest.mark.core

ALIVE: Any = SimpleNamespace(
    sparkContext=SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: False)))
)


class Query:
    """A query that goes on until it is told to end."""

    def __init__(self, *, ended: bool = False) -> None:
        self._end = threading.Event()
        if ended:
            self.end()

    def end(self) -> None:
        self._end.set()

    def awaitTermination(self, timeout: float) -> bool:  # noqa: N802
        return self._end.wait(timeout)


class Worked:
    """A run that works through what is there, up to batch 0."""

    def __init__(
        self, folder: Path, has_more: Callable[[int], bool], last_batch: Callable[[], Any], *, ended: bool = True
    ) -> None:
        files = LocalFolder(folder)
        files.write("offsets/0", "v1\n{}\n0")
        files.write("commits/0", "v1\n{}")
        self.done: list[BaseException | None] = []
        self.first: Any = Query(ended=ended)
        self.to_the_end = ToTheEnd(
            ALIVE,
            files,
            self.first,
            has_more=has_more,
            last_batch=last_batch,
            done=self.done.append,
            starting=threading.RLock(),
        )

    def waits(self) -> bool:
        return self.to_the_end.wait(10, threading.Event())


def test_the_house_stop_waits_for_a_last_batch_that_is_being_started(tmp_path: Path) -> None:
    starts, may_start, handle = threading.Event(), threading.Event(), list[Any]()

    def last_batch() -> Any:
        starts.set()
        may_start.wait(10)
        handle.append(Query())
        return handle[0]

    worked = Worked(tmp_path, lambda batch: True, last_batch)
    assert starts.wait(10)
    stopping = threading.Thread(target=worked.to_the_end.stop, args=(10.0,))
    stopping.start()
    time.sleep(0.05)
    assert stopping.is_alive(), "whoever stops now would end the query before"
    may_start.set()
    stopping.join(10)
    assert len(handle) == 1, "there is a query to end"
    handle[0].end()
    assert worked.waits()
    assert worked.done == [], "it was stopped: who stops it closes it"


def test_the_house_no_batch_begins_after_stop(tmp_path: Path) -> None:
    worked = Worked(tmp_path, lambda batch: True, lambda: pytest.fail("started"), ended=False)
    worked.to_the_end.stop(10.0)
    worked.first.end()
    assert worked.waits()
    assert not (tmp_path / "offsets" / "1").exists()
    assert worked.done == []


def test_the_house_a_failure_between_batches_is_handed_over(tmp_path: Path) -> None:
    def unreadable(batch: int) -> bool:
        raise OSError("no listing")

    worked = Worked(tmp_path, unreadable, Query)
    assert worked.waits()
    assert [str(error) for error in worked.done] == ["no listing"]


def test_the_house_while_a_query_starts_nobody_asks_the_one_before() -> None:
    query = RunQuery(SimpleNamespace(spark=ALIVE), lambda frame, batch: None)  # type: ignore[arg-type]
    before, after = SimpleNamespace(), SimpleNamespace()
    seen: list[Any] = []

    def start() -> Any:
        seen.append(query.handle)
        return after

    def broken() -> Any:
        raise OSError("no start")

    query.handle = before  # type: ignore[assignment]
    query._begun(SimpleNamespace(start=start))  # type: ignore[arg-type]
    assert seen == [None]
    assert query.started is after
    with pytest.raises(OSError, match="no start"):
        query._begun(SimpleNamespace(start=broken))  # type: ignore[arg-type]
    assert query.started is after


def bare_run(**given: Any) -> Run:
    run = object.__new__(Run)
    run.__dict__.update({"_closed": False, "_closing": threading.RLock(), "_failure": None, "_spark": ALIVE, **given})
    return run


def test_the_house_who_closes_second_waits_until_all_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    closing, may_end, released = threading.Event(), threading.Event(), list[str]()
    run = bare_run()

    def slow() -> None:
        closing.set()
        may_end.wait(10)
        run._close()  # a step that ends in closing again does not wait for itself
        released.append("checkpoint")

    monkeypatch.setattr(Run, "_closing_steps", lambda self: [("releasing", slow)])
    first = threading.Thread(target=run._worked_through, args=(None,))
    first.start()
    assert closing.wait(10)
    second = threading.Thread(target=run._close)
    second.start()
    second.join(0.05)
    assert second.is_alive()
    may_end.set()
    second.join(10)
    assert released == ["checkpoint"]
    first.join(10)
    assert released == ["checkpoint"], "once"


def test_the_house_a_checkpoint_that_cannot_be_read_at_the_start_releases_all(monkeypatch: pytest.MonkeyPatch) -> None:
    class Unreadable:
        @property
        def start_line(self) -> str:
            raise OSError("no listing")

    released: list[str] = []
    monkeypatch.setattr(Run, "_closing_steps", lambda self: [("releasing", lambda: released.append("tables"))])
    run = bare_run(_query=Unreadable(), _failures=object.__new__(RunFailures))
    with pytest.raises(OSError, match="no listing"):
        run.begin({})
    assert released == ["tables"]


def test_the_house_a_plan_that_is_not_needed_is_not_read() -> None:
    def damaged(batch: int) -> None:
        raise jt.CheckpointError(f"plan {batch} is damaged")

    planning = object.__new__(Planning)
    planning._parts = SimpleNamespace(checkpoint=SimpleNamespace(plans=SimpleNamespace(read=damaged)))  # type: ignore[assignment]
    planning._settings = Settings(1000.0)
    planning.restore_before(8)
    planning._settings = Settings(1000.0, learn=False)
    with pytest.raises(jt.CheckpointError, match="plan 7 is damaged"):
        planning.restore_before(8)


@pytest.mark.parametrize(
    ("shedding", "dry_run", "most"), [(False, False, 18_000), (True, False, 180_000), (False, True, 180_000)]
)
def test_the_house_where_nothing_is_shed_batches_stay_bounded(shedding: bool, dry_run: bool, most: int) -> None:
    net = jt.Network("n")
    net.source("s", "a int").output("o")
    profile = jt.Profile({"o": 90.0}, {}, read_us={"s": 10.0})
    planning: Any = SimpleNamespace(
        calibrated=True, on_trial=False, dry_run=dry_run, controller=SimpleNamespace(profile=profile)
    )
    reader = SimpleNamespace(skippable=frozenset())
    parts: Any = SimpleNamespace(graph=net.graph, settings=Settings(1000.0, 0.9, shedding), reader=reader)
    intake = Intake(parts, planning, "all")
    assert intake._next_bounds({"s": 10}) == {"s": 18_000}, "two budgets of 900 ms, a row takes 100 us"
    intake._judge_backlog({"s": 10})  # a small batch: no backlog any more
    assert not intake._backlog.keeps_all
    assert intake._next_bounds({"s": 10}) == {"s": most}
