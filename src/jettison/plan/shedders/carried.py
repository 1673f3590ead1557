"""What one plan carries: the tuples at every location, what outputs get, and the work, in plain numbers.

`outcome` does the same for all rows of a road map at once; for a single plan this takes a tenth of the time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jettison.plan.placement.locations import Layout
from jettison.statistics.profile import Profile


@dataclass(frozen=True)
class Carried:
    """`reaching` are the tuples that come to each location, `tuples` and `worth` what each output gets."""

    reaching: tuple[float, ...]
    tuples: Mapping[str, float]
    worth: Mapping[str, float]
    work_us: float


def carry(places: Layout, profile: Profile, keeps: Sequence[float], entering: Mapping[str, float]) -> Carried:
    """Let so many tuples enter at each source and keep these shares at the locations.

    >>> from jettison.network import Network
    >>> from jettison.plan.placement.locations import layout
    >>> net = Network("one"); _ = net.source("s", "x int").where("x > 0", name="w").output("o")
    >>> profile = Profile({"w": 10.0}, {"w": 0.5})
    >>> carried = carry(layout(net.graph, profile), profile, [0.4], {"s": 100.0})
    >>> carried.tuples, carried.work_us
    ({'o': 20.0}, 400.0)
    """
    locations = places.locations
    out = [0.0] * len(places.segments)
    reaching = [0.0] * len(locations)
    tuples: dict[str, float] = {}
    worth: dict[str, float] = {}
    dropping: dict[str, None] = {}
    work_us = 0.0
    for number, segment in enumerate(places.segments):
        passed = 0.0
        for index in segment.entries:
            at = locations[index]
            coming = at.takes * (entering.get(at.arc, 0.0) if at.leaves < 0 else out[at.leaves])
            reaching[index] = coming
            kept = coming * keeps[index]
            if kept < coming:
                dropping[at.arc] = None
            work_us += kept * at.cost_us
            passed += kept * at.passes
        out[number] = passed
        if segment.output is not None:
            tuples[segment.output] = tuples.get(segment.output, 0.0) + passed
            worth[segment.output] = worth.get(segment.output, 0.0) + segment.weight * passed
    for arc in dropping:
        work_us += _judging_us(arc, places.by_arc[arc], keeps, reaching, profile)
    return Carried(tuple(reaching), tuples, worth, work_us)


def _judging_us(
    arc: str, locations: Sequence[int], keeps: Sequence[float], reaching: Sequence[float], profile: Profile
) -> float:
    """What judging the tuples of an arc costs: nothing where none are kept, more where it is by value."""
    shares = [keeps[index] for index in locations if reaching[index] > 0]
    if max(shares) <= 0.0:
        return 0.0
    look_us = profile.look_us.get(arc, 0.0) if min(shares) < max(shares) else 0.0
    return (profile.drop_us + look_us) * sum(reaching[index] for index in locations)
