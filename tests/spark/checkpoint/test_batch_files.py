"""Plans and ledger, batch by batch: few files whatever the age of a run, nothing lost or doubled by a crash between.

Numbers 14 and 19 of what a run must stand: damaged files, and logs that grow for ever.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jettison as jt
from jettison.errors import CheckpointError, StartError
from jettison.options.retention import Retention
from jettison.plan.drops.random import Random
from jettison.plan.plan import Plan
from jettison.spark.checkpoint.batch_files import LARGE_SEGMENT, MARGIN, BatchFiles
from jettison.spark.checkpoint.logs import Ledger, Logged, PlanLog, shed_entries
from jettison.spark.checkpoint.small_files import LocalFolder
from jettison.spark.folder_size import Size
from jettison.statistics.records import Records
from jettison.statistics.samples import BatchSample

pytestmark = pytest.mark.core

FOR_EVER = Retention()
DAY_MS = 86_400_000.0


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda handle: None)


def files_of(folder: Path) -> BatchFiles:
    return BatchFiles(LocalFolder(folder), "plans", "the plan", "Restore batch {batch}.")


def names(folder: Path) -> list[str]:
    return LocalFolder(folder).names("plans")


def written(folder: Path, batches: range) -> BatchFiles:
    files = files_of(folder)
    for batch in batches:
        files.write(batch, {"batch": batch, "note": "as planned"})
    return files


def is_whole(folder: Path, count: int, first: int = 0) -> bool:
    """Whether all of these records are there, once each, whichever way they are read."""
    files = files_of(folder)
    read = [content["batch"] for _, content in files.contents()]
    alone = [files.read(batch)["batch"] for batch in range(first, count)]
    return read == alone == files.batches() == list(range(first, count))


def test_trust_19_old_records_are_put_together(tmp_path: Path) -> None:
    files = written(tmp_path, range(250))
    assert is_whole(tmp_path, 250)
    files.tidy(249, FOR_EVER, 0.0)
    assert [name for name in names(tmp_path) if name.endswith(".gz")] == ["0-99.jsonl.gz", "100-199.jsonl.gz"]
    assert len(names(tmp_path)) == 2 + 50
    assert is_whole(tmp_path, 250)
    assert files.read(250) is None


def test_trust_19_the_newest_stay_as_they_are(tmp_path: Path) -> None:
    files = written(tmp_path, range(100 + MARGIN))
    files.tidy(98 + MARGIN, FOR_EVER, 0.0)
    assert len(names(tmp_path)) == 100 + MARGIN
    files.tidy(99 + MARGIN, FOR_EVER, 0.0)
    assert len(names(tmp_path)) == 1 + MARGIN


def test_trust_19_segments_become_large_ones(tmp_path: Path) -> None:
    files = files_of(tmp_path)
    for batch in range(0, LARGE_SEGMENT + 130, 10):  # every tenth, to save time
        files.write(batch, {"batch": batch})
        if batch % 1000 == 500:
            files.tidy(batch, FOR_EVER, 0.0)
    files.tidy(LARGE_SEGMENT + 129, FOR_EVER, 0.0)
    assert names(tmp_path)[0] == "0-9999.jsonl.gz"
    assert len(names(tmp_path)) == 2 + 3
    assert files.batches() == list(range(0, LARGE_SEGMENT + 130, 10))
    assert files.read(4560) == {"batch": 4560}


class KilledError(Exception):
    """Stands for the end of a process."""


@pytest.mark.parametrize("after", range(6))
def test_trust_19_a_crash_between_two_steps_loses_and_doubles_nothing(tmp_path: Path, after: int) -> None:
    """KilledError before the segment, after it, and after some of the files that it replaces were deleted."""
    written(tmp_path, range(150))
    folder = LocalFolder(tmp_path)
    steps = 0

    def counted(step: Callable[..., None]) -> Callable[..., None]:
        def run(*given: object) -> None:
            nonlocal steps
            if steps == after:
                raise KilledError
            steps += 1
            step(*given)

        return run

    folder.write_bytes = counted(folder.write_bytes)  # type: ignore[method-assign]
    folder.delete = counted(folder.delete)  # type: ignore[method-assign]
    with pytest.raises(KilledError):
        BatchFiles(folder, "plans", "the plan", "").tidy(149, FOR_EVER, 0.0)
    assert is_whole(tmp_path, 150)
    files_of(tmp_path).tidy(149, FOR_EVER, 0.0)
    assert is_whole(tmp_path, 150)
    assert len(names(tmp_path)) == 51


def test_trust_19_a_reader_beside_a_run_sees_every_record_once(tmp_path: Path) -> None:
    """Records that become a segment, and segments that become a large one, while somebody reads."""
    files = written(tmp_path, range(250))
    reader = files_of(tmp_path)
    listed = reader._found()
    files.tidy(249, FOR_EVER, 0.0)
    reader._found = lambda: listed  # type: ignore[method-assign]
    assert [batch for batch, _ in reader.contents()] == list(range(250))


@pytest.mark.parametrize(
    ("retention", "now_ms", "left"),
    [(Retention.of(200), 0.0, 300), (Retention.of("1 day"), 1.5 * DAY_MS, 400), (FOR_EVER, 1e15, 0)],
)
def test_trust_19_what_is_older_than_the_retention_is_deleted(
    tmp_path: Path, retention: Retention, now_ms: float, left: int
) -> None:
    files = files_of(tmp_path)
    for batch in range(520):
        files.write(batch, {"batch": batch})
        if batch % 100 == MARGIN:
            files.tidy(batch, FOR_EVER, DAY_MS if batch > 500 else 0.0)
    files_of(tmp_path).tidy(519, retention, now_ms)
    assert is_whole(tmp_path, 520, first=left)


def test_trust_19_files_are_few_and_bounded_whatever_the_age(tmp_path: Path) -> None:
    files, most = files_of(tmp_path), 0
    for batch in range(2000):
        files.write(batch, {"batch": batch})
        if batch % 100 == MARGIN:
            most = max(most, len(names(tmp_path)))
            files.tidy(batch, Retention.of(300), 0.0)
    assert most <= 100 + MARGIN + 1 + 4
    assert 300 <= 2000 - files.batches()[0] <= 300 + 200 + MARGIN


def test_trust_14_other_files_are_not_ours(tmp_path: Path) -> None:
    """Copies that editors and people leave."""
    ledger, log = Ledger(LocalFolder(tmp_path)), PlanLog(LocalFolder(tmp_path))
    ledger.write(1, [{"batch": 1}])
    log.write(Logged(1, Plan(), Records({"trips": 5})))
    for below in ("ledger", "plans"):
        for name in ("1.json.bak", "2.json.bak", "1 (copy).json", "1.json~", "#1.json#", "notes.txt", "x-y.jsonl.gz"):
            (tmp_path / below / name).write_text("half of a fi")
    assert list(ledger.entries()) == [{"batch": 1}]
    assert log.batches() == [1]
    log.files.tidy(500, Retention.of(1), 0.0)
    assert (tmp_path / "plans" / "1.json.bak").exists()


def test_trust_14_records_from_before_there_were_checksums_are_read(tmp_path: Path) -> None:
    log, ledger = PlanLog(LocalFolder(tmp_path)), Ledger(LocalFolder(tmp_path))
    log.write(Logged(3, Plan(reason="by hand"), Records({"trips": 5})))
    path = tmp_path / "plans" / "3.json"
    content = json.loads(path.read_text())
    assert content.pop("crc32")
    path.write_text(json.dumps(content))
    (tmp_path / "ledger").mkdir()
    (tmp_path / "ledger" / "3.json").write_text('[{"batch": 3}]')
    before = log.read(3)
    log.files.tidy(500, FOR_EVER, 0.0)
    ledger.files.tidy(500, FOR_EVER, 0.0)
    assert names(tmp_path) == ["0-99.jsonl.gz"]
    assert log.read(3) == before
    assert before is not None
    assert before.plan.reason == "by hand"
    assert list(ledger.entries()) == [{"batch": 3}]


def cut_off(content: bytes) -> bytes:
    return content[: len(content) // 2]


def with_another_bit(content: bytes) -> bytes:
    at = content.index(b"500") if b"500" in content else len(content) // 2
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def emptied(content: bytes) -> bytes:
    return b""


def of_another_kind(content: bytes) -> bytes:
    return b'{"some": "thing"}'


@pytest.mark.parametrize("damage", [cut_off, with_another_bit, emptied, of_another_kind])
def test_trust_14_a_damaged_plan_is_named_with_the_remedy(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    log = PlanLog(LocalFolder(tmp_path))
    log.write(Logged(7, Plan(), Records({"trips": 500})))
    path = tmp_path / "plans" / "7.json"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(CheckpointError, match=rf"the plan of batch 7, file {path}, is damaged.*Restore it from a copy"):
        log.read(7)


@pytest.mark.parametrize("damage", [cut_off, with_another_bit])
def test_trust_14_a_damaged_ledger_is_named_with_the_remedy(tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    ledger = Ledger(LocalFolder(tmp_path))
    for batch in (6, 7):
        ledger.write(batch, [{"batch": batch, "rows_in": 500}])
    path = tmp_path / "ledger" / "7.json"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(CheckpointError, match=rf"the ledger of batch 7, file {path}, is damaged.*delete it"):
        list(ledger.entries())
    ledger.files.tidy(500, FOR_EVER, 0.0)
    assert path.exists(), "it is not thrown away unasked"
    path.unlink()
    assert [entry["batch"] for entry in ledger.entries()] == [6]


@pytest.mark.parametrize("damage", [cut_off, with_another_bit, emptied])
def test_trust_14_a_damaged_segment_is_named_and_does_not_stop_others(
    tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    files = written(tmp_path, range(250))
    files.tidy(249, FOR_EVER, 0.0)
    path = tmp_path / "plans" / "0-99.jsonl.gz"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(CheckpointError, match=rf"batches 0 to 99, file {path}, is damaged"):
        files_of(tmp_path).read(7)
    assert files.read(107) == {"batch": 107, "note": "as planned"}
    files_of(tmp_path).tidy(249, Retention.of("1 day"), 2 * DAY_MS)
    assert not (tmp_path / "plans" / "100-199.jsonl.gz").exists()


@pytest.mark.parametrize("given", ["soon", "0 days", 0, -5, 1.5, True])
def test_trust_19_a_retention_that_makes_no_sense_is_refused(given: Any) -> None:
    with pytest.raises(StartError, match=r"retention is .*: write a duration, such as '7 days'"):
        Retention.of(given)


def test_trust_19_a_parquet_sink_says_how_large_it_is(tmp_path: Path) -> None:
    (tmp_path / "batch=0").mkdir()
    for name in ("a.parquet", "b.parquet"):
        (tmp_path / "batch=0" / name).write_bytes(b"x" * 100)
    assert jt.parquet(str(tmp_path)).size() == jt.parquet(f"file://{tmp_path}").size() == Size(files=2, bytes=200)
    with pytest.raises(StartError, match="not on this machine"):
        jt.parquet("hdfs://somewhere/out").size()


def test_trust_14_a_record_copied_over_that_of_another_batch_is_refused(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path)
    plans, ledger = PlanLog(folder), Ledger(folder)
    for batch in (6, 7):
        plans.write(Logged(batch, Plan(), Records({"trips": 500})))
        ledger.write(batch, [])
    for below, what in (("plans", "plan"), ("ledger", "ledger")):
        path = tmp_path / below / "7.json"
        path.write_bytes((tmp_path / below / "6.json").read_bytes())
        fault = rf"the {what} of batch 7, file {path}, is damaged \(it is that of batch 6\)\. Restore it from a copy"
        with pytest.raises(CheckpointError, match=fault):
            plans.read(7) if below == "plans" else list(ledger.entries())
    plans.files.tidy(500, FOR_EVER, 0.0)
    assert (tmp_path / "plans" / "7.json").exists(), "it is not put together with others"
    folder.write("ledger/7.json", '{"entries": [{"batch": 6}]}')  # of an earlier version
    with pytest.raises(CheckpointError, match="it is that of batch 6"):
        list(ledger.entries())


def test_trust_14_a_segment_copied_over_another_is_refused(tmp_path: Path) -> None:
    files = written(tmp_path, range(250))
    files.tidy(249, FOR_EVER, 0.0)
    path = tmp_path / "plans" / "100-199.jsonl.gz"
    path.write_bytes((tmp_path / "plans" / "0-99.jsonl.gz").read_bytes())
    fault = rf"batches 100 to 199, file {path}, is damaged \(it has batch 0\)"
    with pytest.raises(CheckpointError, match=fault):
        files_of(tmp_path).read(107)


@pytest.mark.parametrize("damage", [cut_off, with_another_bit, emptied])
def test_trust_14_a_damaged_segment_is_named_and_others_are_tidied(
    tmp_path: Path, damage: Callable[[bytes], bytes], caplog: pytest.LogCaptureFixture
) -> None:
    files = written(tmp_path, range(130))
    files.tidy(129, FOR_EVER, 0.0)
    path = tmp_path / "plans" / "0-99.jsonl.gz"
    path.write_bytes(damage(path.read_bytes()))
    written(tmp_path, range(7, 8))  # a crash had left it
    written(tmp_path, range(130, 350))
    files_of(tmp_path).tidy(349, FOR_EVER, 0.0)
    assert f"file {path}, is damaged" in caplog.text
    assert {"7.json", "100-199.jsonl.gz", "200-299.jsonl.gz"} < set(names(tmp_path))
    assert "107.json" not in names(tmp_path)


def test_the_newest_records_are_read_backwards_and_every_segment_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading 3,600 batches one by one, each from its segment, took minutes."""
    folder = LocalFolder(tmp_path)
    ledger = Ledger(folder)
    for batch in range(350):
        ledger.write(batch, [{"batch": batch}], {"queries": {"o": {"sic": batch / 1000}}})
    ledger.files.tidy(349, FOR_EVER, 0.0)
    opened: list[str] = []
    read = LocalFolder.read_bytes

    def counted(self: LocalFolder, name: str) -> bytes | None:
        found = read(self, name)
        opened.extend([name] if found is not None and name.endswith(".gz") else [])
        return found

    monkeypatch.setattr(LocalFolder, "read_bytes", counted)
    assert [content["batch"] for content in ledger.before(350)] == list(range(349, -1, -1))
    assert len(opened) == len(set(opened)) == 3
    assert [row[:3] for row in ledger.queries()][:2] == [(0, "o", 0.0), (1, "o", 0.001)]
    folder.delete("ledger/0-99.jsonl.gz")
    assert [content["batch"] for content in ledger.before(102)] == [101, 100]


def test_what_is_kept_beside_the_ledger_never_takes_the_place_of_what_was_shed(tmp_path: Path) -> None:
    """What SIC rests on travels in the same record, under keys of its own."""
    ledger, shed = Ledger(LocalFolder(tmp_path)), [{"batch": 0, "arc": "trips", "rows_shed": 7}]
    ledger.write(0, shed, {"entries": {"zones": {}}, "batch": 9, "window_parts": {"zones": {"from_us": 1}}})
    assert list(ledger.entries()) == shed
    (record,) = ledger.before(1)
    assert (record["batch"], record["window_parts"]) == (0, {"zones": {"from_us": 1}})


def test_rows_that_no_drop_took_are_not_among_those_that_were_shed(tmp_path: Path) -> None:
    """Unparsed rows stood under `rows_shed`, where the report counted no drop. Ledgers of earlier versions still do."""
    ledger = Ledger(LocalFolder(tmp_path))
    sample = BatchSample(0, 0.0, 1e3, 9e2, {"s": 90}, arcs={"s": (81, 40)}, rejected={"s": 9}, gone={"s": 10})
    ledger.write(0, shed_entries(sample, Plan({"s": Random(0.5)}, "overload")))
    before = {"batch": 1, "arc": "s", "rows_in": 9, "rows_shed": 3, "reason": "does not parse", "plan_row": 0}
    ledger.write(1, [before])
    rows = [dict(zip(Ledger.NAMES, row, strict=True)) for row in ledger.rows()]
    assert [(row["batch"], row["rows_shed"], row["rows_rejected"], row["rows_gone"]) for row in rows] == [
        (0, 41, 0, 0),
        (0, 0, 9, 0),
        (0, 0, 0, 10),
        (1, 0, 3, 0),
    ]
