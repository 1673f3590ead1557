"""The state machine of the seed's figure 2: two or three samples, the exact state."""

from __future__ import annotations

import numpy as np
import pytest

from jettison.errors import NetworkError
from jettison.statistics.sketches.cost_learner import STABILIZING, START, CostLearner
from jettison.statistics.sketches.cost_sketch import CostSketch
from jettison.statistics.sketches.key_hash import key_hash

pytestmark = pytest.mark.core

_EMPTY = CostSketch.empty(2, 40)
_KEYS = key_hash([np.arange(4)])


def _sample(costs_us: list[float], times: int = 5) -> CostSketch:
    return _EMPTY.updated(np.tile(_KEYS, times), np.tile(costs_us, times))


def test_less_than_a_window_changes_nothing_but_the_matrices() -> None:
    learner, published = CostLearner(_EMPTY, window=21).after(_sample([1.0, 2.0, 3.0, 4.0]))
    assert (learner.state, learner.since, learner.sketch.tuples, published) == (START, 20, 20, None)


def test_costs_that_stay_are_published_after_two_windows_and_matrices_start_anew() -> None:
    learner, _ = CostLearner(_EMPTY, window=20).after(_sample([1.0, 2.0, 3.0, 4.0]))
    assert learner.state == STABILIZING
    learner, published = learner.after(_sample([1.0, 2.0, 3.0, 4.0]))
    assert published is not None
    assert published.table.costs_us(_KEYS).tolist() == [1.0, 2.0, 3.0, 4.0]
    assert (learner.state, learner.sketch, learner.eta) == (START, _EMPTY, 0.0)


def test_costs_that_move_make_a_new_snapshot_until_they_settle() -> None:
    learner, _ = CostLearner(_EMPTY, window=20, tolerance=0.1).after(_sample([10.0] * 4))
    learner, published = learner.after(_sample([20.0] * 4))  # averages rise from 10 to 15
    assert (published, learner.state, learner.eta) == (None, STABILIZING, 0.5)
    learner, published = learner.after(_sample([15.0] * 4))
    assert published is not None
    assert learner.eta == 0.0


def test_costs_that_change_later_are_learned_again() -> None:
    learner, pairs = CostLearner(_EMPTY, window=20), []
    for costs in ([1.0, 1.0, 1.0, 9.0], [9.0, 1.0, 1.0, 1.0]):
        for _ in range(2):
            learner, published = learner.after(_sample(costs))
            pairs += [] if published is None else [published]
    assert [pair.table.costs_us(_KEYS).tolist() for pair in pairs] == [[1.0, 1.0, 1.0, 9.0], [9.0, 1.0, 1.0, 1.0]]


def test_a_change_in_mid_course_is_published_by_itself_after_one_window() -> None:
    before, after = [1.0, 1.0, 1.0, 9.0], [9.0, 1.0, 1.0, 1.0]
    learner, pairs = CostLearner(_EMPTY, window=20, tolerance=0.1), []
    for costs in (before, before, before, after):  # the third window is in the matrices when costs change
        learner, published = learner.after(_sample(costs))
        pairs += [] if published is None else [published.table.costs_us(_KEYS).tolist()]
    assert pairs == [before, after]
    assert (learner.state, learner.sketch) == (START, _EMPTY)


def test_noise_is_no_change() -> None:
    rng, learner, pairs = np.random.default_rng(1), CostLearner(_EMPTY, window=200, tolerance=0.05), 0
    for _ in range(60):  # tuples of one key differ by their own factor of two
        drawn = np.array([1.0, 2.0, 3.0, 4.0])[np.arange(200) % 4] * rng.uniform(0.7, 1.3, 200)
        learner, published = learner.after(_EMPTY.updated(_KEYS[np.arange(200) % 4], drawn))
        pairs += published is not None
    assert 20 <= pairs <= 30, "a pair after every second window, or a third one"


def test_samples_in_other_portions_publish_the_same_pair() -> None:
    whole, pairs = _sample([1.0, 2.0, 3.0, 4.0], times=10), []
    learner = CostLearner(_EMPTY, window=20)
    for _ in range(10):
        learner, published = learner.after(_sample([1.0, 2.0, 3.0, 4.0], times=1))
        pairs += [] if published is None else [published]
    assert [pair.cells for pair in pairs] == [whole]


def test_wrong_settings_are_named() -> None:
    with pytest.raises(NetworkError, match="window is 0"):
        CostLearner(_EMPTY, window=0)
    with pytest.raises(NetworkError, match="tolerance is -1"):
        CostLearner(_EMPTY, tolerance=-1)
