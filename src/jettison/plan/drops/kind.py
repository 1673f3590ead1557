"""What every kind of drop is, and how a plan's dictionary form finds it.

A new kind is a frozen dataclass with the members of `Drop`, registered under its name (`register`), and one function
that gives its filter in SQL, registered for its class (`spark.compile.drops.filters`). The simulator follows `passes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Protocol, TypeVar

from jettison.errors import PlanError

Judges = Literal["chance", "key", "group", "value", "window", "cost"]
"""What a drop judges a tuple by: its identity, its key, its group, its value, its windows, or its cost."""

PassShare = float | tuple[float, ...]
"""What passes a drop: a share, or one for every cell of a track."""


class Drop(Protocol):
    """What a plan puts on an arc: which tuples pass there."""

    kind: ClassVar[str]
    """The name of the kind in a plan's dictionary form."""
    judges: ClassVar[Judges]

    @property
    def keep(self) -> float:
        """The share of all tuples that is expected to pass."""
        ...

    @property
    def passes(self) -> PassShare:
        """What passes, cell by cell where that differs."""
        ...

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that it looks at; event time and identity are not among them."""
        ...

    @property
    def named(self) -> str:
        """What it judges by, in words, where that is not chance: " by fare"."""
        ...

    def content(self) -> Any:
        """Everything about it as JSON has it."""
        ...

    @classmethod
    def from_content(cls, content: Any) -> Drop:
        """The drop that has this content."""
        ...


_KINDS: dict[str, type[Drop]] = {}
Kind = TypeVar("Kind", bound=type[Drop])


def register(kind: Kind) -> Kind:
    """Make a kind of drop known to plans, by its name. A decorator."""
    taken = _KINDS.get(kind.kind)
    if taken is not None and (taken.__module__, taken.__qualname__) != (kind.__module__, kind.__qualname__):
        raise PlanError(f"kind of drop {kind.kind!r}: {taken.__qualname__} has this name already; choose another.")
    _KINDS[kind.kind] = kind  # the same class again: a cell of a notebook, or a module that is loaded anew
    return kind


def to_content(drop: Drop) -> dict[str, Any]:
    """A drop as a plan's dictionary form has it: its kind and its content."""
    return {drop.kind: drop.content()}


def from_content(arc: str, content: Mapping[str, Any]) -> Drop:
    """The drop on an arc that a plan's dictionary form says."""
    if len(content) == 1:
        ((kind, inside),) = content.items()
        if kind in _KINDS:
            return _KINDS[kind].from_content(inside)
    known = ", ".join(sorted(_KINDS))
    raise PlanError(
        f"the plan's drop on arc {arc!r} is of an unknown kind: {dict(content)}. Kinds: {known}. "
        f"A kind of your own is known once the module that registers it is imported."
    )


def work_shares(drops: Mapping[str, Drop], passed: Mapping[str, PassShare]) -> dict[str, PassShare]:
    """What is left of the work behind each drop, of what passed: less, where a drop lets the cheap tuples pass.

    Such a drop has a `cost_factor`: what a tuple that passes costs, over the mean of all that come.
    """
    factors = {arc: getattr(drop, "cost_factor", 1.0) for arc, drop in drops.items()}
    return {arc: share if isinstance(share, tuple) else share * factors.get(arc, 1.0) for arc, share in passed.items()}


def pass_shares(drops: Mapping[str, Drop]) -> dict[str, PassShare]:
    """What passes each drop, cell by cell where that differs.

    >>> from jettison.plan.drops.random import Random
    >>> from jettison.plan.drops.semantic import Semantic
    >>> pass_shares({"a": Random(0.5), "b": Semantic("x", (0.0, 1.0), (1.0, 0.0), keep=0.9)})
    {'a': 0.5, 'b': (1.0, 0.0)}
    """
    return {arc: drop.passes for arc, drop in drops.items()}
