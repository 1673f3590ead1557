"""Experiments on several nodes in their quick form. They need no Spark; counts are judged, times are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from jettison.experiments.harness import EXPERIMENTS, Result, experiment, save

pytestmark = pytest.mark.core

KEYS = {
    "table-5-1": {"rows_equal", "optimum"},
    "table-5-4": {"rows_equal"},
    "fig-5-12": {"cfit_faster", "solverw_faster", "solver_worst_error", "cfit_worst_error", "fine_cfit_s"},
    "fig-5-13": {"rises_with_lambda", "falls_with_provision"},
    "fig-5-15": {"cfit_faster_above"},
    "fig-5-16": {"cfit_8_inputs_s", "entries"},
    "table-5-5": {"entries", "furthest_ratio"},
    "fig-5-17": {"fewer_than_full"},
    "per-tick": {"tick_ms", "tick_large_ms", "worst_tick_ms", "worst_tick_large_ms", "error"},
    "distributed": {
        "coordinated_vs_local",
        "lossy_vs_coordinated",
        "gone_vs_coordinated",
        "worst_gone_vs_coordinated",
        "median_gone_vs_coordinated",
    },
}
TIMED = {"fig-5-12", "fig-5-15", "fig-5-16", "per-tick"}
SLOW = {"fig-5-12", "fig-5-13", "distributed"}


def quick(name: str, folder: Path) -> Result:
    found = experiment(name)
    assert found is not None
    result = found.run(quick=True, say=lambda _: None)
    written = save(result, folder)
    assert [path.suffix for path in written] == [".csv", ".png"]
    assert KEYS[name] <= set(result.metrics)
    return result


def test_all_of_them_are_here() -> None:
    assert {each.name for each in EXPERIMENTS if each.module.startswith("nodes.")} == set(KEYS)
    for each in EXPERIMENTS:
        if each.name in KEYS:
            assert "planning" in each.summary or "simulation" in each.summary


@pytest.mark.parametrize("name", sorted(set(KEYS) - TIMED - SLOW))
def test_counted(name: str, tmp_path: Path) -> None:
    result = quick(name, tmp_path)
    assert result.passed, (result.checks, result.metrics)


@pytest.mark.parametrize("name", sorted(TIMED - SLOW))
def test_timed(name: str, tmp_path: Path) -> None:
    result = quick(name, tmp_path)
    assert result.metrics.get("error", 0.0) < 1e-6
    assert result.metrics.get("cfit_error", 0.0) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SLOW))
def test_slow(name: str, tmp_path: Path) -> None:
    result = quick(name, tmp_path)
    if name == "distributed":
        assert result.metrics["coordinated_vs_local"] >= 1.3
        assert result.checks["no node is overloaded without shedding"]
    if name == "fig-5-12":
        assert result.metrics["solver_worst_error"] <= 0.05
        assert result.metrics["fine_cfit_worst_error"] <= 0.05
