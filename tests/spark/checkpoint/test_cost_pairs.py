"""Published costs in the checkpoint: found by name, refused when damaged, deleted when no plan can name them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from jettison.app.cost_model import cost_tables
from jettison.errors import CheckpointError
from jettison.spark.checkpoint.cost_pairs import CostPairs
from jettison.spark.checkpoint.small_files import LocalFolder
from jettison.statistics.sketches.cost_pair import CostPair
from jettison.statistics.sketches.cost_sketch import CostSketch
from jettison.statistics.sketches.key_hash import key_hash

pytestmark = pytest.mark.core

KEYS = key_hash([np.array([7, 8])])


def pair_of(cost_us: float) -> CostPair:
    return CostPair.of(CostSketch.empty(2, 50).updated(KEYS[[0, 0, 0, 1]], np.array([1.0, 1.0, 1.0, cost_us])))


def test_pairs_outlive_a_restart_and_old_ones_are_deleted(tmp_path: Path) -> None:
    pairs, made = CostPairs(LocalFolder(tmp_path)), [pair_of(cost_us) for cost_us in (10.0, 20.0, 30.0)]
    for batch, pair in zip((0, 5, 9), made, strict=True):
        pairs.keep("score", pair, batch, {int(KEYS[1]): "airport"}, "f by k")
        pairs.keep("score", pair, batch + 1, {}, "f by k")  # the same one again is nothing new
    again = CostPairs(LocalFolder(tmp_path))
    assert again.newest({"score": "f by k", "other": "g by k"}) == {"score": made[2]}
    assert [again.read(pair.name) for pair in made] == made
    again.tidy(oldest=5)  # plans from batch 5 on are left: the first pair was used up to batch 4
    fresh = CostPairs(LocalFolder(tmp_path))
    with pytest.raises(CheckpointError, match=r"costs .* are gone"):
        fresh.read(made[0].name)
    assert fresh.read(made[1].name) == made[1]
    assert len(list((tmp_path / "costs").glob("*.keys.json"))) == 2


def test_costs_of_another_function_or_by_another_key_are_not_gone_on_with(tmp_path: Path) -> None:
    CostPairs(LocalFolder(tmp_path)).keep("score", pair_of(10.0), 0, {}, "f by k")
    again = CostPairs(LocalFolder(tmp_path))
    assert again.newest({"score": "f by other"}) == {}
    again.keep("score", pair_of(10.0), 4, {}, "f by other")
    assert again.newest({"score": "f by other"}) == {"score": pair_of(10.0)}


@pytest.mark.parametrize("damaged", [False, True])
def test_a_pair_that_no_batch_needs_may_be_gone_or_damaged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, damaged: bool
) -> None:
    pair = pair_of(10.0)
    CostPairs(LocalFolder(tmp_path)).keep("score", pair, 0, {}, "f by k")
    path = tmp_path / "costs" / f"{pair.name}.pair"
    path.write_bytes(path.read_bytes()[:-9]) if damaged else path.unlink()
    again = CostPairs(LocalFolder(tmp_path))
    assert again.newest({"score": "f by k"}) == {}
    assert "costs of map 'score' are learned anew" in caplog.text
    with pytest.raises(CheckpointError, match=pair.name):  # a batch that is repeated needs it
        again.read(pair.name)


def test_a_damaged_pair_is_refused_by_name(tmp_path: Path) -> None:
    pair = pair_of(10.0)
    CostPairs(LocalFolder(tmp_path)).keep("score", pair, 0, {})
    path = tmp_path / "costs" / f"{pair.name}.pair"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=rf"{pair.name}.*damaged"):
        CostPairs(LocalFolder(tmp_path)).read(pair.name)


def test_explain_shows_the_dearest_and_the_most_frequent_keys(tmp_path: Path) -> None:
    assert list(cost_tables(tmp_path)) == []
    names = {int(KEYS[0]): "centre", int(KEYS[1]): "airport"}
    CostPairs(LocalFolder(tmp_path)).keep("score", pair_of(97.0), 3, names, "f by k")
    (table,) = cost_tables(tmp_path)
    console = Console(width=100, record=True)
    console.print(table)
    shown = console.export_text()
    assert "map score: costs used since batch 3, of 4 tuples" in " ".join(shown.split())
    dearest, frequent = shown.split("the most frequent")
    assert dearest.index("airport") < dearest.index("centre")
    assert frequent.index("centre") < frequent.index("airport")
    assert "97 %" in shown


def test_explain_shows_keys_as_they_are_and_names_a_damaged_index(tmp_path: Path) -> None:
    names = {int(KEYS[0]): "[/red] lamp", int(KEYS[1]): "[bold]"}
    CostPairs(LocalFolder(tmp_path)).keep("score", pair_of(97.0), 3, names)
    console = Console(width=100, record=True)
    console.print(*cost_tables(tmp_path))
    shown = console.export_text()
    assert "[/red] lamp" in shown
    assert "[bold]" in shown
    (tmp_path / "costs" / "pairs.json").write_text('{"score": [')
    with pytest.raises(CheckpointError, match=r"pairs\.json"):
        list(cost_tables(tmp_path))
