"""Plan by a road map that is built in advance, and anew when costs, selectivities or values have changed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jettison.plan.plan import Infeasible, Plan
from jettison.plan.problem import Problem
from jettison.plan.shedders.rest import Rest
from jettison.plan.shedders.road_map import RoadMap, RoadMapShedder, build_road_map
from jettison.statistics.follow import distance
from jettison.statistics.profile import Profile
from jettison.statistics.samples import BatchSample

_REBUILD_CHANGE_SHARE = 0.05
_JUMP_SHARE = 0.03
_FAR_TIMES = 1.5
_DEAR = 3
_QUICK_LOCATIONS = 800
"""A road map of no more locations is built within a fraction of a second: at once, when values are spread otherwise."""


class RenewedRoadMap:
    """The shedders "semantic" (`by_value`) and "random". `rest` says how long a map is used at least.

    >>> from jettison.network import Network
    >>> net = Network("one"); _ = net.source("s", "x int").where("x > 0", name="w").output("o")
    >>> problem = Problem(net.graph, Profile({"w": 10.0}, {}), {"s": 100}, 400.0)
    >>> RenewedRoadMap().plan(problem).drops
    {'s': Random(keep=0.4)}
    """

    def __init__(self, *, by_value: bool = True, rest: Rest | None = None) -> None:
        self.by_value = by_value
        self._rest = Rest(0, 0.0, None) if rest is None else rest
        self._map: RoadMap | None = None

    @property
    def road_map(self) -> RoadMap | None:
        """The map in use; None before the first problem."""
        return self._map

    def plan(self, problem: Problem) -> Plan | Infeasible:
        if self._map is None or self._map.graph is not problem.graph:
            self.prepare(problem)
        assert self._map is not None
        return RoadMapShedder(self._map).plan(problem)

    def observe(self, sample: BatchSample) -> None:
        """Let time pass for the map."""
        self._rest.pass_batch(max(sample.interval_ms, sample.duration_ms))

    def prepare(self, problem: Problem) -> None:
        """Build the map for this network and these costs, where the one in use is for others."""
        old = self._map if self._map is not None and self._map.graph is problem.graph else None
        if old is not None and not self._outdated(old, problem.profile):
            return
        ladder = None if old is None or _far(old.profile, problem.profile) else old.ladder
        began = self._rest.begin()
        self._map = build_road_map(problem.graph, problem.profile, problem.rows, ladder, by_value=self.by_value)
        self._rest.end(began)

    def _outdated(self, road_map: RoadMap, profile: Profile) -> bool:
        old, quick = road_map.profile, len(road_map.layout.locations) <= _QUICK_LOCATIONS
        at_once = quick and (values_jumped(old, profile) or _far(old, profile))
        return at_once or (self._rest.over and _moved(old, profile))


def values_jumped(old: Profile, new: Profile) -> bool:
    """Whether a range of values holds another share than plans made for the old profile believe."""
    pairs = [(np.asarray(old.values.get(place, ())), np.asarray(shares)) for place, shares in new.values.items()]
    return any(len(before) == len(now) and distance(before, now) > _JUMP_SHARE for before, now in pairs)


def _far(old: Profile, new: Profile) -> bool:
    """Whether costs are others altogether: the most expensive operators cost half as much again, or so much less."""
    dear = sorted(set(old.cost_us) | set(new.cost_us), key=lambda name: -old.cost(name) - new.cost(name))[:_DEAR]
    pairs = [(old.cost(name), new.cost(name)) for name in dear]
    return any(max(a, b) > _FAR_TIMES * min(a, b) for a, b in pairs)


def _moved(old: Profile, new: Profile) -> bool:
    """Whether an estimate differs enough to plan anew."""
    pairs = [(old.fixed_ms, new.fixed_ms)]
    pairs += [(old.cost(name), cost) for name, cost in new.cost_us.items()]
    pairs += [(old.passes(name), share) for name, share in new.selectivity.items()]
    if any(abs(b - a) > _REBUILD_CHANGE_SHARE * max(a, 1e-9) for a, b in pairs):
        return True
    return any(_shifted(old.values.get(place, ()), shares) for place, shares in new.values.items())


def _shifted(old: Sequence[float], new: Sequence[float]) -> bool:
    """Whether values are spread differently: half of the sum of differences is the share that has moved."""
    if len(old) != len(new):
        return True
    return sum(abs(b - a) for a, b in zip(old, new, strict=True)) / 2 > _REBUILD_CHANGE_SHARE
