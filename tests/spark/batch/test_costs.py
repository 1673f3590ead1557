"""What is remembered of batches that ran before costs were known, and who waits for costs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from jettison.spark.batch.costs import RunCosts
from jettison.statistics.samples import BatchSample

pytestmark = pytest.mark.core


def costs(planning: Any) -> RunCosts:
    return RunCosts(SimpleNamespace(), planning)  # type: ignore[arg-type]


def test_the_largest_batches_are_remembered_and_of_equal_ones_the_newest() -> None:
    found = costs(SimpleNamespace(calibrated=False))
    for batch, rows in enumerate([100_000, 5_000, 5_000, 50, 0, 50, 5_000]):
        found.remember_sample(BatchSample(batch, 0.0, 1000.0, 100.0, {"trips": rows}))
    assert [sample.batch for sample in found._seen] == [0, 6, 2]


def test_a_batch_that_runs_is_waited_for_while_costs_are_unknown() -> None:
    """Its rows may be those that costs are measured on: that begins when the batch has ended."""
    planning = SimpleNamespace(calibrated=False)
    found = costs(planning)
    assert found.wait_until_measured(0.0)
    with found.batch():
        assert not found.wait_until_measured(0.01)
        planning.calibrated = True
        assert found.wait_until_measured(0.0), "nothing more is measured"
        planning.calibrated = False
    with pytest.raises(OSError, match="gone"), found.batch():
        raise OSError("gone")
    assert found.wait_until_measured(0.0), "nobody waits for a batch that failed"
