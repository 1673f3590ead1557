"""What rows cost: given, measured, refined while running."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from jettison.errors import StartError
from jettison.network.calls import checked_init
from jettison.statistics.profile import Profile


@checked_init("jt.Costs", StartError)
@dataclass(frozen=True)
class Costs:
    """Where a run has its costs from.

    Parameters
    ----------
    profile
        Costs as known from elsewhere; by default they are measured beside the stream, on a sample of the first batch of
        some size. Measured costs are on trial: nothing is shed before a batch has confirmed them, and they count in
        full after two or three. Batches that ran before they were known count too.
    learn
        Refine costs while running. False keeps those of the profile: the same rows, in the same batches, then get the
        same plans, whatever the clock says. Only `stale` still follows the clock.
    shared
        With a profile: the operators whose rows are persisted because several outputs read them.

    >>> Costs(Profile({"paid": 2.5}, {"paid": 0.5}), learn=False).learn
    False
    >>> Costs(learn="no")
    Traceback (most recent call last):
    jettison.errors.StartError: jt.Costs: learn is 'no': say True or False.
    """

    profile: Profile | None = None
    learn: bool = True
    shared: Iterable[str] | None = None

    def __post_init__(self) -> None:
        given: object = self.profile
        if given is not None and not isinstance(given, Profile):
            raise StartError(f"jt.Costs: profile is {given!r}: give a jt.Profile, or leave it out.")
        if not isinstance(self.learn, bool):
            raise StartError(f"jt.Costs: learn is {self.learn!r}: say True or False.")
        names: object = self.shared
        if names is None:
            return
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise StartError(f"jt.Costs: shared is {names!r}: give names of operators, such as ['paid'].")
        shared = tuple(names)
        if not all(isinstance(name, str) for name in shared):
            raise StartError(f"jt.Costs: shared is {shared!r}: give names of operators, such as ['paid'].")
        object.__setattr__(self, "shared", shared)

    @classmethod
    def of(cls, given: object) -> Costs:
        """From what `jt.start` got as `costs`: nothing, a profile or a whole group.

        >>> Costs.of(Profile({"paid": 2.5}, {})).learn
        True
        """
        if given is None:
            return cls()
        if isinstance(given, Profile):
            return cls(given)
        if isinstance(given, Costs):
            return given
        raise StartError(f"costs is {given!r}: give jt.Costs(profile=..., learn=...), a jt.Profile, or leave it out.")
