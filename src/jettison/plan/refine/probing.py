"""What was closed is tried again now and then: costs of what never runs cannot be measured.

An output is closed when dropping as many windows as its gap allows would not be enough, by the costs as they are known.
If those were measured too high, or have come down since, nobody would find out. So after some plans that keep it closed
it is let in again as the gap allows, until its first window has come whole. If plans would still have it closed then,
costs were right: it is closed again, and left alone twice as long as before.

A window that is let in takes as long as it takes, so one decision at a time is tried, and waiting grows from
`FIRST_WAIT` plans up to `LONGEST_WAIT`: what probes cost is soon a small share.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from jettison.plan.drops.kind import Drop
from jettison.plan.plan import Plan
from jettison.plan.windows.decisions import WindowDecisions

FIRST_WAIT = 20
LONGEST_WAIT = 640


@dataclass(frozen=True)
class _Closed:
    """A decision that plans keep closed: how many plans still to wait, how long the next time, where a probe ends."""

    names: tuple[str, ...]
    left: int = FIRST_WAIT
    wait: int = FIRST_WAIT
    until_us: int | None = None


@dataclass(frozen=True)
class Probes:
    """Which closed aggregates are let in; `after` every plan there are others.

    >>> from jettison.network import Network, QoS
    >>> net = Network("taxi")
    >>> trips = net.source("trips", "at timestamp", event_time="at")
    >>> _ = trips.window("5 seconds").agg(n="count(*)", name="busy").output("table", qos=QoS(gap=4))
    >>> probes, decisions, seconds = Probes(), WindowDecisions(net.graph), []
    >>> for second in range(100):
    ...     probes = probes.after(decisions, ["busy"], lambda _: second * 1_000_000)
    ...     seconds += [second] if probes.let_in else []
    >>> seconds[0], seconds[-1]  # 20 plans after closing: the window from second 25 on, then again after twice as many
    (20, 80)
    """

    closed: Mapping[str, _Closed] = field(default_factory=dict)

    @property
    def let_in(self) -> frozenset[str]:
        """The aggregates that are let in though plans close them."""
        return frozenset(name for each in self.closed.values() if each.until_us is not None for name in each.names)

    def after(
        self, decisions: WindowDecisions, closed: Collection[str], newest_of: Callable[[str], int | None]
    ) -> Probes:
        """The probes for a plan that closes these aggregates; `newest_of` tells of one how far its times have got."""
        by_seed: dict[str, list[str]] = {}
        for name in closed:
            by_seed.setdefault(decisions.by_aggregate[name].seed, []).append(name)
        found: dict[str, _Closed] = {}
        times = {seed: newest_of(names[0]) for seed, names in by_seed.items()}
        for seed in sorted(by_seed):
            each = replace(self.closed.get(seed, _Closed(())), names=tuple(by_seed[seed]))
            newest_us = times[seed]
            if each.until_us is None:
                each = replace(each, left=each.left - 1)
            elif newest_us is not None and newest_us >= each.until_us:
                wait = min(LONGEST_WAIT, 2 * each.wait)
                each = replace(each, left=wait, wait=wait, until_us=None)
            found[seed] = each
        if all(each.until_us is None for each in found.values()):
            due = [(each.left, seed, now) for seed, each in found.items() if (now := times[seed]) is not None]
            for left, seed, now_us in sorted(due)[:1]:
                if left < 0:
                    found[seed] = replace(found[seed], until_us=now_us + _whole_us(decisions, by_seed[seed]))
        return Probes(found)


def _whole_us(decisions: WindowDecisions, names: Collection[str]) -> int:
    """From a time on, how long until a window that had not begun then is whole."""
    return max(decisions.by_aggregate[name].step_us + decisions.reach_us(name) for name in names)


def most_without_closing(
    decisions: WindowDecisions,
    plan: Plan | None,
    names: Collection[str] | None = None,
    spared: Collection[str] = (),
) -> dict[str, Drop]:
    """A plan's drops, with as many windows as may go in place of all of them, of these aggregates or all that it
    closes; without a plan, of all that there are but those that are spared."""
    shares = {name: 1.0 for name in decisions.by_aggregate if name not in spared}
    if plan is not None:
        shares = {name: fate.drop_share for name, fate in plan.fates.items()}
    for name in shares.keys() if names is None else names:
        shares[name] = min(shares[name], decisions.by_aggregate[name].most_drop_share)
    others = {} if plan is None else {arc: drop for arc, drop in plan.drops.items() if drop.judges != "window"}
    return {**others, **decisions.arcs.drops(decisions.fates(shares), decisions.keeps(shares))}
