"""One JVM of Flink, asked through its Python worker: jobs that run to their end, and one that runs until stopped."""

from __future__ import annotations

import json
import os
import queue
import re
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jettison.errors import StartError
from jettison.experiments.peers.flink import worker
from jettison.experiments.peers.flink.home import FlinkHome
from jettison.experiments.peers.flink.sql import Job

HEAP = "4g"
"""As much as the local Spark session has."""
_ANSWER_S = 300.0
_END_S = 30.0
_ASSIGNED = re.compile(r"Assigning (?:\w+ )?split.*?(part-[^/\s\]]+?\.parquet)")


class FlinkProcess:
    """Flink's local cluster in a process of its own; what it prints goes to `log`."""

    def __init__(self, home: FlinkHome, log: Path) -> None:
        self._log = log
        environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "FLINK_HOME")}
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [str(home.python), str(Path(worker.__file__))],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={
                    **environment,
                    "FLINK_LOG_DIR": str(log.parent),
                    "JVM_ARGS": f"-Xmx{HEAP}",
                },
                start_new_session=True,
            )
        self._seen = 0
        self._taken: Counter[str] = Counter()
        self._answers: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def run(self, job: Job, settings: Mapping[str, str]) -> float:
        """Run a job with a bounded source to its end; returns its seconds, from its creation to its last checkpoint."""
        return float(self._ask("run", job, settings)["seconds"])

    @contextmanager
    def running(self, job: Job, settings: Mapping[str, str]) -> Iterator[None]:
        """Run a job while the block does."""
        self._read_log()
        self._taken.clear()  # what earlier jobs have taken does not count
        self._ask("start", job, settings)
        try:
            yield
        finally:
            self._ask("stop")

    def check(self) -> None:
        """Raise when the job that was started has ended."""
        status = self._ask("status")["status"]
        if status in ("FAILED", "FINISHED", "CANCELED"):
            raise StartError(f"Flink's job has ended ({status}): {self._last_words()}")

    def has_taken(self, name: str) -> bool:
        """Whether every source of the job that was started has given a file to one of its readers, by Flink's log."""
        self._read_log()
        first = min(self._taken, default=name)
        return 0 < self._taken[first] <= self._taken[name]

    def _read_log(self) -> None:
        for path in self._log.parent.glob("flink-*-python-*.log"):
            with path.open("rb") as log:
                log.seek(self._seen)
                text = log.read()
            whole = text[: text.rfind(b"\n") + 1]
            self._seen += len(whole)
            self._taken.update(_ASSIGNED.findall(whole.decode(errors="replace")))

    def close(self) -> None:
        """End it: the JVM ends with the worker."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _ask(self, do: str, job: Job | None = None, settings: Mapping[str, str] | None = None) -> dict[str, Any]:
        asked: dict[str, Any] = {"do": do, "settings": dict(settings or {})}
        if job is not None:
            asked |= {"tables": job.tables, "inserts": job.inserts}
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(asked).encode() + b"\n")
            self._process.stdin.flush()
            answer: dict[str, Any] = json.loads(self._answers.get(timeout=_ANSWER_S) or b'{"fault": "it has ended"}')
        except (OSError, queue.Empty) as error:
            raise StartError(f"Flink does not answer ({error!r}): {self._last_words()}") from error
        if "fault" in answer:
            raise StartError(f"Flink failed to {do} a job: {_short(answer['fault'])} {self._last_words()}")
        return answer

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put(b"")

    def _last_words(self) -> str:
        return " | ".join(self._log.read_text(errors="replace").splitlines()[-3:])


def _short(fault: str) -> str:
    """The causes in a Java trace, without the places.

    >>> _short("Py4JJavaError: failed\\n\\tat a.b(C.java)\\nCaused by: no such file\\n\\tat d.e(F.java)")
    'Py4JJavaError: failed | Caused by: no such file'
    """
    lines = [line.strip() for line in fault.splitlines()]
    kept = [line for line in lines if line and not line.startswith("at ") and not line.startswith("...")]
    return " | ".join(kept[:1] + [line for line in kept[1:] if line.startswith("Caused by")][-3:])
