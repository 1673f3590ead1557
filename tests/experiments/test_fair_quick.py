"""Experiments of fair shedding that need no Spark, in their quick form."""

from __future__ import annotations

from pathlib import Path

import pytest

from jettison.experiments.harness import experiment, save

pytestmark = pytest.mark.core

KEYS = {
    "fair-gap": {"p5_ratio", "median_ratio"},
    "fair-speed": {"decision_ms"},
    "fair-global": {"jain_local", "jain_global", "jain_lossy"},
}


@pytest.mark.parametrize("name", sorted(KEYS))
def test_quick(name: str, tmp_path: Path) -> None:
    found = experiment(name)
    assert found is not None
    result = found.run(quick=True, say=lambda _: None)
    assert [path.suffix for path in save(result, tmp_path)] == [".csv", ".png"]
    assert KEYS[name] <= set(result.metrics)
    if name != "fair-speed":  # times are judged on a machine that does nothing else
        assert result.passed, (result.checks, result.metrics)
