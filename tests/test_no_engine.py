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
@pytest.mark.parametrize("module", WITHOUT_ENGINE)
def test_import_loads_no_engine(module: str) -> None:
    # A process of its own: in this one another test may have loaded pyspark already.
    script = f"import sys, {module}; print(*(name for name in {ENGINES!r} if name in sys.modules))"

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)

    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [], f"importing {module} loaded an engine"
