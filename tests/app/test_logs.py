"""How much of the log the command line shows, and where: on stderr, plain lines, nothing twice."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest
from tests.app.commands import TAXI, jettison

from jettison.app.logs import LOG, show_log, step

pytestmark = pytest.mark.core


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({}, ["starting Spark", "begins", "cannot keep up"]),
        ({"live": True}, ["cannot keep up"]),
        ({"verbose": True}, ["starting Spark", "batch 7", "begins", "cannot keep up"]),
        ({"verbose": True, "live": True}, ["starting Spark", "batch 7", "begins", "cannot keep up"]),
        ({"quiet": True}, []),
    ],
)
def test_trust_22_how_much_of_the_log_is_shown(
    options: dict[str, bool], shown: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    before = LOG.level, list(LOG.handlers)
    try:
        for _ in range(2):  # a second command in this process shows nothing twice
            show_log(**options)
        with step("starting Spark"):
            LOG.debug("batch 7")
            LOG.info("begins")
            LOG.warning("cannot\nkeep up")
            LOG.error("failed: the command says so itself")
    finally:
        LOG.setLevel(before[0])
        LOG.handlers = before[1]
    printed = capsys.readouterr()
    assert printed.err.splitlines() == [f"jettison: {text}" for text in shown]
    assert printed.out == ""


@pytest.mark.parametrize("verbose", [False, True])
def test_tracebacks_of_py4j_are_shown_only_where_all_is(verbose: bool) -> None:
    """It logs them by the root logger when the driver's JVM is gone. That must not show our own lines twice either."""
    code = f"""
import logging
from jettison.app.logs import show_log
show_log(verbose={verbose})
try:
    raise ConnectionResetError("peer")
except ConnectionResetError:
    logging.exception("Exception while sending command.")
logging.getLogger("jettison").warning("its Spark session has ended")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ("Traceback" in done.stderr) == verbose
    assert done.stderr.startswith("jettison: its Spark session has ended\n") != verbose
    assert done.stderr.count("its Spark session has ended") == 1 + verbose


def test_trust_22_options_that_exclude_each_other() -> None:
    for command in (["run", TAXI], ["demo"], ["experiment", "run", "planning"]):
        result = jettison(*command, "--verbose", "--quiet")
        assert result.exit_code == 2
        assert "--verbose and --quiet exclude each other" in result.stderr


def test_trust_22_the_library_prints_nothing_by_itself() -> None:
    code = "import logging, jettison; logging.getLogger('jettison').warning('cannot keep up')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
    assert logging.getLogger("jettison").name == "jettison"
