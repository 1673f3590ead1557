"""How long plans and ledger stay readable: a duration, or a number of batches."""

from __future__ import annotations

from dataclasses import dataclass

from jettison.errors import NetworkError, StartError
from jettison.network.durations import duration_ms

DEFAULT_RETENTION = "7 days"


@dataclass(frozen=True)
class Retention:
    """Records are kept at least this long; None for both keeps them for ever."""

    batches: int | None = None
    ms: float | None = None

    @classmethod
    def of(cls, given: str | int | None) -> Retention:
        """From what the user gave.

        >>> Retention.of("7 days"), Retention.of(1000), Retention.of(None)
        (Retention(batches=None, ms=604800000.0), Retention(batches=1000, ms=None), Retention(batches=None, ms=None))
        """
        if given is None:
            return cls()
        try:
            if isinstance(given, str):
                return cls(ms=duration_ms(given, "retention"))
            if isinstance(given, int) and not isinstance(given, bool) and given > 0:
                return cls(batches=given)
        except NetworkError:
            pass
        raise StartError(
            f"retention is {given!r}: write a duration, such as '7 days', a number of batches, such as 10_000, or None "
            f"to keep plans and ledger for ever."
        )

    def expired(self, last_batch: int, written_ms: float, newest_batch: int, now_ms: float) -> bool:
        """Whether records up to `last_batch`, the last of them written at `written_ms`, may be deleted.

        >>> week = Retention.of("7 days")
        >>> week.expired(99, 0.0, 200, now_ms=6 * 86_400_000.0), week.expired(99, 0.0, 200, now_ms=8 * 86_400_000.0)
        (False, True)
        >>> Retention.of(100).expired(99, 0.0, 199, 0.0), Retention.of(100).expired(99, 0.0, 200, 0.0)
        (False, True)
        """
        if self.batches is not None:
            return newest_batch - last_batch > self.batches
        return self.ms is not None and now_ms - written_ms > self.ms
