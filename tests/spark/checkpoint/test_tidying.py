"""Tidying a checkpoint takes no longer, and holds no more, the older a run gets; dead letters go with the records.

Number 19 of what a run must stand: logs that grow for ever. No JVM.
"""

from __future__ import annotations

import os
import random
import time
import tracemalloc
from itertools import islice
from pathlib import Path

import pytest

from jettison.errors import CheckpointError
from jettison.options.retention import Retention
from jettison.spark.checkpoint import batch_files
from jettison.spark.checkpoint.batch_files import LARGE_SEGMENT, MARGIN, SEGMENT, BatchFiles
from jettison.spark.checkpoint.small_files import LocalFolder
from jettison.spark.checkpoint.tidying import Tidying

pytestmark = pytest.mark.core

FOR_EVER = Retention()
WEEK = Retention.of("7 days")
DAY_MS = 86_400_000.0
NOW_MS = 1_700_000_000_000.0


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda handle: None)


class WatchedFolder(LocalFolder):
    """Notes what is read in full and asked for, and may be slow to delete."""

    def __init__(self, path: Path, slow_s: float = 0.0) -> None:
        super().__init__(path)
        self.read_whole: list[str] = []
        self.sized: list[str] = []
        self.deleted: list[str] = []
        self._slow_s = slow_s

    def read_bytes(self, name: str) -> bytes | None:
        self.read_whole.append(name)
        return super().read_bytes(name)

    def size(self, name: str) -> int:
        self.sized.append(name)
        return super().size(name)

    def delete(self, name: str) -> None:
        time.sleep(self._slow_s)
        self.deleted.append(name)
        super().delete(name)


def files_of(folder: LocalFolder) -> BatchFiles:
    return BatchFiles(folder, "plans", "the plan", "Restore batch {batch}.")


def segments(path: Path) -> list[str]:
    return sorted(each.name for each in (path / "plans").glob("*.gz"))


def written(path: Path, batches: range, now_ms: float = NOW_MS, note: str = "as planned") -> None:
    """Records, tidied after every hundred batches as in a run."""
    files = files_of(LocalFolder(path))
    for batch in batches:
        files.write(batch, {"batch": batch, "note": note})
        if batch % SEGMENT == MARGIN:
            files.tidy(batch, FOR_EVER, now_ms)


def all_but_joined(path: Path, count: int, every: int = 25, size: int = 10) -> BatchFiles:
    """Small segments of which the next round makes a large one; content that hardly shrinks."""
    folder = LocalFolder(path)
    files, chance = files_of(folder), random.Random(11)
    for batch in range(0, count, every):
        files.write(batch, {"batch": batch, "note": chance.randbytes(size // 2).hex()})
    files.tidy(LARGE_SEGMENT - 1, FOR_EVER, NOW_MS)  # the last of them are too new
    return files


@pytest.mark.parametrize("retention", [FOR_EVER, Retention.of(10_000), WEEK])
def test_trust_19_a_start_reads_no_old_segment(tmp_path: Path, retention: Retention) -> None:
    """All of them were unpacked after each start, whatever the retention was."""
    written(tmp_path, range(521))
    folder = WatchedFolder(tmp_path)
    files_of(folder).tidy(525, retention, NOW_MS + 6.9 * DAY_MS)
    assert folder.read_whole == []
    assert len(segments(tmp_path)) == 5


def test_trust_19_the_age_of_a_segment_is_in_its_header(tmp_path: Path) -> None:
    written(tmp_path, range(221))
    written(tmp_path, range(221, 521), NOW_MS + DAY_MS)
    folder = WatchedFolder(tmp_path)
    files_of(folder).tidy(525, WEEK, NOW_MS + 7.5 * DAY_MS)
    assert segments(tmp_path) == ["200-299.jsonl.gz", "300-399.jsonl.gz", "400-499.jsonl.gz"]
    read = {each.rpartition("/")[2] for each in folder.read_whole}
    assert read == {"0-99.jsonl.gz", "100-199.jsonl.gz"}, "lines are asked only of what is deleted"


def test_trust_14_a_flipped_bit_in_the_header_of_a_segment_deletes_nothing(tmp_path: Path) -> None:
    """The header of gzip, which has the time, has no checksum."""
    written(tmp_path, range(221))
    files_of(LocalFolder(tmp_path)).tidy(225, WEEK, NOW_MS)
    before = segments(tmp_path)
    (segment,) = tmp_path.rglob(before[0])
    damaged = bytearray(segment.read_bytes())
    damaged[7] ^= 0x40
    segment.write_bytes(damaged)
    files_of(LocalFolder(tmp_path)).tidy(225, WEEK, NOW_MS + DAY_MS)
    assert before[0] in segments(tmp_path)


def test_trust_19_a_clock_that_was_wrong_keeps_no_other_segment(tmp_path: Path) -> None:
    written(tmp_path, range(130), NOW_MS + 5000 * DAY_MS)
    written(tmp_path, range(130, 330))
    files_of(LocalFolder(tmp_path)).tidy(325, WEEK, NOW_MS + 8 * DAY_MS)
    assert segments(tmp_path) == ["0-99.jsonl.gz"]


def test_trust_19_large_segments_are_joined_without_unpacking(tmp_path: Path) -> None:
    """10,000 plans were held as text three times over: gigabytes, with shares for many strata."""
    all_but_joined(tmp_path, LARGE_SEGMENT, size=20_000)
    text = 400 * 20_000
    assert len(segments(tmp_path)) == 99
    fresh = files_of(LocalFolder(tmp_path))
    tracemalloc.start()
    try:
        fresh.tidy(LARGE_SEGMENT + MARGIN, WEEK, NOW_MS + DAY_MS)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert segments(tmp_path) == ["0-9999.jsonl.gz"]
    assert peak < 1.5 * text  # hexadecimal digits shrink to half, and are held twice
    assert fresh.batches() == list(range(0, LARGE_SEGMENT, 25))
    assert fresh.read(4575)["batch"] == 4575
    fresh.tidy(LARGE_SEGMENT + MARGIN, WEEK, NOW_MS + 7.5 * DAY_MS)
    assert segments(tmp_path) == ["0-9999.jsonl.gz"], "its age is that of its last record"
    fresh.tidy(LARGE_SEGMENT + MARGIN, WEEK, NOW_MS + 8.1 * DAY_MS)
    assert segments(tmp_path) == []


def test_trust_19_segments_that_are_large_already_are_not_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_files, "MOST_JOINED_BYTES", 5000)
    all_but_joined(tmp_path, LARGE_SEGMENT)
    folder = WatchedFolder(tmp_path)
    files = files_of(folder)
    files.tidy(LARGE_SEGMENT + MARGIN, WEEK, NOW_MS)
    assert len(segments(tmp_path)) == 100
    assert 0 < len(folder.sized) < 100
    folder.sized.clear()
    files.tidy(LARGE_SEGMENT + MARGIN, WEEK, NOW_MS)
    assert folder.sized == []
    assert files.batches() == list(range(0, LARGE_SEGMENT, 25))


def test_trust_14_a_damaged_segment_does_not_spoil_a_large_one(tmp_path: Path) -> None:
    all_but_joined(tmp_path, LARGE_SEGMENT, size=400)
    path = tmp_path / "plans" / "500-599.jsonl.gz"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    files = files_of(LocalFolder(tmp_path))
    files.tidy(LARGE_SEGMENT + MARGIN, WEEK, NOW_MS)
    assert segments(tmp_path) == ["0-9999.jsonl.gz", "500-599.jsonl.gz"]
    with pytest.raises(CheckpointError, match=rf"batches 500 to 599, file {path}, is damaged"):
        files.read(525)
    path.unlink()
    assert [batch for batch, _ in files.contents()] == [n for n in range(0, LARGE_SEGMENT, 25) if n // 100 != 5]


@pytest.mark.parametrize("after", [1, 50, 99, 101, 205, 304])
def test_trust_19_tidying_may_end_after_any_step(tmp_path: Path, after: int) -> None:
    all_but_joined(tmp_path, LARGE_SEGMENT, every=50)
    files = files_of(LocalFolder(tmp_path))
    everything = list(range(0, LARGE_SEGMENT, 50))
    for _ in islice(files.steps(LARGE_SEGMENT + MARGIN, WEEK, NOW_MS), after):
        pass
    assert [batch for batch, _ in files.contents()] == files.batches() == everything
    again = files_of(LocalFolder(tmp_path))
    again.tidy(LARGE_SEGMENT + MARGIN, WEEK, NOW_MS)
    assert segments(tmp_path) == ["0-9999.jsonl.gz"]
    assert [batch for batch, _ in again.contents()] == everything
    assert len(list(again._numbered("0-9999.jsonl.gz"))) == len(everything), "nothing is there twice"


def test_trust_19_closing_waits_for_one_step(tmp_path: Path) -> None:
    """It waited for all of them: here 500 files at 20 ms each."""
    files = files_of(LocalFolder(tmp_path))
    for batch in range(520):
        files.write(batch, {"batch": batch})
    folder = WatchedFolder(tmp_path, slow_s=0.02)
    tidying = Tidying(folder, [files_of(folder)], FOR_EVER)
    tidying.after(519)
    deadline = time.monotonic() + 30
    while not folder.deleted and time.monotonic() < deadline:
        time.sleep(0.001)
    began = time.monotonic()
    tidying.close()
    assert time.monotonic() - began < 1.0
    assert 0 < len(folder.deleted) < 100
    assert files.batches() == list(range(520))
    tidying.after(619)  # closed: the next run does it


def test_trust_16_nothing_is_tidied_by_who_no_longer_holds_the_checkpoint(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = files_of(LocalFolder(tmp_path))
    for batch in range(220):
        files.write(batch, {"batch": batch})

    def lost() -> None:
        raise CheckpointError("this run no longer holds it")

    tidying = Tidying(LocalFolder(tmp_path), [files], FOR_EVER, lost)
    tidying.after(219)
    tidying._thread.shutdown(wait=True)
    assert segments(tmp_path) == []
    assert "no longer holds it" in caplog.text


@pytest.mark.parametrize("with_dead_letters", [True, False])
def test_trust_19_dead_letters_are_deleted_with_the_records_of_their_batches(
    tmp_path: Path, with_dead_letters: bool
) -> None:
    """A folder for each batch with a row that does not parse stayed for ever."""
    for batch in (*range(0, 520, 3), 600):
        (tmp_path / "dead_letters" / f"batch={batch}").mkdir(parents=True)
        (tmp_path / "dead_letters" / f"batch={batch}" / "part-0.parquet").write_bytes(b"x")
    (tmp_path / "dead_letters" / "batch=5.old").mkdir()
    files = files_of(LocalFolder(tmp_path))
    for batch in range(520):
        files.write(batch, {"batch": batch})
    tidying = Tidying(LocalFolder(tmp_path), [files], Retention.of(200))
    tidying.with_dead_letters = with_dead_letters
    tidying.after(519)
    tidying._thread.shutdown(wait=True)
    assert files.batches()[0] == 300
    left = sorted(int(each.name[6:]) for each in (tmp_path / "dead_letters").iterdir() if each.name[6:].isdigit())
    assert left == [n for n in (*range(0, 520, 3), 600) if not with_dead_letters or n >= 300]
    assert (tmp_path / "dead_letters" / "batch=5.old").exists(), "not ours"


def test_trust_14_a_damaged_record_keeps_no_segment_alive(tmp_path: Path) -> None:
    """It stays a file of its own, and its segment was written anew in every round."""
    written(tmp_path, range(99))
    (tmp_path / "plans" / "7.json").write_text("half of a fi")
    files = files_of(LocalFolder(tmp_path))
    files.tidy(200, WEEK, NOW_MS)
    files.tidy(300, WEEK, NOW_MS + 6 * DAY_MS)
    assert segments(tmp_path) == ["0-99.jsonl.gz"]
    files.tidy(400, WEEK, NOW_MS + 8 * DAY_MS)
    assert segments(tmp_path) == []
    files.tidy(500, WEEK, NOW_MS + 9 * DAY_MS)
    assert segments(tmp_path) == []
    assert (tmp_path / "plans" / "7.json").exists()
