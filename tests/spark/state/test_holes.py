"""An operator that was out of the network for some batches, or comes in mid-stream, delivers nothing that is not whole.

All that is delivered is compared with what plain Python makes of the same rows.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from itertools import product
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.windowing import Hand, Row, S, plain, source

import jettison as jt

pytestmark = pytest.mark.spark

LATE_S = 14
BATCHES, PER_BATCH, STEP_S = 9, 24, 10
OUT = range(2, 4)
"""Batches in which only one aggregate is there."""


def rows_of_batches() -> list[list[Row]]:
    """Trips out of order, no two at the same time; those of a batch are up to 4 s before the newest of the last one."""
    draw = random.Random(7)
    times = {
        batch: draw.sample(range(S * (STEP_S * (batch + 3) - LATE_S), S * STEP_S * (batch + 3)), PER_BATCH)
        for batch in range(BATCHES)
    }
    return [
        [
            (PER_BATCH * batch + n, at, draw.randrange(2), "cab", float(draw.randrange(50)))
            for n, at in enumerate(times[batch])
        ]
        for batch in range(BATCHES)
    ]


def network(*names: str) -> jt.Network:
    """Those of: windows that stay, windows that leave with windows of their results, windows of rows, pairs of streams
    with windows of them; `all` reads the stream as it is."""
    net = jt.Network("taxi")
    trips = source(net)
    for name in names:
        if name in ("stay", "leave"):
            busy = trips.window("4 seconds", slide="2 seconds", by="zone", delay=f"{LATE_S} seconds")
            found = busy.agg(n="count(*)", total="sum(fare)", name=name)
            found.output(f"{name}_out")
            if name == "leave":
                found.window("8 seconds", by="zone").agg(n="sum(n)", name="nested").output("nested_out")
        elif name == "rows":
            trips.window("5 rows", slide="5 rows", by="zone").agg(n="sum(trip)", name="rows").output("rows_out")
        elif name == "pairs":
            dear = trips.where("fare >= 25").select("zone", "trip AS dear")
            cheap = trips.where("fare < 25").select("zone", "trip AS cheap")
            pairs = dear.join(cheap, "zone", within="1 second", delay=f"{LATE_S} seconds", name="pairs")
            pairs.output("pairs_out")
            windows = pairs.window("4 seconds", delay=f"{LATE_S} seconds")
            windows.agg(n="count(*)", name="busy_pairs").output("busy_pairs_out")
        else:
            trips.output("all")
    return net


def windows_of(rows: list[Row]) -> dict[tuple[int, float], tuple[int, float]]:
    """By zone and start, rows and fares of windows of 4 s every 2 s."""
    held: dict[tuple[int, float], list[float]] = defaultdict(list)
    for _, at, zone, _, fare in rows:
        for start in range(at // S // 2 * 2 - 2, at // S + 1, 2):
            if start * S <= at < (start + 4) * S:
                held[zone, float(start)].append(fare)
    return {key: (len(fares), sum(fares)) for key, fares in held.items()}


def pairs_of(rows: list[Row]) -> dict[tuple[int, int], int]:
    """By trips, the later time of two."""
    dear, cheap = ([row for row in rows if (row[4] >= 25) == wanted] for wanted in (True, False))
    near = [(one, two) for one, two in product(dear, cheap) if one[2] == two[2] and abs(one[1] - two[1]) <= S]
    return {(one[0], two[0]): max(one[1], two[1]) for one, two in near}


@pytest.mark.long
@pytest.mark.slow
def test_trust_2_what_was_left_out_and_comes_back_delivers_no_window_that_it_has_not_seen_whole(
    spark: SparkSession, tmp_path: Path
) -> None:
    batches = rows_of_batches()
    rows = [row for batch in batches for row in batch]
    unseen_us = max(row[1] for batch in batches[: OUT.stop] for row in batch)
    mark_us = max(row[1] for batch in batches[:-1] for row in batch) - LATE_S * S
    found: dict[str, list[Row]] = defaultdict(list)
    withheld: Counter[str] = Counter()
    notes = []
    for part, names in (
        (range(OUT.start), ("leave", "stay", "rows", "pairs")),
        (OUT, ("stay",)),
        (range(OUT.stop, BATCHES), ("stay", "leave", "rows", "pairs")),
    ):
        run = Hand(spark, tmp_path, network(*names))
        for number in part:
            measured = run.run(number, batches[number])
            withheld.update(measured.withheld)
        for output, sink in run.sinks.items():
            name = output.removesuffix("_out")
            found[name if name == "stay" else f"{name} {part.start}"] += map(plain, sink.rows)
        notes.append(list(run.presence.notes))
        run.close()

    truth = windows_of(rows)
    closed = {key for key in truth if (key[1] + 4) * S <= mark_us}
    stayed = {row[:2]: row[3:] for row in found["stay"]}
    assert stayed == {key: truth[key] for key in closed}, "what stayed misses nothing"
    back = {row[:2]: row[3:] for row in found["leave 4"]}
    whole = {key for key in closed if key[1] * S > unseen_us}
    assert whole
    assert back == {key: truth[key] for key in whole}
    first_s = 2 * (min(row[1] for row in batches[4]) // S // 2) - 2
    starts = [start for start in range(first_s, unseen_us // S + 1, 2) if any(k[1] == start for k in truth)]
    assert withheld["leave"] == len(starts) > 2, "those of which it has rows"

    nested = {row[:2]: row[3] for row in found["nested 4"]}
    assert nested
    assert all(start * S > unseen_us for _, start in nested)
    assert nested == {
        key: sum(n for (zone, start), (n, _) in truth.items() if zone == key[0] and key[1] <= start < key[1] + 8)
        for key in nested
    }

    counted: dict[int, list[int]] = defaultdict(list)
    for batch in batches[OUT.stop :]:
        for trip, _, zone, _, _ in sorted(batch, key=lambda row: row[1]):
            counted[zone].append(trip)
    assert sorted(found["rows 4"]) == sorted(
        (zone, 5 * n, 5 * n + 5, sum(trips[5 * n : 5 * n + 5]))
        for zone, trips in counted.items()
        for n in range(len(trips) // 5)
    ), "windows of rows count from 0 again"

    pairs = pairs_of(rows)
    came = [row[1:] for row in found["pairs 4"]]
    assert len(set(came)) == len(came)
    assert set(came) == pairs_of([row for batch in batches[OUT.stop :] for row in batch]).keys() < pairs.keys()
    busy = Counter(float(at // S // 4 * 4) for at in pairs.values())
    got = {row[0]: row[2] for row in found["busy_pairs 4"]}
    wanted = {start for start in busy if start * S > unseen_us + S and (start + 4) * S <= mark_us}
    assert wanted
    assert got == {start: busy[start] for start in wanted}

    assert not notes[0]
    assert len(notes[1]) == 1
    assert "'busy_pairs', 'leave', 'nested', 'pairs', 'rows' left the network before batch 2" in notes[1][0]
    said = "\n".join(notes[2])
    assert "aggregate 'leave' begins anew with batch 4: windows that it has not seen from their first row" in said
    assert "aggregate 'rows' begins anew with batch 4: its windows count rows from 0 again" in said
    assert "join 'pairs' begins anew with batch 4: rows that came before find no partner" in said


def test_trust_2_what_is_added_in_mid_stream_and_killed_withholds_the_same_windows(
    spark: SparkSession, tmp_path: Path
) -> None:
    batches = rows_of_batches()[:6]
    rows = [row for batch in batches for row in batch]
    mark_us = max(row[1] for batch in batches[:-1] for row in batch) - LATE_S * S
    run = Hand(spark, tmp_path, network("all"))  # nobody needs event times yet
    for number in range(2):
        run.run(number, batches[number])
    run.close()
    run = Hand(spark, tmp_path, network("all", "leave"))
    run.run(2, batches[2])
    run = run.again()  # as if it had been killed before the batch was committed
    for number in range(2, 6):
        run.run(number, batches[number])
    unseen_us = max(row[1] for batch in batches[:2] for row in batch)
    found = {row[:2]: row[3:] for row in run.rows("leave_out")}
    truth = windows_of(rows)
    assert any(key[1] * S <= unseen_us < (key[1] + 2) * S for key in truth), "some windows are begun when it comes"
    assert found == {key: truth[key] for key in truth if key[1] * S > unseen_us and (key[1] + 4) * S <= mark_us}
    run.close()

    # a checkpoint from before any of this was written down: what has a name goes on, and says what it cannot know
    for name in ("operators.json", "seen.json"):
        (tmp_path / name).unlink()
    (tmp_path / "slices.json").write_text('{"leave": "leave", "nested": "nested"}')
    old = Hand(spark, tmp_path, network("all", "leave", "stay"))
    old.run(6, rows_of_batches()[6])
    assert len(old.rows("leave_out")) > 0
    assert any("'leave' goes on with the state" in note and "not written down" in note for note in old.presence.notes)
    assert any("'stay' begins anew with batch 6" in note for note in old.presence.notes)
    assert old.rows("stay_out") == []
    old.close()
