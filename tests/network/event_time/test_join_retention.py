"""What a join remembers: enough for every pair of rows that come in time, and no more than the band asks for."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks import steady

from jettison.network.event_time.join_retention import (
    MOST_PARTS,
    Part,
    horizon_us,
    in_reach,
    still_needed,
    to_merge,
)

pytestmark = pytest.mark.core


@dataclass
class Model:
    """One side of a join: its parts with the times of their rows, as the rule lets them be."""

    parts: tuple[Part, ...] = ()
    times: dict[str, list[int]] = field(default_factory=dict)
    newest: int | None = None

    def add(self, name: str, times: list[int], level: int = 0) -> Part | None:
        if not times:
            return None
        self.times[name] = times
        part = Part(name, len(times), min(times), max(times), level)
        self.parts = (*self.parts, part)
        return part

    def rows(self, parts: tuple[Part, ...], first: int | None) -> list[int]:
        return [time for part in parts for time in self.times[part.name] if first is None or time >= first]


batches = st.lists(st.tuples(*[st.lists(st.integers(0, 12), max_size=3)] * 2), min_size=1, max_size=40)


@steady(150)
@given(batches, st.integers(1, 8), st.integers(0, 8), st.booleans())
def test_rows_that_come_in_time_meet_all_their_partners(
    steps: list[tuple[list[int], ...]], within: int, delay: int, merges: bool
) -> None:
    """Batch by batch, with parts that are merged and deleted, the pairs of one join of all rows come out, once each."""
    sides = (Model(), Model())
    every: tuple[list[int], list[int]] = ([], [])
    pairs: list[tuple[int, int]] = []
    for number, step in enumerate(steps):
        new: list[Part | None] = []
        old = [side.parts for side in sides]
        first = [horizon_us(sides[1 - n].newest, within, delay) for n in (0, 1)]
        for n, side in enumerate(sides):
            base = 0 if side.newest is None else side.newest - delay
            times = [base + ahead for ahead in step[n]]  # never later than the delay allows
            every[n].extend(times)
            new.append(side.add(str(number), times))
        come = [sides[n].rows((part,), None) if (part := new[n]) else [] for n in (0, 1)]
        waits = [sides[n].rows(in_reach(old[n], new[1 - n], within), first[n]) for n in (0, 1)]
        met = [(a, b) for a in come[0] for b in waits[1] + come[1]] + [(a, b) for a in waits[0] for b in come[1]]
        pairs += [(a, b) for a, b in met if abs(a - b) <= within]
        for side, part in zip(sides, new, strict=True):
            side.newest = max([time for time in (side.newest, part and part.to_us) if time is not None], default=None)
        for n, side in enumerate(sides):
            side.parts = still_needed(side.parts, horizon_us(sides[1 - n].newest, within, delay))
            joint = to_merge(side.parts) if merges else ()
            if joint:
                side.parts = tuple(part for part in side.parts if part not in joint)
                level = joint[0].level + 1
                side.add(f"{number}-{level}", side.rows(joint, horizon_us(sides[1 - n].newest, within, delay)), level)
    assert sorted(pairs) == sorted((a, b) for a in every[0] for b in every[1] if abs(a - b) <= within)
    for n, side in enumerate(sides):
        first_needed = horizon_us(sides[1 - n].newest, within, delay)
        assert all(first_needed is None or part.to_us >= first_needed for part in side.parts)


@steady(200)
@given(st.integers(-50, 50), st.integers(1, 20), st.integers(0, 20), st.lists(st.integers(-100, 100), min_size=1))
def test_what_goes_can_meet_nothing_that_comes_in_time_and_what_stays_can(
    newest: int, within: int, delay: int, times: list[int]
) -> None:
    part = Part("0", len(times), min(times), max(times))
    in_time = range(newest - delay, newest + 300)
    meets = any(abs(time - other) <= within for time in times for other in in_time)
    assert bool(still_needed([part], horizon_us(newest, within, delay))) == meets
    assert still_needed([part], None) == (part,)


@steady(100)
@given(st.integers(0, 700))
def test_parts_stay_few_and_rows_are_rarely_written_again(count: int) -> None:
    parts: tuple[Part, ...] = ()
    rewritten = 0
    for number in range(count):
        parts = (*parts, Part(str(number), 1, number, number))
        while joint := to_merge(parts):
            assert len(joint) == MOST_PARTS + 1
            assert len({part.level for part in joint}) == 1
            rows = sum(part.rows for part in joint)
            rewritten += rows
            merged = Part("m", rows, joint[0].from_us, joint[-1].to_us, joint[0].level + 1)
            parts = (*(part for part in parts if part not in joint), merged)
    assert sum(part.rows for part in parts) == count
    assert len(parts) <= 3 * MOST_PARTS
    assert rewritten <= 2 * count
