"""When a run sheds, who plans, and how much of the trigger a batch may take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from jettison.control.catch_up import SHED, check_catch_up
from jettison.errors import NetworkError, StartError
from jettison.network.calls import checked_init
from jettison.network.columns.words import meant
from jettison.network.durations import duration_ms
from jettison.plan.shedders.registry import SEMANTIC, SHEDDERS

ON, OFF, DRY_RUN = "on", "off", "dry-run"
MODES = (ON, OFF, DRY_RUN)

Mode = Literal["on", "off", "dry-run"]


@checked_init("jt.Shedding", StartError)
@dataclass(frozen=True)
class Shedding:
    """How a run answers an overload.

    Parameters
    ----------
    mode
        "on"; "off" measures and reports, but drops nothing; "dry-run" also plans: log, ledger, report and metrics say
        what would have been dropped.
    shedder
        Who plans: "semantic" (by value where outputs are valued), "random", "exact", "las" (by what tuples cost in
        operators that are timed; with options `jt.Las(...)`), a rule of admission control such as "input-random", or an
        object with a method `plan(problem)`.
    headroom
        The share of the trigger that a batch may take. Their product is the budget of a batch: nothing is shed while
        batches fit into it.
    catch_up
        What becomes of rows that waited while the run was down: "shed" treats them as an overload, "newest" skips to
        fresh data, "all" sheds nothing until the run has caught up, in batches of bounded size.
    stale
        The age, such as "1 minute", from which on rows are worth nothing: in an overload they are dropped first. For
        outputs whose QoS does not say.
    stw
        The source time window, such as "10 seconds": the SIC of an output is of what its sources brought in it. By
        default longer than the longest window plus its delay, and ten triggers at least.

    >>> Shedding(headroom=0.8)
    Shedding(mode='on', shedder='semantic', headroom=0.8, catch_up='shed', stale=None, stw=None)
    >>> Shedding("dryrun")
    Traceback (most recent call last):
    jettison.errors.StartError: jt.Shedding: mode is 'dryrun' (did you mean 'dry-run'?): use 'on', 'off' or 'dry-run'.
    """

    mode: Mode = "on"
    shedder: Any = SEMANTIC
    headroom: float = 0.9
    catch_up: str = SHED
    stale: str | None = None
    stw: str | None = None

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise StartError(f"jt.Shedding: mode is {self.mode!r}{meant(self.mode, MODES)}: {_USE}.")
        if isinstance(self.shedder, str):
            if self.shedder not in SHEDDERS:
                near = meant(self.shedder, SHEDDERS)
                raise StartError(f"jt.Shedding: shedder is {self.shedder!r}{near}: use one of {', '.join(SHEDDERS)}.")
        elif isinstance(self.shedder, type) or not callable(getattr(self.shedder, "plan", None)):
            raise StartError(
                f"jt.Shedding: shedder is {self.shedder!r}: give the name of a shedder, such as 'semantic', or an "
                f"object with a method plan(problem)."
            )
        number: object = self.headroom
        if isinstance(number, bool) or not isinstance(number, int | float) or not 0 < number <= 1:
            raise StartError(
                f"jt.Shedding: headroom is {number!r}: give the share of the trigger that a batch may take, above 0 "
                f"and at most 1."
            )
        check_catch_up(self.catch_up)
        if self.stale is not None:
            _duration_ms("stale", self.stale, "1 minute")
        _ = self.stw_ms

    @property
    def stw_ms(self) -> float | None:
        """The source time window in milliseconds; None where the network decides."""
        return None if self.stw is None else _duration_ms("stw", self.stw, "10 seconds")

    @classmethod
    def of(cls, given: object) -> Shedding:
        """From what `jt.start` got as `shedding`: True, False, a mode or a whole group.

        >>> Shedding.of(False).mode, Shedding.of("dry-run").mode, Shedding.of(Shedding(headroom=0.5)).headroom
        ('off', 'dry-run', 0.5)
        """
        if isinstance(given, Shedding):
            return given
        if isinstance(given, bool):
            return cls(mode="on" if given else "off")
        for mode in ("on", "off", "dry-run"):
            if given == mode:
                return cls(mode=mode)
        raise StartError(
            f"shedding is {given!r}{meant(given, MODES)}: say True, False, 'dry-run', or "
            f"jt.Shedding(headroom=0.9, ...)."
        )

    @property
    def obeyed(self) -> bool:
        """Whether plans drop rows."""
        return self.mode == ON

    @property
    def is_dry_run(self) -> bool:
        """Whether plans are made and reported, and nothing is dropped."""
        return self.mode == DRY_RUN


_USE = "use 'on', 'off' or 'dry-run'"


def _duration_ms(name: str, given: object, example: str) -> float:
    if not isinstance(given, str):
        raise StartError(f"jt.Shedding: {name} is {given!r}: write a duration, such as {example!r}.")
    try:
        return duration_ms(given, f"jt.Shedding: {name}")
    except NetworkError as error:
        raise StartError(str(error)) from None
