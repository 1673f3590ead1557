"""Spark's own files that are damaged (trust 14) are refused by name, with the remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from jettison.errors import CheckpointError
from jettison.plan.plan import Plan
from jettison.spark.checkpoint.logs import Ledger, Logged, PlanLog
from jettison.spark.checkpoint.lost_state import check_offsets_are_there, check_state_is_there
from jettison.spark.checkpoint.small_files import LocalFolder
from jettison.spark.checkpoint.spark_files import check_spark_files
from jettison.statistics.records import Records

pytestmark = pytest.mark.core

FILES = {
    "metadata": '{"id":"b1f0a5b2-0000-4000-8000-0123456789ab"}',
    "offsets/6": 'v1\n{"batchWatermarkMs":0}\n{"logOffset":10}',
    "offsets/7": 'v1\n{"batchWatermarkMs":0}\n{"logOffset":11}',
    "commits/6": 'v1\n{"nextBatchWatermarkMs":0}',
    "sources/0/9.compact": 'v1\n{"path":"a","batchId":3}\n{"path":"b","batchId":9}',
    "sources/0/10": 'v1\n{"path":"c","batchId":10}',
    "sources/0/11": 'v1\n{"path":"d","batchId":11}',
}


@pytest.fixture
def folder(tmp_path: Path) -> LocalFolder:
    folder = LocalFolder(tmp_path)
    for name, text in FILES.items():
        folder.write(name, text)
    folder.write("offsets/8.bak", "half")
    return folder


def test_trust_14_files_as_spark_writes_them_pass(folder: LocalFolder, tmp_path: Path) -> None:
    check_spark_files(folder)
    check_spark_files(LocalFolder(tmp_path / "new"))


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("metadata", None, "the identity of the query, Spark's file .*/metadata, is gone"),
        ("metadata", '{"id":"b1', r"is damaged \(it is no JSON\)"),
        ("offsets/7", "", r"the offsets of batch 7, Spark's file .*/offsets/7, is damaged \(its first line"),
        ("offsets/7", "v1\n{", r"is damaged \(it has 2 lines of 3"),
        ("offsets/7", 'v1\n{"batch\n5', r"is damaged \(its second line is no JSON\)"),
        (
            "offsets/7",
            'v1\n{"batchWatermarkMs":0}\n{"logOffset":"eleven"}',
            r"the offsets of batch 7, Spark's file .*/offsets/7, is damaged \(its logOffset 'eleven' is no number\)",
        ),
        ("offsets/7", 'v1\n{"batchWatermarkMs":0}\n{"logOffset":null}', "is damaged .its logOffset None is no number"),
        ("commits/6", "v1", "the end of batch 6, Spark's file .*/commits/6, is damaged"),
        ("offsets/6", None, "the offsets of batch 6, Spark's file .*/offsets/6, is gone"),
        ("offsets/6", "", "the offsets of batch 6, Spark's file .*/offsets/6, is damaged"),
        ("sources/0/11", None, "the files that source 0 has found, Spark's file .*/sources/0/11, is gone"),
        ("sources/0/10", "", r"sources/0/10, is damaged \(its first line is no version\)"),
        ("sources/0/10", 'v1\n{"path":"c","ba', r"sources/0/10, is damaged \(a line is no JSON\)"),
        ("sources/0/9.compact", None, "sources/0/0, is gone"),
        ("sources/0/9.compact", 'v1\n{"path":"a","batchId":3}\n{"pa', r"sources/0/9.compact, is damaged \(a line"),
    ],
)
def test_trust_14_damaged_files_of_spark_are_named(
    folder: LocalFolder, tmp_path: Path, name: str, text: str | None, fault: str
) -> None:
    (tmp_path / name).unlink() if text is None else (tmp_path / name).write_text(text)
    with pytest.raises(CheckpointError, match=f"{fault}.*Restore it from a copy, or start with a new checkpoint"):
        check_spark_files(folder)


def test_trust_14_state_that_is_gone_as_a_whole_is_refused(folder: LocalFolder, tmp_path: Path) -> None:
    """It began anew, with windows without the rows from before, and a warning."""
    plans, state = PlanLog(LocalFolder(tmp_path)), LocalFolder(tmp_path / "state")
    plans.write(Logged(6, Plan(), Records({"trips": 10})))
    check_state_is_there(plans, folder, state)
    plans.write(Logged(6, Plan(), Records({"trips": 10}), keeps_state=True))
    with pytest.raises(CheckpointError, match=r"state, what windows and joins keep, is gone, and batch 6 .*Restore"):
        check_state_is_there(plans, folder, state)
    state.write("operators.json", "{}")
    check_state_is_there(plans, folder, state)
    (tmp_path / "commits" / "6").unlink()
    (tmp_path / "state" / "operators.json").unlink()
    check_state_is_there(plans, folder, state)  # no batch has ended: there may be none yet


def test_trust_14_offsets_that_are_gone_are_refused(folder: LocalFolder, tmp_path: Path) -> None:
    """A run without state began at batch 0 again, in folders that had results."""
    ledger = Ledger(LocalFolder(tmp_path))
    check_offsets_are_there(ledger, folder)  # nothing has run
    newest = 7
    ledger.write(newest, [])
    check_offsets_are_there(ledger, folder)
    (tmp_path / "offsets" / str(newest)).unlink()
    with pytest.raises(CheckpointError, match=f"batch {newest} has run, and Spark's offsets .*/offsets/{newest} are"):
        check_offsets_are_there(ledger, folder)
