"""Where an instance runs: the machine with most cores to spare, near its neighbours if it fits there (3.1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jettison.plan.quality.demand import Demand
from jettison.plan.quality.tasks import Mask, Vector

WHOLE_CORE = 1.0
"""What an instance is taken to need while nothing is known of its task: a pessimistic bet."""


def estimated_load(demand: Demand | None, accuracy: Vector | None, task: int) -> float:
    """`estimatedCpuLoad(i)`: what instances of the task took when last measured, else a whole core (3.4).

    >>> estimated_load(Demand.proportional([0.8]), np.array([0.5]), 0), estimated_load(None, None, 0)
    (0.4, 1.0)
    """
    if demand is None or demand.unknown[task]:
        return WHOLE_CORE
    share = 1.0 if accuracy is None else float(accuracy[task])
    return float(min(demand.full[task] * share, demand.most[task]))


def estimated_available(cores: Vector, cpu: Vector, new_load: Vector) -> Vector:
    """`estimatedAvailCpu(tm)`: cores less what is used, less what instances without metrics are estimated to take.

    It may be below 0: estimates can be wrong, and the controller moves what does not fit.
    """
    return cores - np.where(np.isfinite(cpu), cpu, 0.0) - new_load


def schedule_instance(load: float, available: Vector, allowed: Mask, locality: Sequence[int] = ()) -> int | None:
    """The machine for an instance; None if none is allowed (algorithm 3.1).

    Of the machines in `locality` those count that have room for it; if none has, all that are `allowed` do. Among them
    the one with most to spare is taken, of equals the first.

    >>> spare, anywhere = np.array([0.5, 0.9, 0.9]), np.array([True, True, True])
    >>> schedule_instance(0.4, spare, anywhere), schedule_instance(0.4, spare, anywhere, locality=[0])
    (1, 0)
    >>> schedule_instance(0.6, spare, anywhere, locality=[0])
    1
    """
    near = [at for at in locality if allowed[at] and available[at] - load >= 0]
    among = np.array(near, dtype=np.intp) if near else np.flatnonzero(allowed)
    if not len(among):
        return None
    return int(among[np.argmax(available[among])])
