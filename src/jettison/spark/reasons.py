"""What Spark's errors say, in one line: they bring a Java stack or a worker's traceback along."""

from __future__ import annotations

_TRACEBACK = "Traceback (most recent call last):"


def reason_of(error: BaseException) -> str:
    """The line that says what went wrong: a worker's exception, else what Java threw, else the first line.

    >>> reason_of(ValueError("An exception was thrown from the Python worker:\\nTraceback (most recent call last):\\n"
    ...                      '  File "fares.py", line 3, in fare\\nKeyError: 7\\n\\tat org.apache.spark.Task.run'))
    'KeyError: 7'
    >>> reason_of(ValueError("An error occurred while calling o51.save.\\n: java.io.IOException: disk full\\n\\tat"))
    'java.io.IOException: disk full'
    >>> reason_of(OSError("no space left"))
    'no space left'
    """
    lines = [line.rstrip() for line in str(error).splitlines() if line.strip()]
    tracebacks = [number for number, line in enumerate(lines) if line.endswith(_TRACEBACK)]
    if tracebacks:
        thrown = [line for line in lines[tracebacks[-1] + 1 :] if not line[0].isspace()]
    else:
        thrown = [line.removeprefix(": ") for line in lines if line.startswith(": ")]
    return next(iter(thrown or lines), type(error).__name__).strip()
