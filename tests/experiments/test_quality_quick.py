"""Experiments on priorities and minimum accuracies in their quick form. They need no Spark; times are not judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from jettison.experiments.harness import Result, experiment, save

pytestmark = pytest.mark.core


def quick(name: str, folder: Path) -> Result:
    found = experiment(name)
    assert found is not None
    assert found.summary.startswith(("simulation: ", "planning: "))
    result = found.run(quick=True, say=lambda _: None)
    assert [path.suffix for path in save(result, folder)] == [".csv", ".png"]
    return result


def test_scenario_1(tmp_path: Path) -> None:
    result = quick("qod-scenario-1", tmp_path)
    assert result.passed, (result.checks, result.metrics)
    assert result.metrics["moved"] == ["TDSnk1.1", "TDSnk1.2"]
    assert len(result.metrics["throughput_gain"]) == 2


def test_scenario_2(tmp_path: Path) -> None:
    result = quick("qod-scenario-2", tmp_path)
    assert result.passed, (result.checks, result.metrics)
    assert result.metrics["priority_inversions"] == 0


def test_scale(tmp_path: Path) -> None:
    result = quick("qod-scale", tmp_path)
    assert {"cycle_ms", "cycle_large_ms"} <= set(result.metrics)
    assert result.checks["load is shed in every cycle"]
    assert result.checks["nothing has to move"]
