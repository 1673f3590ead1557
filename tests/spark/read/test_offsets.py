"""Sizes from offsets: what a batch will read, what is gone, what was made anew. No JVM needed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.spark.checkpoint.small_files import LocalFolder
from jettison.spark.read.offsets import batch_offsets, batch_rows, kafka_batch

pytestmark = pytest.mark.spark

partition = st.tuples(st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 3000))


@given(st.dictionaries(st.sampled_from("0123"), partition, min_size=1), st.sets(st.sampled_from("0123")))
def test_what_was_to_be_read_is_read_or_gone(partitions: dict[str, tuple[int, int, int]], new: set[str]) -> None:
    start = {number: begun for number, (begun, _, _) in partitions.items() if number not in new}
    end = {number: begun + more for number, (begun, more, _) in partitions.items()}
    first = {number: earliest for number, (_, _, earliest) in partitions.items()}
    batch = kafka_batch({"t": start}, {"t": end}, {"t": first})
    assert batch.anew == frozenset()
    for number, until in end.items():
        begin = batch.begins["t"][number]
        assert begin <= until
        assert begin >= min(first[number], until), "nothing is read that Kafka has no more"
        if number in start:
            assert begin == max(start[number], min(first[number], until))
    assert batch.rows + batch.gone == sum(
        until - start.get(number, min(first[number], until)) for number, until in end.items()
    )


@given(st.dictionaries(st.sampled_from("0123"), partition, min_size=1))
def test_a_topic_of_another_identity_is_read_from_its_first_record(partitions: dict[str, tuple[int, int, int]]) -> None:
    start = {number: begun for number, (begun, _, _) in partitions.items()}
    end = {number: more for number, (_, more, _) in partitions.items()}
    first = {number: earliest for number, (_, _, earliest) in partitions.items()}
    last = {number: max(earliest, (begun + more) // 2) for number, (begun, more, earliest) in partitions.items()}
    batch = kafka_batch({"t": start}, {"t": end}, {"t": first}, {"t": last}, anew=frozenset({"t"}))
    assert (batch.anew, batch.gone, batch.shorter) == ({"t"}, 0, frozenset())
    for number, until in end.items():
        assert batch.ends["t"][number] == min(until, last[number]), "not beyond what the new topic has"
        assert batch.begins["t"][number] == min(first[number], batch.ends["t"][number])


def test_another_topic_is_left_as_it_was() -> None:
    batch = kafka_batch({"a": {"0": 50}, "b": {"0": 5}}, {"a": {"0": 7}, "b": {"0": 9}}, anew=frozenset({"a"}))
    assert batch.sizes == {"a": {"0": 7}, "b": {"0": 4}}
    assert batch.anew == {"a"}


def test_a_partition_that_lost_its_newest_records_is_not_read_again() -> None:
    batch = kafka_batch({"t": {"0": 50, "1": 8}}, {"t": {"0": 45, "1": 9}}, {"t": {"0": 0, "1": 0}})
    assert batch.sizes == {"t": {"0": 0, "1": 1}}
    assert batch.shorter == {"t"}
    assert batch.anew == frozenset()


def log(folder: Path, batch: int, *lines: str) -> None:
    (folder / "offsets").mkdir(exist_ok=True)
    (folder / "offsets" / str(batch)).write_text("\n".join(["v1", "{}", *lines]))


def test_the_first_batch_begins_where_the_source_wrote_down_that_it_does(tmp_path: Path) -> None:
    (tmp_path / "sources" / "0").mkdir(parents=True)
    (tmp_path / "sources" / "0" / "0").write_text('\0v1\n{"t":{"0":100}}')
    log(tmp_path, 0, '{"t":{"0":130}}')
    log(tmp_path, 1, '{"t":{"0":131,"1":4}}')
    folder = LocalFolder(tmp_path)
    assert [batch_rows(folder, batch, 1) for batch in (0, 1, 2)] == [[30], [5], None]


def test_offsets_that_do_not_count_rows_are_not_taken_for_rows(tmp_path: Path) -> None:
    log(tmp_path, 0, '{"logOffset":0}', "17", '{"t":{"0":"x"}}')
    log(tmp_path, 1, '{"logOffset":1}', "-", '{"t":{"0":"y"}}')
    folder = LocalFolder(tmp_path)
    assert batch_rows(folder, 1, 3) is None
    assert batch_rows(folder, 1, 2) is None, "another number of sources"
    found = batch_offsets(folder, 1, 3)
    assert found is not None
    assert found[1] == (17, None)
