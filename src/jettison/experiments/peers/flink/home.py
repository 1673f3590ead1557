"""Flink, installed once into an environment of its own under the user's cache: PyFlink by pip, connectors by Ivy.

The project's own environment is left alone: PyFlink asks for other versions of pandas, pyarrow and py4j.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from jettison.errors import StartError
from jettison.experiments.harness import Say
from jettison.spark.read.jars import Jar, cache, fetch, from_pyspark, java

VERSION = "2.3.0"
_KAFKA_CONNECTOR = "5.0.0-2.2"
_INSTALL_S = 1200.0
_STAMP = ".installed"


@dataclass(frozen=True)
class FlinkHome:
    """The Python that has PyFlink, with the connectors in its `lib` folder."""

    python: Path


def flink_home(say: Say) -> FlinkHome:
    """Flink as installed, or installed now; raises `StartError` with the reason where that is not possible."""
    java()
    folder = _folder()
    python = folder / "bin" / "python"
    if not is_installed():
        cache().mkdir(parents=True, exist_ok=True)
        with (cache() / ".flink-lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not is_installed():
                say(f"installing PyFlink {VERSION} into {folder}, once (800 MB, some minutes)")
                _install(folder, python)
                _add_jars(folder, _jars())
                (folder / _STAMP).touch()
    return FlinkHome(python)


def is_installed() -> bool:
    """Whether an earlier run has installed Flink."""
    return (_folder() / _STAMP).exists()


def _folder() -> Path:
    return cache() / f"pyflink-{VERSION}-py{sys.version_info.major}.{sys.version_info.minor}"


def _install(folder: Path, python: Path) -> None:
    _call([sys.executable, "-m", "venv", "--clear", str(folder)], "no virtual environment can be made")
    command = [
        str(python),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        f"apache-flink=={VERSION}",
    ]
    _call(command, f"pip cannot install apache-flink {VERSION}")


def _call(command: list[str], fault: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_INSTALL_S, check=False, env=environment)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StartError(f"{fault}: {error}") from error
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise StartError(f"{fault}: {lines[-1] if lines else 'it says nothing'}")


def _jars() -> list[Path]:
    """The connectors, and the parts of Hadoop that Flink's parquet format needs, which PySpark brings."""
    connectors = fetch(
        f"flink-{VERSION}",
        [
            Jar("org.apache.flink", "flink-sql-connector-kafka", _KAFKA_CONNECTOR),
            Jar("org.apache.flink", "flink-sql-parquet", VERSION),
        ],
    )
    return [*connectors, *from_pyspark("hadoop-client-api-", "hadoop-client-runtime-", "jcl-over-slf4j-")]


def _add_jars(folder: Path, jars: list[Path]) -> None:
    lib = next(folder.glob("lib/python*/site-packages/pyflink/lib"), None)
    if lib is None:
        raise StartError(f"apache-flink {VERSION} in {folder} has no folder pyflink/lib.")
    for jar in jars:
        (lib / jar.name).unlink(missing_ok=True)
        shutil.copy(jar, lib / jar.name)  # no link: the environment that PySpark is in may be made anew
