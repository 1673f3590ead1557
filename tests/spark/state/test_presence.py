"""Who keeps state in a checkpoint, and since when: what is refused, what begins anew, and what is said about it."""

from __future__ import annotations

import json
import logging
import math
import os
from pathlib import Path
from typing import Any

import pytest

from jettison.errors import CheckpointError
from jettison.network import Network, Stream
from jettison.network.windows.slice_groups import slice_groups
from jettison.plan.drops.random import Random
from jettison.plan.plan import Plan
from jettison.spark.batch.measure import seen_or_unknown
from jettison.spark.checkpoint import checkpoint
from jettison.spark.checkpoint.sealed import read_sealed, write_sealed
from jettison.spark.checkpoint.small_files import LocalFolder
from jettison.spark.state.presence import Presence
from jettison.spark.state.slice_log import SliceRecord, check_shape
from jettison.spark.state.state_kinds import COUNTS, TIMES, check_kinds, remember_kinds

pytestmark = pytest.mark.core


def windows(stream: Stream, output: str, size: str = "10 seconds", name: str | None = None) -> None:
    stream.window(size, by="zone").agg(n="count(*)", name=name).output(output)


def taxi(net: Network | None = None) -> tuple[Network, Stream]:
    net = net or Network("taxi")
    return net, net.source("trips", "trip long, at timestamp, zone int, fare double", event_time="at", id=["trip"])


def opened(folder: Path, net: Network) -> Presence:
    """As a start does."""
    presence = Presence(LocalFolder(folder), net.graph)
    presence.folders(slice_groups(presence.graph))
    return presence


def ran(folder: Path, net: Network, *batches: int) -> Presence:
    """These batches are run, each getting 10 further in event time."""
    presence = opened(folder, net)
    for batch in batches:
        presence.begin(batch)
        presence.saw(batch, {"trips": 10 * batch})
    return presence


def test_trust_1_a_named_operator_that_computes_something_else_is_refused_with_the_remedy(tmp_path: Path) -> None:
    net, trips = taxi()
    windows(trips.where("fare > 5"), "out", name="busy")
    ran(tmp_path, net, 0, 1)
    for change in ("fare > 6", "fare <= 5"):
        other, stream = taxi()
        windows(stream.where(change, name="paid"), "out", name="busy")
        fault = rf"aggregate 'busy': .*'where \[0\] fare > 5', and now there is 'where \[0\] {change}': declare it as"
        with pytest.raises(CheckpointError, match=fault):
            opened(tmp_path, other)
    same, stream = taxi()
    windows(stream.where("fare > 5", name="renamed"), "another", name="busy")
    assert not ran(tmp_path, same, 2).notes, "names of other operators and outputs make no difference"


def test_trust_1_unnamed_operators_are_found_by_what_they_compute(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    net, trips = taxi()
    windows(trips.where("fare > 5"), "dear")
    windows(trips.where("fare <= 5"), "cheap")
    ran(tmp_path, net, 0, 1)
    dear, cheap = (each.name for each in net.graph.aggregates)
    other, stream = taxi()
    windows(stream.where("fare <= 5"), "cheap")
    windows(stream.where("fare > 7"), "dearer")
    with caplog.at_level(logging.WARNING, logger="jettison"):
        presence = ran(tmp_path, other, 2)
    dearer = other.graph.aggregates[1].name
    assert presence.watch(cheap).from_batch == 0
    assert presence.watch(dearer).from_batch == 2
    assert presence.whole_after_us(cheap) == -math.inf
    assert presence.whole_after_us(dearer) == 10
    assert [f"{dear!r} left the network" in note for note in presence.notes] == [False, True]
    assert f"aggregate {dearer!r} begins anew with batch 2: windows that it has not seen from" in presence.notes[0]
    assert len(caplog.records) == 2


def test_trust_2_who_was_out_for_a_batch_that_ran_begins_anew_and_his_folder_is_empty(tmp_path: Path) -> None:
    both, trips = taxi()
    windows(trips, "a_out", name="a")
    trips.window("5 rows").agg(n="count(*)", name="b").output("b_out")
    ran(tmp_path, both, 0)
    for name in "ab":
        (tmp_path / name).mkdir()
    only, trips = taxi()
    windows(trips, "a_out", name="a")
    opened(tmp_path, only)  # and nothing is read: that makes no hole
    assert ran(tmp_path, both, 1).watch("b").from_batch == 0
    ran(tmp_path, only, 2)
    back = ran(tmp_path, both, 3)
    assert (back.watch("a").from_batch, back.watch("b").from_batch) == (0, 3)
    assert (tmp_path / "a").exists()
    assert not (tmp_path / "b").exists()
    assert ran(tmp_path, both, 3, 4).watch("b").before_us == {"trips": 20}, "the same when the batch is repeated"


def test_trust_1_slices_stay_in_their_folder_when_the_first_of_a_group_leaves(tmp_path: Path) -> None:
    net, trips = taxi()
    for name, size in (("a", "10 seconds"), ("b", "5 seconds")):
        windows(trips, f"{name}_out", size, name)
    ran(tmp_path, net, 0)
    less, trips = taxi()
    windows(trips, "c_out", "7 seconds", "c")
    windows(trips, "b_out", "5 seconds", "b")
    presence = Presence(LocalFolder(tmp_path), less.graph)
    assert presence.folders(slice_groups(presence.graph)) == {"b": "a", "c": "c"}
    presence.begin(1)
    presence.saw(1, {"trips": 10})
    more, trips = taxi()  # what left comes back, and does not fit those who have its folder
    windows(trips, "b_out", "5 seconds", "b")
    windows(trips.where("fare > 5"), "a_out", "10 seconds", "a")
    presence = Presence(LocalFolder(tmp_path), more.graph)
    assert presence.folders(slice_groups(presence.graph)) == {"b": "a", "a": "a.2"}


def test_trust_1_aggregates_that_shared_slices_and_read_two_streams_now_are_told(tmp_path: Path) -> None:
    net, trips = taxi()
    paid = trips.where("fare > 5")
    windows(paid, "a_out", name="a")
    windows(paid, "b_out", name="b")
    ran(tmp_path, net, 0)
    other, trips = taxi()
    windows(trips.where("fare > 5"), "a_out", name="a")
    windows(trips.where("fare > 5"), "b_out", name="b")
    with pytest.raises(CheckpointError, match=r"aggregate 'b': .* slices in 'a' .* let both read one stream, give"):
        opened(tmp_path, other)


def test_trust_1_old_checkpoints_go_on_where_there_is_a_name_and_say_what_is_not_known(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path)
    folder.write("kinds.json", json.dumps({"busy": "windows of event time", "aggregate2": "windows of event time"}))
    folder.write("slices.json", json.dumps({"busy": "busy", "aggregate2": "aggregate2"}))
    net, trips = taxi()
    windows(trips, "out", name="busy")
    windows(trips.where("fare > 5"), "other")
    presence = opened(tmp_path, net)
    presence.begin(7)
    unnamed = next(each.name for each in net.graph.aggregates if each.name != "busy")
    assert presence.watch("busy").from_batch == 0
    assert presence.whole_after_us(unnamed) == math.inf, "nobody knows how far times had got"
    presence.saw(7, {"trips": 90})
    assert presence.whole_after_us(unnamed) == 90
    said = "\n".join(presence.notes)
    assert "aggregate 'busy' goes on with the state that the checkpoint keeps under its name" in said
    assert f"aggregate {unnamed!r} begins anew with batch 7" in said
    assert "state under aggregate2, names by the place in a program" in said
    assert not ran(tmp_path, net, 8).notes, "once"


def test_a_file_that_is_cut_off_is_named(tmp_path: Path) -> None:
    net, trips = taxi()
    windows(trips, "out", name="busy")
    ran(tmp_path, net, 0)
    for name in ("operators.json", "seen.json"):
        path = tmp_path / name
        text = path.read_text()
        path.write_text(text[:-3])
        with pytest.raises(CheckpointError, match=rf"{tmp_path}/{name}, which says whose state.* cannot be read"):
            opened(tmp_path, net)
        path.write_text(text)


def same(rows: object) -> object:
    return rows


def test_trust_2_two_functions_at_the_same_place_are_both_written_down(tmp_path: Path) -> None:
    def twice(*, second: bool) -> Network:
        net, trips = taxi()
        columns = ["zone"]
        windows(trips.apply(same, columns=columns, name="one"), "a_out", name="a")
        two = trips.apply(same, columns=columns, name="two")
        two.output("two_out")
        if second:
            windows(two, "b_out", name="b")
        return net

    presence = opened(tmp_path, twice(second=False))
    presence.begin(0)
    presence.saw(0, {"trips": 50, "one": 40, "two": None})
    presence = opened(tmp_path, twice(second=True))
    presence.begin(1)
    assert presence.whole_after_us("b") == math.inf, "nobody has looked at the times of the other"
    presence.saw(1, {"trips": 60, "one": 55, "two": 55})
    assert opened(tmp_path, twice(second=True)).keeps("b")
    again = ran(tmp_path, twice(second=True), 2)
    assert again.watch("b").before_us == {"trips": 50, "two": 55}
    assert again.whole_after_us("b") == 55


def test_trust_2_what_left_is_deleted_when_a_batch_runs_and_is_not_in_the_way(tmp_path: Path) -> None:
    folder = LocalFolder(tmp_path)
    both, trips = taxi()
    windows(trips, "a_out", name="a")
    windows(trips.where("fare > 5"), "b_out", name="b")
    remember_kinds(folder, {TIMES: ["a", "b"]})
    ran(tmp_path, both, 0)
    for name in ("a", "b", "others"):
        (tmp_path / name).mkdir()
    record = SliceRecord(0, {"b": "windows of 10 s"})
    only, trips = taxi()
    windows(trips, "a_out", name="a")
    opened(tmp_path, only)
    assert (tmp_path / "b").exists(), "no batch has run without it"
    with pytest.raises(CheckpointError, match="aggregate 'b': the checkpoint keeps windows of 10 s"):
        check_shape(record, {"b": "windows of 7 s"}, opened(tmp_path, both))
    ran(tmp_path, only, 1)
    assert sorted(each.name for each in tmp_path.iterdir() if each.is_dir()) == ["a", "others"]
    check_kinds(folder, {TIMES: ["a"], COUNTS: ["b"]})
    back, trips = taxi()
    windows(trips, "a_out", name="a")
    windows(trips.where("fare > 5"), "b_out", "7 seconds", name="b")
    (tmp_path / "b").mkdir()  # as earlier versions left it
    remember_kinds(folder, {COUNTS: ["b"]})
    check_kinds(folder, {TIMES: ["a", "b"]})
    presence = opened(tmp_path, back)
    check_shape(record, {"b": "windows of 7 s"}, presence)
    presence.begin(2)
    assert not (tmp_path / "b").exists()


def test_trust_2_a_start_broken_off_while_it_clears_begins_anew_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net, trips = taxi()
    windows(trips, "out")
    name = net.graph.aggregates[0].name
    ran(tmp_path, net, 0, 1)
    (tmp_path / name).mkdir()
    presence = opened(tmp_path, net)
    presence.begin_anew(name, "it does not fit")

    def full(folder: LocalFolder, name: str) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as broken:
        broken.setattr(LocalFolder, "delete", full)
        with pytest.raises(OSError, match="disk full"):
            presence.begin(2)
    assert not opened(tmp_path, net).keeps(name)
    assert ran(tmp_path, net, 2).watch(name).from_batch == 2


def test_what_has_not_changed_is_not_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    net, trips = taxi()
    windows(trips, "out", name="busy")
    ran(tmp_path, net, 0)
    written: list[str] = []
    monkeypatch.setattr(LocalFolder, "write", lambda folder, name, text: written.append(name))
    opened(tmp_path, net).begin(1)
    assert written == []


def test_trust_2_who_comes_after_rows_were_shed_that_nobody_looked_at_waits_until_times_are_seen(
    tmp_path: Path,
) -> None:
    def network(*, windowed: bool) -> Network:
        net, trips = taxi()
        others = net.source("others", "at timestamp, zone int", event_time="at")
        trips.select("zone").union(others.select("zone"), name="all").output("all_out")
        if windowed:
            windows(net.stream("all"), "busy_out", name="busy")
        return net

    graph = network(windowed=False).graph
    rows = {"trips": 9, "others": 9}
    dropping = Plan({"trips": Random(0.5)}, reason="overload")
    assert seen_or_unknown(graph, dropping, rows, (), {}, {"trips": 70, "others": 90}) == {"trips": None, "others": 90}
    assert seen_or_unknown(graph, Plan(), rows, (), {}, {"trips": 70}) == {"trips": 70, "others": None}, "closed"
    assert seen_or_unknown(graph, Plan(), {"trips": 9}, ("trips",), {}, {}) == {}, "looked at, and none has a time"
    presence = opened(tmp_path, network(windowed=False))
    presence.begin(0)
    presence.saw(0, {"trips": None, "others": 90})
    presence = opened(tmp_path, network(windowed=True))
    presence.begin(1)
    presence.saw(1, {})
    assert presence.whole_after_us("busy") == math.inf
    presence.saw(2, {"trips": 75})
    assert presence.whole_after_us("busy") == 90, "of the other it was known"


def test_trust_2_times_at_a_function_that_may_be_another_are_not_believed_after_a_restart(tmp_path: Path) -> None:
    class Limit:
        def __init__(self, low: int) -> None:
            self.low = low

        def over(self, rows: object) -> object:
            return rows

    def network(low: int, name: str) -> Network:
        net, trips = taxi()
        windows(trips.apply(Limit(low).over, columns=["zone"], name="limit"), "out", name=name)
        return net

    presence = opened(tmp_path, network(1, "a"))
    presence.begin(0)
    presence.saw(0, {"trips": 10, "limit": 10})
    presence = opened(tmp_path, network(2, "b"))
    presence.begin(1)
    assert presence.whole_after_us("b") == math.inf


def test_trust_13_a_network_that_cannot_be_hashed_leaves_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(graph: object) -> str:
        raise ValueError("no identity")

    monkeypatch.setattr(checkpoint, "network_identity", broken)
    monkeypatch.setattr(checkpoint, "resolved", lambda path, spark: path)
    nobody: Any = None
    with pytest.raises(ValueError, match="no identity") as kept:
        checkpoint.Checkpoint(str(tmp_path), taxi()[0].graph, nobody)
    lock = checkpoint._lock(str(tmp_path))
    assert lock is not None
    assert kept is not None, "with its frames, so that nothing is closed by chance"
    os.close(lock)


def busy(name: str | None = "busy", function: Any = "my.fares:doubled") -> Network:
    net, trips = taxi()
    windows(trips.apply(function, columns=["zone", "fare"]), "out", name=name)
    return net


def with_code(folder: Path, net: Network, code: str, batch: int) -> Presence:
    """A batch is run by a network of which every operator runs this code."""
    presence = Presence(LocalFolder(folder), net.graph, {each.name: (code,) for each in net.graph.operators})
    presence.folders(slice_groups(presence.graph))
    presence.begin(batch)
    presence.saw(batch, {"trips": 10 * batch})
    return presence


def test_trust_1_a_function_that_has_changed_is_refused_by_name_or_begins_anew(tmp_path: Path) -> None:
    with_code(tmp_path / "a", busy(), "my.fares:doubled 01", 0)
    assert not with_code(tmp_path / "a", busy(), "my.fares:doubled 01", 1).notes
    fault = r"aggregate 'busy': .*since then function 'my.fares:doubled' has changed \(.*\): declare it as it was"
    with pytest.raises(CheckpointError, match=fault):
        with_code(tmp_path / "a", busy(), "my.fares:doubled 02", 2)
    with_code(tmp_path / "b", busy(None), "my.fares:doubled 01", 0)
    (said,) = with_code(tmp_path / "b", busy(None), "my.fares:doubled 02", 1).notes
    assert "begins anew with batch 1 (the checkpoint keeps its state, and since then function 'my.fares:doub" in said
    assert with_code(tmp_path / "b", busy(None), "my.fares:doubled 02", 2).notes == []


def test_trust_1_another_python_is_said_to_be_another_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jettison.spark.state.presence.PYTHON", "3.9")
    with_code(tmp_path / "a", busy(), "my.fares:doubled 01", 0)
    with_code(tmp_path / "b", busy(None, lambda rows: rows), "my.fares:doubled 01", 0)
    with_code(tmp_path / "c", busy(), "my.fares:doubled 01", 0)
    monkeypatch.undo()
    with pytest.raises(CheckpointError, match=r"written with Python 3.9, and the code of functions cannot be compared"):
        with_code(tmp_path / "a", busy(), "my.fares:doubled 02", 1)
    # its name has another hash then, as of a function with other bytecode
    notes = with_code(tmp_path / "b", busy(None, lambda rows: rows.where("true")), "my.fares:doubled 02", 1).notes
    assert "begins anew with batch 1 (the checkpoint was written with Python 3.9" in notes[0]
    assert not with_code(tmp_path / "c", busy(), "my.fares:doubled 01", 1).notes, "what runs no code is the same"


def test_trust_1_a_checkpoint_without_code_goes_on(tmp_path: Path) -> None:
    ran(tmp_path, busy(), 0)
    file = LocalFolder(tmp_path)
    content = json.loads(str(read_sealed(file, "operators.json")))
    for each in content.values():
        del each["code"], each["python"]
    write_sealed(file, "operators.json", json.dumps(content))
    assert not with_code(tmp_path, busy(), "my.fares:doubled 01", 1).notes
    with pytest.raises(CheckpointError, match="has changed"):
        with_code(tmp_path, busy(), "my.fares:doubled 02", 2)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("operators.json", "[1]"),
        ("operators.json", '"busy"'),
        ("operators.json", '{"busy": []}'),
        ("operators.json", '{"busy": {"lineage": 5, "before_us": {}, "from": 0, "settled": true, "folder": "busy"}}'),
        ("operators.json", '{"busy": {"lineage": []}}'),
        ("seen.json", "[1]"),
        ("seen.json", '{"first": {}}'),
        ("seen.json", '{"0": 7}'),
        ("kinds.json", "[1]"),
    ],
)
def test_trust_14_a_file_of_another_shape_is_named(tmp_path: Path, name: str, content: str) -> None:
    net, trips = taxi()
    windows(trips, "out", name="busy")
    ran(tmp_path, net, 0)
    (tmp_path / name).write_text(content)
    with pytest.raises(CheckpointError, match=rf"checkpoint: {tmp_path}/{name}, .* cannot be read .*start with a new"):
        _ = check_kinds(LocalFolder(tmp_path), {TIMES: ["busy"]}) or opened(tmp_path, net)


def test_the_house_to_ask_before_a_batch_runs_changes_nothing(tmp_path: Path) -> None:
    both, trips = taxi()
    windows(trips, "one", name="a")
    windows(trips.where("fare > 5"), "two", name="b")
    ran(tmp_path, both, 0, 1)
    (tmp_path / "a").mkdir(exist_ok=True)
    written = (tmp_path / "operators.json").read_bytes()
    other, stream = taxi()
    windows(stream.where("fare > 5"), "two", name="b")
    windows(stream.where("fare > 6"), "three", name="c")
    presence = opened(tmp_path, other)
    assert presence.watched_before("b", 2)
    assert presence.known_in("b", 1)
    assert not presence.watched_before("c", 2), "it has not begun"
    assert not presence.known_in("c", 1), "what lies under its name is not its own"
    assert (tmp_path / "operators.json").read_bytes() == written
    assert (tmp_path / "a").exists()
    presence.begin(2)
    assert not (tmp_path / "a").exists()
    assert presence.known_in("c", 2)
    assert not presence.known_in("c", 1)
