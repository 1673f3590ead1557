"""Where a run keeps what a restart needs, and for how long it keeps its records."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike, fspath

from jettison.errors import StartError
from jettison.network.calls import checked_init
from jettison.options.retention import DEFAULT_RETENTION, Retention


@checked_init("jt.Checkpoint", StartError)
@dataclass(frozen=True)
class Checkpoint:
    """The folder of a run.

    Parameters
    ----------
    path
        The folder; a temporary one when left out. Between two runs outputs and operators may come and go: state belongs
        to what is computed, and what was not there from the first row of a window on does not deliver it.
    retention
        How long plans, ledger and the dead letters in the checkpoint are kept: a duration, a number of batches, or
        None for ever. What a restart needs is always kept. Old records are deleted a hundred batches at a time or more.
        A duration counts the time in which the network runs, not outages, and not what a clock jumps.

    >>> Checkpoint("out/checkpoint")
    Checkpoint(path='out/checkpoint', retention='7 days')
    """

    path: str | PathLike[str] | None = None
    retention: str | int | None = DEFAULT_RETENTION

    def __post_init__(self) -> None:
        given: object = self.path
        if given is not None and not (isinstance(given, str | PathLike) and str(given).strip()):
            raise StartError(f"checkpoint is {given!r}: give the path of a folder, such as 'out/checkpoint'.")
        _ = self.kept_for

    @property
    def folder(self) -> str | None:
        """The path as a text."""
        return None if self.path is None else fspath(self.path)

    @property
    def kept_for(self) -> Retention:
        """How long records are kept."""
        return Retention.of(self.retention)

    @classmethod
    def of(cls, given: object) -> Checkpoint:
        """From what `jt.start` got as `checkpoint`: nothing, a path or a whole group.

        >>> Checkpoint.of("out/checkpoint").folder, Checkpoint.of(None).folder
        ('out/checkpoint', None)
        """
        return given if isinstance(given, Checkpoint) else cls(given)  # type: ignore[arg-type]
