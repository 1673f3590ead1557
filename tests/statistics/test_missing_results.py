"""Results of which every row was dropped are estimated by those that came, against samples of known groups."""

from __future__ import annotations

import numpy as np
import pytest

from jettison.statistics.missing_results import MissingResults

pytestmark = pytest.mark.core


def sampled(sizes: np.ndarray, keep: float, seed: int) -> tuple[MissingResults, int, int]:
    """What is told of groups with these sizes, what of them is missing, and with how many rows."""
    kept = np.random.default_rng(seed).binomial(sizes, keep)
    more = 1 / keep - 1
    told = MissingResults(float(more * (kept == 1).sum()), float(more**2 * (kept == 2).sum()))
    return told, int((kept == 0).sum()), int(sizes[kept == 0].sum())


@pytest.mark.parametrize("keep", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("kind", ["alike", "1 to 1,000", "one row"])
def test_rows_are_told_without_bias_and_results_are_not_exaggerated(keep: float, kind: str) -> None:
    sizes = {
        "alike": np.full(720, 12),
        "1 to 1,000": np.round(10 ** np.linspace(0, 3, 720)).astype(int),
        "one row": np.ones(720, dtype=int),
    }[kind]
    tries = [sampled(sizes, keep, seed) for seed in range(300)]
    rows = np.mean([told.rows for told, _, _ in tries])
    assert rows == pytest.approx(np.mean([true for *_, true in tries]), rel=0.05, abs=0.5)
    pooled = sum((told for told, _, _ in tries), MissingResults())
    missing = sum(count for _, count, _ in tries)
    assert pooled.results <= 1.05 * missing + 30
    if kind != "1 to 1,000":
        assert pooled.results == pytest.approx(missing, rel=0.05, abs=30)
    else:
        assert pooled.results >= 0.35 * missing - 30, "a lower bound, far off where sizes differ widely"


def test_nothing_is_missing_where_nothing_was_dropped() -> None:
    assert MissingResults().results == 0.0
