"""Queues on arcs: nothing is lost, the oldest goes first, whole tuples stay whole."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks import steady

from jettison.sim.queues import ArcQueue
from jettison.sim.trains import by_cell, by_train, rows_in

pytestmark = pytest.mark.core

CELLS = 2
_BLOCKS = st.lists(st.lists(st.tuples(*[st.integers(0, 9)] * CELLS), min_size=1, max_size=4), max_size=8)
_TAKES = st.lists(st.sampled_from((0.01, 0.5, 1.0, 2.5, 7.0, 1000.0)), max_size=8)


@steady(100)
@given(blocks=_BLOCKS, takes=_TAKES, part=st.sampled_from((1.0, 0.37)))
def test_what_goes_in_comes_out_oldest_first(
    blocks: list[list[tuple[int, ...]]], takes: list[float], part: float
) -> None:
    queue, clock = ArcQueue(whole=part == 1.0), 0
    put, got, times = np.zeros(CELLS), np.zeros(CELLS), []
    for index, block in enumerate(blocks):
        trains = part * np.array(block, dtype=float)
        queue.put(np.arange(clock, clock + len(trains), dtype=float), trains, rows_in(trains))
        clock += len(trains)
        put += by_cell(trains)
        for most in takes[index : index + 1]:
            waiting = queue.rows
            if waiting > 0:
                arrived, taken = queue.take(most)
                got += by_cell(taken)
                times += list(arrived[by_train(taken) > 0])
                assert rows_in(taken) >= min(most, waiting) * (1 - 1e-6)
                assert rows_in(taken) <= min(most + CELLS, waiting) * (1 + 1e-6), "at most one tuple more per cell"
                assert part != 1.0 or not np.any(taken % 1)
                assert queue.rows == pytest.approx(waiting - rows_in(taken), abs=1e-9)
    if queue.rows > 0:
        arrived, taken = queue.take(float("inf"))
        got += by_cell(taken)
        times += list(arrived)
    assert got == pytest.approx(put)
    assert times == sorted(times)
    assert queue.rows == 0.0
