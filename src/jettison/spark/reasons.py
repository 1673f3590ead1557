"""What Spark's errors say, in one line: they bring a Java stack or a worker's traceback along."""

from __future__ import annotations

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from jettison.errors import JettisonError

_CAUSE = "Caused by: "
_TRACEBACK = "Traceback (most recent call last):"


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
    """
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
