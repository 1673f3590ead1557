"""A lock for checkpoints that are not on this machine: a file that its holder renews, and others wait for.

checkpoint/.lease.json   who holds the checkpoint, and how often that was renewed

Only one of two runs that start together can create the file. A run that finds one watches it: if it is renewed, the
checkpoint is in use; if not, in as many looks as three renewals take, its holder is dead and the run takes it over.
Looks are counted, because time also passes while a busy machine keeps both runs from going on. Clocks of two machines
are never compared. A holder that finds another's name, or that cannot renew in time, runs no further
batch.

Limits. A holder that was frozen for longer than that (a suspended machine) may still finish what it had begun after
another has taken over; Spark's own log of offsets refuses to begin the same batch twice, and sinks that replace a
batch stay whole. Where a file system cannot create a file for one of two alone (some object stores), two runs that
start within the same instant are told apart by reading the file again after a moment.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import uuid
from pathlib import Path

from jettison.errors import CheckpointError
from jettison.spark.checkpoint.sealed import seal, unseal
from jettison.spark.checkpoint.small_files import Folder

RENEW_S = 10.0
_NAME = ".lease.json"
_SETTLE_SHARE = 0.1
_LOOKS = 5
"""So often a run looks, within a renewal, whether another holds the checkpoint."""


class Lease:
    """The right to use a checkpoint, held until `release`. `renew_s` is how often it is renewed."""

    def __init__(self, folder: Folder, *, renew_s: float | None = None) -> None:
        self._folder = folder
        self._renew_s = RENEW_S if renew_s is None else renew_s
        self._id = uuid.uuid4().hex
        self._renewals = 0
        self._renewed_s = time.monotonic()
        self._lost: str | None = None
        self._ended = threading.Event()
        self._take()
        self._thread = threading.Thread(target=self._renew, name="jettison-lease", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raise when another run may have taken the checkpoint."""
        if self._lost is None and time.monotonic() - self._renewed_s > 2 * self._renew_s:
            self._lost = "it could not be renewed in time"
        if self._lost is not None:
            raise CheckpointError(
                f"checkpoint {self._folder.path!r}: this run no longer holds it ({self._lost}), and writes nothing "
                f"more: start again when no other run uses it."
            )

    def release(self) -> None:
        """Let others use the checkpoint."""
        self._ended.set()
        self._thread.join(timeout=self._renew_s)
        if self._lost is None and self._holder() == self._id:
            self._folder.delete(_NAME)

    def _take(self) -> None:
        while not self._folder.create(_NAME, self._text()):
            seen = self._folder.read(_NAME)
            if seen is None:
                continue  # released meanwhile
            if not _is_dead(seen) and not self._is_silent(seen):
                self._refuse(seen)
            self._folder.write(_NAME, self._text())
            break
        time.sleep(_SETTLE_SHARE * self._renew_s)  # another that found it silent, or absent, may write it just now
        if self._holder() != self._id:
            self._refuse(self._folder.read(_NAME) or "")
        self._renewed_s = time.monotonic()

    def _is_silent(self, seen: str) -> bool:
        """Whether nobody renews what was seen, in as many looks as three renewals take."""
        for _ in range(3 * _LOOKS):
            time.sleep(self._renew_s / _LOOKS)
            now = self._folder.read(_NAME)
            if now != seen:
                return now is None
        return True

    def _refuse(self, seen: str) -> None:
        holder = _content(seen).get("holder", "another run")
        raise CheckpointError(
            f"checkpoint {self._folder.path!r} is in use by {holder}: stop that run first, or give this one its own "
            f"checkpoint."
        )

    def _holder(self) -> str | None:
        return _content(self._folder.read(_NAME) or "").get("id")

    def _text(self) -> str:
        holder = f"process {os.getpid()} on {socket.gethostname()}"
        content = {"id": self._id, "holder": holder, "process": os.getpid(), "machine": _machine()}
        return seal(json.dumps({**content, "renewals": self._renewals}))

    def _renew(self) -> None:
        while not self._ended.wait(self._renew_s):
            try:
                if self._holder() != self._id:
                    self._lost = "another run has taken it"
                    return
                self._renewals += 1
                self._folder.write(_NAME, self._text())
                self._renewed_s = time.monotonic()
            except Exception:  # a file system that is away for a moment; `check` tells when that lasts
                continue


def _content(text: str) -> dict[str, str]:
    try:
        found: dict[str, str] = json.loads(unseal(text))
        return found
    except ValueError:
        return {}


def _is_dead(text: str) -> bool:
    """Whether the holder was a process of this very machine that has ended."""
    content = _content(text)
    if content.get("machine") != _machine():
        return False
    return not Path(f"/proc/{content.get('process')}").exists()


def _machine() -> str:
    """This machine since it was started, and the container, as far as processes are numbered apart."""
    try:
        booted = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{booted} {os.readlink('/proc/self/ns/pid')}"
    except OSError:  # no /proc: whoever holds it is waited for
        return uuid.uuid4().hex
