"""Many nodes that shed fairly: what each knows of the others decides who gets what."""

from __future__ import annotations

import numpy as np
import pytest

from jettison.errors import NetworkError, StartError
from jettison.sim.fair.federation import Federation, random_federation
from jettison.sim.fair.nodes import LOCAL, Spreading, jain_index, simulate_fair

pytestmark = pytest.mark.core


def _two_nodes() -> Federation:
    """Query 0 is on both nodes, 1 on the first alone, 2 on the second alone; only the first has too little time."""
    return Federation(
        np.array([0, 1, 0, 2]), np.array([0, 0, 1, 1]), np.full(4, 100.0), np.full(4, 1.0), np.array([100.0, 200.0])
    )


def test_a_query_that_has_much_elsewhere_gets_less_here() -> None:
    alone = simulate_fair(_two_nodes(), LOCAL, intervals=30, seed=1, noise=0.0).sic[-1]
    assert alone == pytest.approx([0.75, 0.5, 1.0], abs=0.02)
    known = simulate_fair(_two_nodes(), Spreading(), intervals=30, seed=1, noise=0.0).sic[-1]
    assert known == pytest.approx([2 / 3, 2 / 3, 1.0], abs=0.03)
    none = simulate_fair(_two_nodes(), Spreading(lost_share=1.0), intervals=30, seed=1, noise=0.0)
    assert none.sic[-1] == pytest.approx(alone)
    assert none.messages == 60
    late = simulate_fair(_two_nodes(), Spreading(late_intervals=5), intervals=60, seed=1, noise=0.0).sic[-20:].mean(0)
    assert late == pytest.approx([2 / 3, 2 / 3, 1.0], abs=0.05)


def test_the_same_seed_gives_the_same_run() -> None:
    made = random_federation(np.random.default_rng(3), nodes=6, queries=40)
    runs = [simulate_fair(made, Spreading(lost_share=0.3), intervals=15, seed=2).sic for _ in range(2)]
    assert (runs[0] == runs[1]).all()


def test_bad_input_is_named() -> None:
    with pytest.raises(StartError, match="lost_share is 2"):
        Spreading(lost_share=2.0)
    with pytest.raises(NetworkError, match="on node 1, of 1 nodes"):
        Federation(np.array([0]), np.array([1]), np.ones(1), np.ones(1), np.ones(1))
    assert jain_index(np.zeros(3)) == 1.0
