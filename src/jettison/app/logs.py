"""The log on the screen: what Jettison logs goes to stderr, one plain line each; the user says how much of it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from jettison.app.screen import err

LOG = logging.getLogger("jettison")

Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Log every batch to stderr.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print results and errors only.")]


class _ToStderr(logging.Handler):
    """Writes to what stderr is when a line comes: a live line on the terminal moves out of the way for it.

    Failures are left out: the command ends with them, in one line of its own.
    """

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.ERROR:
            return
        try:
            print(f"jettison: {' '.join(self.format(record).split())}", file=sys.stderr, flush=True)
        except Exception:
            self.handleError(record)


def show_log(*, verbose: bool = False, quiet: bool = False, live: bool = False) -> None:
    """Show the log: every batch with `verbose`, nothing with `quiet`, and warnings beside a `live` line, which
    tells the rest. Without one, in files and pipes, also what begins and ends."""
    if verbose and quiet:
        raise typer.BadParameter("--verbose and --quiet exclude each other: give one of them.")
    level = logging.DEBUG if verbose else logging.ERROR if quiet else logging.WARNING if live else logging.INFO
    LOG.handlers = [each for each in LOG.handlers if not isinstance(each, _ToStderr)]
    LOG.addHandler(_ToStderr())
    LOG.setLevel(level)
    if not verbose and not logging.root.handlers:
        # py4j logs tracebacks by the root logger, which would then begin to show all, and our own lines twice
        logging.root.addHandler(logging.NullHandler())


@contextmanager
def step(message: str) -> Iterator[None]:
    """Something that takes a while: a spinner on a terminal, else one line; nothing where the log is quiet."""
    if err.is_terminal and LOG.isEnabledFor(logging.WARNING):
        with err.status(message):
            yield
    else:
        LOG.info(message)
        yield
