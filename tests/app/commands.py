"""What tests of the command line share: the example, commands run here, and the example with a change."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml
from typer.testing import CliRunner, Result

from jettison.app.cli import app

ROOT = Path(__file__).resolve().parents[2]
TAXI = ROOT / "examples" / "taxi.yaml"
JETTISON = [sys.executable, "-c", "from jettison.app.cli import app; app()"]


def jettison(*arguments: object) -> Result:
    return CliRunner(env={"COLUMNS": "80"}).invoke(app, [str(each) for each in arguments])


def changed(tmp_path: Path, *path: str, to: Any) -> Path:
    """The example with the value at a path replaced, or removed where `to` is None."""
    content = yaml.safe_load(TAXI.read_text(encoding="utf-8"))
    place = content
    for key in path[:-1]:
        place = place[key]
    if to is None:
        del place[path[-1]]
    else:
        place[path[-1]] = to
    file = tmp_path / "changed.yaml"
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    return file
