"""The core, and the command line, start without Spark: importing them loads no engine."""

from __future__ import annotations

import subprocess
import sys

import pytest

ENGINES = ("pyspark", "py4j")

WITHOUT_ENGINE = [
    "jettison",
    "jettison.errors",
    "jettison.network",
    "jettison.statistics",
    "jettison.detect",
    "jettison.plan",
    "jettison.control",
    "jettison.sim",
    "jettison.app.cli",
]


@pytest.mark.core
def test_imports_load_no_engine() -> None:
    # A process of its own: in this one another test may have loaded pyspark already. One for all modules: the first
    # that loads an engine is named.
    script = (
        f"import sys, importlib\nfor module in {WITHOUT_ENGINE!r}:\n    importlib.import_module(module)\n"
        f"    print(module, *(name for name in {ENGINES!r} if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:-1] == WITHOUT_ENGINE, "a module loaded an engine"
