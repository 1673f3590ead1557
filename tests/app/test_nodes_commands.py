"""The commands on a network of several nodes: what they show, and what they refuse."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from tests.app.commands import ROOT, TAXI, jettison
from tests.plan.nodes.networks import shop

from jettison.spec.as_yaml import to_yaml

pytestmark = pytest.mark.core

PIPELINE = ROOT / "examples" / "pipeline.yaml"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The shop as a file."""
    made, rates = shop()
    costs, passes = dict(made.profile.cost_us), dict(made.profile.selectivity)
    profile = {"cost_us": costs, "selectivity": passes, "rows_per_s": rates}
    path = tmp_path / "shop.yaml"
    path.write_text(to_yaml(made.graph) + yaml.safe_dump({"profile": profile}), encoding="utf-8")
    return path


def test_plan_draws_all_drops_and_compares_by_one_headroom(file: Path) -> None:
    shown = jettison("plan", file).stdout
    boxes, _, tables = shown.partition(" node ")
    listed = re.findall(r"(?:views|buys|seen>hot) +([\d.]+ %)", tables)
    assert sorted(re.findall(r"<< keep ([\d.]+ %)", boxes)) == sorted(listed)
    assert len(listed) == 3
    assert "seen: link from ingest" in boxes
    items = re.search(r"items.*?([\d.]+) %\s+[\d.]+\s+([\d.]+) %", tables)
    # by itself: .9 of (135,000 x (20 + 7)) / .5e6 fits on the node that reads it, after .9/1.25 on the first
    assert items is not None
    assert float(items[2]) == pytest.approx(100 * 0.45e6 / (135_000 * 27), abs=0.1)


def test_explain_shows_operators_node_by_node(file: Path) -> None:
    shown = jettison("explain", file).stdout
    for row in (
        r"node left, capacity 0\.5 +729 %",
        r"hot +20 +30 % +135,000 +540 % +0 %",
        r"seen_to_left \(link to left\) +0 +100 % +135,000 +0 %",
    ):
        assert re.search(row, shown), shown
    assert "node ingest: load 125 % of its capacity" in shown
    chart = jettison("explain", file, "--mermaid").stdout
    assert 'subgraph node_left["left: load 729 %' in chart
    assert "seen -->|keep 0 %| hot" in chart


def test_simulate_takes_a_mode_and_a_shedder_and_draws(tmp_path: Path, file: Path) -> None:
    shown = jettison("simulate", file, "--for", "10", "--mode", "local", "--out", tmp_path / "pictures")
    assert shown.exit_code == 0
    assert "simulation of 3 nodes" in shown.stdout
    assert (tmp_path / "pictures" / "simulation.png").stat().st_size > 5000
    found = [
        json.loads(jettison("simulate", file, "--for", "6", "--mode", "local", "--json", *more).stdout)
        for more in ([], ["--shedder", "input-uniform"])
    ]
    assert found[0]["batches"] != found[1]["batches"]


@pytest.mark.parametrize(
    ("spec", "arguments", "said"),
    [
        (TAXI, ["--mode", "tables"], "has no `nodes`"),
        (PIPELINE, ["--mode", "solver"], "use one of local, per-tick, tables, neighbours"),
        (PIPELINE, ["--scheduler", "round-robin"], "micro-batches"),
        (PIPELINE, ["--shedder", "nobody"], "input-uniform"),
        (PIPELINE, ["--rate", "clicks=0"], "rate of source 'clicks' is 0"),
    ],
)
def test_simulate_refuses(spec: Path, arguments: list[str], said: str) -> None:
    result = jettison("simulate", spec, *arguments)
    assert result.exit_code in (1, 2)
    assert said in " ".join(result.output.split())


@pytest.mark.parametrize("command", ["plan", "explain"])
def test_a_source_that_brings_nothing_is_refused(command: str) -> None:
    result = jettison(command, PIPELINE, "--rows-per-s", "clicks=0")
    assert result.exit_code != 0
    assert "rate of source 'clicks' is 0" in " ".join(result.output.split())
