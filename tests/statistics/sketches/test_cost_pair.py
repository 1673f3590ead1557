"""A published pair: what it has not seen it takes from the pair before; it is named by all that it holds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.errors import NetworkError, PlanError
from jettison.statistics.sketches.cost_pair import CostPair
from jettison.statistics.sketches.cost_sketch import CostSketch
from jettison.statistics.sketches.key_hash import key_hash

pytestmark = pytest.mark.core

_EMPTY = CostSketch.empty(3, 40)
_KEYS = key_hash([np.arange(60)])


def _sketch(keys: list[int], cost_us: float) -> CostSketch:
    return _EMPTY.updated(_KEYS[keys], np.full(len(keys), cost_us))


@given(st.lists(st.tuples(st.sets(st.integers(0, 59), max_size=12), st.integers(1, 9)), min_size=1, max_size=5))
def test_a_key_costs_what_it_cost_when_it_came_last(generations: list[tuple[set[int], int]]) -> None:
    """Where a row tells: a cell that no key of a later pair has touched, and no other key of its own pair."""
    pair, last = None, dict[int, tuple[int, float]]()
    touched: list[set[tuple[int, int]]] = []
    places = _EMPTY.functions.places(_KEYS)
    for number, (keys, cost) in enumerate(generations):
        pair = CostPair.of(_sketch(sorted(keys), 100.0 * cost), pair)
        touched.append({(row, int(places[row][key])) for key in keys for row in range(3)})
        last |= dict.fromkeys(keys, (number, 100.0 * cost))
    assert pair is not None
    for key, (number, cost_us) in last.items():
        later = set().union(*touched[number + 1 :])
        if any((row, int(places[row][key])) not in later for row in range(3)):
            assert pair.table.costs_us(_KEYS[[key]]).tolist() == [cost_us]
            assert pair.counts_of(_KEYS[[key]])[0] >= 1


def test_ages_count_pairs_and_the_mean_is_the_given_one() -> None:
    first = CostPair.of(_sketch([1], 900.0))
    second = CostPair.of(_sketch([2], 100.0), first, mean_us=500.0)
    third = CostPair.of(_sketch([2], 120.0), second, mean_us=510.0)
    assert (first.mean_us, second.mean_us, third.mean_us) == (900.0, 500.0, 510.0)
    assert first.table.costs_us(_KEYS[[1, 2, 3]]).tolist() == [900.0, 900.0, 900.0]  # the others were never seen
    assert third.table.costs_us(_KEYS[[1, 2, 3]]).tolist() == [900.0, 120.0, 510.0]
    assert sorted(set(third.ages.reshape(-1).tolist())) == [0, 2]


def test_a_pair_is_named_by_all_that_it_holds_and_read_as_it_was_written() -> None:
    first = CostPair.of(_sketch([1], 900.0))
    pairs = [
        CostPair.of(_sketch([2], 100.0)),
        CostPair.of(_sketch([2], 100.0), first),
        CostPair.of(_sketch([2], 100.0), first, mean_us=500.0),
        CostPair.of(_sketch([2], 100.0), CostPair.of(_sketch([], 0.0), first)),
    ]
    assert len({pair.name for pair in pairs}) == 4
    for pair in pairs:
        content = pair.to_bytes()
        again = CostPair.from_bytes(content)
        assert again == pair
        assert again.table.costs_us(_KEYS).tolist() == pair.table.costs_us(_KEYS).tolist()
        assert again.mean_us == pair.mean_us
        for at in (3, 40, 120, len(content) - 1):
            damaged = content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
            with pytest.raises(PlanError, match="checksum"):
                CostPair.from_bytes(damaged)


def test_cells_of_another_size_are_refused() -> None:
    with pytest.raises(NetworkError, match="cannot take over"):
        CostPair.of(_sketch([1], 1.0), CostPair.of(CostSketch.empty(3, 41)))
