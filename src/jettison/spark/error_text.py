"""What Spark's errors say, in one line: they bring a Java stack or a worker's traceback along."""

from __future__ import annotations

from types import TracebackType

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from jettison.errors import JettisonError

_CAUSE = "Caused by: "
_FULL = ("No space left on device", "Disk quota exceeded")
_NOT_OWN = ("concurrent", "jettison", "py4j", "pyspark", "threading")
_TRACEBACK = "Traceback (most recent call last):"
_WORKER_GONE = "Python worker exited unexpectedly"
_WORKER_ENDED = (
    "a Python worker has died, or was ended: it ran out of memory, crashed in compiled code, or a function of a map "
    "did not come back within twice its `limit`. What the worker wrote to stderr says where it was."
)


def reason_of(error: BaseException) -> str:
    """The line that says what went wrong: a worker's exception, else what Java threw and its first cause, else the
    first line.

    >>> reason_of(ValueError("An exception was thrown from the Python worker:\\nTraceback (most recent call last):\\n"
    ...                      '  File "fares.py", line 3, in fare\\nKeyError: 7\\n\\tat org.apache.spark.Task.run'))
    'KeyError: 7'
    >>> reason_of(ValueError("An error occurred while calling o51.save.\\n: java.io.IOException: disk full\\n\\tat"))
    'java.io.IOException: disk full'
    >>> reason_of(ValueError("An error occurred\\n: org.apache.spark.SparkException: Task failed\\n\\tat x\\n"
    ...                      "Caused by: java.io.IOException: disk full\\n\\tat y"))
    'org.apache.spark.SparkException: Task failed (java.io.IOException: disk full)'
    >>> reason_of(OSError("no space left"))
    'no space left'
    >>> reason_of(ValueError("Python worker exited unexpectedly (crashed). Consider ...")).partition(":")[0]
    'a Python worker has died, or was ended'
    """
    if _WORKER_GONE in str(error):
        return _WORKER_ENDED
    lines = [line.rstrip() for line in str(error).splitlines() if line.strip()]
    tracebacks = [number for number, line in enumerate(lines) if line.endswith(_TRACEBACK)]
    if tracebacks:
        thrown = [line for line in lines[tracebacks[-1] + 1 :] if not line[0].isspace()]
    else:
        thrown = [line.removeprefix(": ") for line in lines if line.startswith(": ")]
        causes = [line.strip().removeprefix(_CAUSE) for line in lines if line.strip().startswith(_CAUSE)]
        if thrown and causes and causes[-1] not in thrown[0]:
            return f"{thrown[0].strip()} ({causes[-1].strip()})"
    return next(iter(thrown or lines), type(error).__name__).strip()


def failed_at(error: BaseException, path: str) -> str:
    """The same with its kind, for an error of whoever writes to `path`: where a disk is full, which, and the remedy.

    >>> failed_at(OSError(28, "No space left on device"), "/data/fares")
    "No space left on device: make room on the disk of '/data/fares'"
    >>> failed_at(ValueError("no such fare"), "/data/fares")
    'ValueError: no such fare'
    """
    full = full_disk_words(str(error))
    if full is not None:
        return f"{full}: make room on the disk of {path!r}"
    return f"{type(error).__name__}: {reason_of(error)}"


def full_disk_words(text: str) -> str | None:
    """The words of an error that tell of a full disk; None where none do."""
    return next((each for each in _FULL if each in text), None)


def without_our_frames(error: BaseException | None) -> BaseException | None:
    """An error whose traceback has the user's functions, and nothing of Spark, of threads and of this package."""
    if error is not None:
        error.__traceback__ = _own_frames(error.__traceback__)
        error.__suppress_context__ = True
        without_our_frames(error.__cause__)
    return error


def _own_frames(frames: TracebackType | None) -> TracebackType | None:
    if frames is None:
        return None
    below = _own_frames(frames.tb_next)
    package = str(frames.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
    return below if package in _NOT_OWN else TracebackType(below, frames.tb_frame, frames.tb_lasti, frames.tb_lineno)


def shown_cause(error: BaseException | None) -> BaseException | None:
    """The cause to show below an error of ours: Python's own as it is, of Spark's only what a Python worker said.

    The rest is a Java stack of a hundred lines, which `run.query.exception()` still has.

    >>> shown_cause(Py4JError("An error occurred\\n: java.io.IOException: disk full\\n\\tat org.apache.spark.Task.run"))
    >>> shown_cause(OSError("no space left"))
    OSError('no space left')
    """
    if not isinstance(error, Py4JError | PySparkException):
        return error
    _, found, after = str(error).rpartition(_TRACEBACK)
    said = [line for line in after.splitlines() if line.strip() and not line.lstrip().startswith("at ")]
    return JettisonError("\n".join(["in a Python worker", found, *said])) if found else None
