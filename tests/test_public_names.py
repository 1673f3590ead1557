"""What a newcomer types first: `dir(jt)`, `python -m jettison`."""

from __future__ import annotations

import copy
import subprocess
import sys

import pytest

import jettison as jt
from jettison.network.columns.words import an

pytestmark = pytest.mark.core


def test_trust_25_dir_shows_all_public_names() -> None:
    assert set(jt.__all__) <= set(dir(jt))
    with pytest.raises(AttributeError, match=r"no attribute 'strat' \(did you mean 'start'\?\)"):
        jt.strat  # noqa: B018


@pytest.mark.parametrize("module", ["jettison", "jettison.app.cli"])
def test_trust_25_modules_run_as_the_command_does(module: str) -> None:
    done = subprocess.run([sys.executable, "-m", module, "--help"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "Usage: jettison " in done.stdout
    assert "experiment" in done.stdout
    done = subprocess.run([sys.executable, "-m", module, "chek"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr


def test_presets_that_are_not_there_are_named_with_those_that_are() -> None:
    with pytest.raises(AttributeError, match=r"no preset 'taxi' \(did you mean 'TAXI'\?\): it has ENEMY_UNITS, .*TAXI"):
        jt.presets.taxi  # noqa: B018


def test_networks_and_streams_can_be_copied_though_they_answer_for_unknown_names() -> None:
    net = jt.Network("n")
    stream = net.source("s", "a int")
    assert copy.copy(net).graph == copy.deepcopy(net).graph == net.graph
    assert copy.copy(stream).name == "s"
    assert not hasattr(stream, "filter")


def test_articles_fit() -> None:
    assert [an(word) for word in ("aggregate", "int", "bigint", "union", "unit")] == [
        "an aggregate", "an int", "a bigint", "a union", "a unit",
    ]  # fmt: skip
