"""Who plans, by name.

semantic   the road map, by value where outputs are valued (the default)
random     the road map, by chance alone
exact      the best plan outright, a linear program per batch
input-*    admission control: four rules that drop at inputs and ask no output what it is worth (thesis 3.8.2)

Where windows must be right all of them let windows go whole. The exact planner then plans as the road map does, and
admission control lets go the same share of the windows of all aggregates below an input, or closes them.
"""

from __future__ import annotations

from jettison.plan.problem import Shedder
from jettison.plan.shedders.admission import ADMISSION
from jettison.plan.shedders.exact import ExactShedder

SEMANTIC = "semantic"
RANDOM = "random"

EXACT = "exact"

SHEDDERS = (SEMANTIC, RANDOM, EXACT, *ADMISSION)


def shedder_named(name: str) -> Shedder | None:
    """The shedder of this name; None for those that look plans up in a road map, which is built with the network."""
    return ExactShedder() if name == EXACT else ADMISSION.get(name)
