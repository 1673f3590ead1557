"""Rows on which a user's function fails, found by halving: functions in `.apply()`, and functions in Python.

A function of a DataFrame cannot be tried row by row. Where a batch fails, each such function is run on its rows again,
then on halves of them, until the rows are found without which it does not fail. Those are rejected at its operator, and
the batch is repeated. That takes about twice the time of the function, and 0.1 s for each of some twenty jobs per bad
row. A function that fails on more rows than `MOST_BAD`, or on each of a few drawn at random, is wrong, not its rows:
the run ends, and says so.

A half is told by a hash of the row's identity. Rows of the same identity are the same row, and are rejected together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from jettison.errors import JettisonError, OperatorError
from jettison.network.operators import Operator, kind_of
from jettison.spark.compile.drops import IDENTITY, changing
from jettison.spark.error_text import reason_of
from jettison.spark.guard.careful import is_of_data

MOST_BAD = 32
"""So many rows of a batch are looked for, by operator."""
_BITS = 48
_FEW = 500
"""Of so many rows the identities come to the driver."""
_LEAST, _DRAWN = 16, 4
"""Of a batch of at least so many rows so many are drawn: where it fails on each of them, nobody looks for more."""
_PYTHON = re.compile(r"PythonException|thrown from the Python worker")


def is_of_rows(error: BaseException) -> bool:
    """Whether an error may come from what a row holds: Spark's own, or one of a function in Python.

    >>> is_of_rows(ValueError("PythonException: KeyError: 7")), is_of_rows(OSError("disk full"))
    (True, False)
    """
    seen: BaseException | None = error
    while seen is not None:
        if _PYTHON.search(str(seen)):
            return True
        seen = seen.__cause__
    return is_of_data(error)


def isolate(
    operator: Operator, rows: DataFrame, applied: Callable[[DataFrame], DataFrame], already: int
) -> tuple[frozenset[int], str]:
    """The identities of the rows on which an operator fails, and why it did; none where it does not fail, or its rows
    cannot be computed. `already` so many rows of the batch are set aside."""
    if IDENTITY not in rows.columns:
        return frozenset(), ""
    kept = rows.persist()
    try:
        kept.count()
    except Exception as error:
        kept.unpersist()
        if not is_of_rows(error):
            raise
        return frozenset(), ""  # it is another operator's fault
    try:
        search = _Search(operator, applied, already)
        return search.of(kept), search.reason
    finally:
        kept.unpersist()


def halve(ids: list[int], fails: Callable[[list[int]], bool], add: Callable[[int], None], *, known: bool) -> bool:
    """Add those of some rows on which something fails alone; whether it fails on them together, which may be `known`.

    >>> asked, bad = [], []
    >>> def fails(ids):
    ...     asked.append(len(ids))
    ...     return bool({3, 70} & set(ids))
    >>> halve(list(range(100)), fails, bad.append, known=True), bad, len(asked)
    (True, [3, 70], 20)
    """
    if not ids or (not known and not fails(ids)):
        return False
    if len(ids) == 1:
        if known and not fails(ids):
            return False  # others were needed for it to fail
        add(ids[0])
        return True
    half = len(ids) // 2
    left = halve(ids[:half], fails, add, known=False)
    halve(ids[half:], fails, add, known=not left)
    return True


@dataclass
class _Search:
    operator: Operator
    applied: Callable[[DataFrame], DataFrame]
    already: int
    bad: set[int] = field(default_factory=set)
    reason: str = ""

    def of(self, rows: DataFrame) -> frozenset[int]:
        if self._fails(rows):
            few = [row[0] for row in rows.select(IDENTITY).distinct().limit(_LEAST).collect()]
            if len(few) == _LEAST and all(self._fails(rows.where(_among([each]))) for each in few[:_DRAWN]):
                raise self._wrong(f"fails on each of {_DRAWN} rows of a batch, drawn at random")
            self._hashed(rows, 0, 1 << _BITS, known=True)
            if not self.bad:
                raise self._wrong("fails on the rows of a batch, and on none of them alone")
        return frozenset(self.bad)

    def _hashed(self, rows: DataFrame, first: int, end: int, *, known: bool) -> bool:
        """Look into the rows of a range of hashes; whether any is bad. `known` says that they fail together."""
        here = rows.where(_between(first, end))
        few = [row[0] for row in here.select(IDENTITY).distinct().limit(_FEW + 1).collect()]
        if len(few) <= _FEW:
            return halve(sorted(few), lambda ids: self._fails(rows.where(_among(ids))), self._add, known=known)
        if not known and not self._fails(here):
            return False
        middle = (first + end) // 2
        left = self._hashed(rows, first, middle, known=False)
        self._hashed(rows, middle, end, known=not left)
        return True

    def _add(self, identity: int) -> None:
        self.bad.add(identity)
        if self.already + len(self.bad) > MOST_BAD:
            raise self._wrong(f"fails on more than {MOST_BAD} rows of a batch")

    def _wrong(self, how: str) -> OperatorError:
        return OperatorError(
            f"{kind_of(self.operator)} {self.operator.name!r} {how} ({self.reason}). The batch is not committed: mend "
            f"the function, or let it give null for such rows, and start again; the batch is repeated."
        )

    def _fails(self, rows: DataFrame) -> bool:
        try:
            self.applied(rows).write.format("noop").mode("overwrite").save()
        except JettisonError:
            raise
        except Exception as error:
            if not is_of_rows(error):
                raise
            self.reason = reason_of(error)
            return True
        return False


def _between(first: int, end: int) -> str:
    drawn = f"shiftrightunsigned(xxhash64({IDENTITY}, 77L), {64 - _BITS})"
    return f"{drawn} >= {changing(f'{first}L', IDENTITY)} AND {drawn} < {changing(f'{end}L', IDENTITY)}"


def _among(ids: Iterable[int]) -> str:
    """The condition, in SQL, that is true for rows of these identities; it is compiled once, whatever they are.

    >>> _among([7, -2])
    "array_contains(CAST(split('7,-2', ',') AS array<bigint>), _jt_id)"
    """
    return f"array_contains(CAST(split('{','.join(map(str, ids))}', ',') AS array<bigint>), {IDENTITY})"


def is_set_aside(ids: Iterable[int]) -> str:
    """The condition, in SQL, that is true for rows of these identities, never null."""
    return f"coalesce({_among(sorted(ids))}, false)"
