"""Number 19: what a run remembers of its batches is bounded in bytes."""

from __future__ import annotations

import pytest

from jettison.plan.plan import Plan
from jettison.statistics.samples import BatchSample
from jettison.telemetry.history import History, size_of

pytestmark = pytest.mark.core


def sample(batch: int, arcs: int = 5) -> BatchSample:
    seen = {f"operator{batch}>{number}": (1000 + batch, 900) for number in range(arcs)}
    return BatchSample(batch, 0.0, 1000.0, 500.0, {"trips": 1000}, arcs=seen, outputs={})


def test_trust_19_the_oldest_batches_make_room() -> None:
    history = History(most_bytes=50_000)
    for batch in range(1000):
        history.append((sample(batch), Plan()))
    kept = [each.batch for each, _ in history]
    assert history.bytes <= 50_000
    assert history.bytes == sum(map(size_of, history))
    assert kept == list(range(1000 - len(kept), 1000))
    assert 10 < len(history) < 100
    assert history[-1][0].batch == 999
    assert [each.batch for each, _ in history[-3:]] == [997, 998, 999]


def test_trust_19_large_plans_leave_room_for_fewer_and_one_always_stays() -> None:
    history = History(most_bytes=50_000)
    for batch in range(20):
        history.append((sample(batch, arcs=2000), Plan()))
    assert [each.batch for each, _ in history] == [19]


def test_trust_19_batches_are_counted_too() -> None:
    history = History(most_batches=7)
    for batch in range(20):
        history.append((sample(batch), Plan()))
    assert len(history) == 7
