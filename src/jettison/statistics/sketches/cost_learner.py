"""When a cost sketch is good enough to plan by: the state machine of the seed (LAS 3.1, figure 2).

START          the operator has executed fewer than N tuples since the matrices were empty
STABILIZING    every N tuples the cells' averages are compared with the snapshot of N tuples before:

    eta = sum of |W / F - snapshot| over the cells / sum of the snapshot

With eta <= mu the pair of matrices is published, and both start anew: costs that change later are learned again.
Otherwise there is a new snapshot. A published pair keeps what the one before it knew of cells that it has not seen.

Beyond the seed: a change in mid-course would be mixed with what was learned before it, for many windows. So every N
tuples the published pair is also compared with what these took, cell by cell. When it is off by twice as much as usual,
costs have changed: these N tuples alone are published, and matrices start anew. This needs tuples that are dropped
whatever they cost: where the dear ones are dropped, the tuples of a cell are others than before, at the same costs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from jettison.errors import NetworkError
from jettison.network.calls import checked_init
from jettison.statistics.sketches.cost_pair import CostPair
from jettison.statistics.sketches.cost_sketch import CostSketch, sketch_size

_CHANGED = 2.0
_FOLLOW = 0.25
START = "START"
STABILIZING = "STABILIZING"


@dataclass(frozen=True)
class CostLearner:
    """The state: matrices so far, the last snapshot, what came since. `after` gives the next state.

    `window` is N, `tolerance` mu. A sample may hold any number of tuples, such as a batch: it is checked once when it
    completes a window, or several.

    >>> ten = CostSketch.empty(2, 50).updated(np.full(10, 7, np.uint64), np.full(10, 100.0))
    >>> learner = CostLearner(CostSketch.empty(2, 50), window=10)
    >>> learner, published = learner.after(ten); learner.state, published
    ('STABILIZING', None)
    >>> learner, published = learner.after(ten); learner.state, published
    ('START', <cost pair ..., 2 x 50: 20 tuples, 100.0 us each>)
    """

    sketch: CostSketch
    window: int = 4096
    tolerance: float = 0.05
    snapshot_us: NDArray[np.float64] | None = None
    recent: CostSketch | None = None
    """What was executed since the last check."""
    eta: float = math.inf
    """The relative error when it was last checked."""
    pair: CostPair | None = None
    """The pair that was published last."""
    notices_changes: bool = True
    usual_error: float | None = None
    """By how much published pairs are off what N tuples take, as a share of it; None while that is not known."""

    def __post_init__(self) -> None:
        if isinstance(self.window, bool) or not isinstance(self.window, int) or self.window < 1:
            raise NetworkError(f"cost learner: the window is {self.window!r}: give a number of tuples from 1 on.")
        if not 0 < self.tolerance < math.inf:
            raise NetworkError(
                f"cost learner: the tolerance is {self.tolerance!r}: give a share above 0, such as 0.05."
            )

    @property
    def since(self) -> int:
        """How many tuples were executed since the last check."""
        return 0 if self.recent is None else self.recent.tuples

    @property
    def state(self) -> str:
        return START if self.snapshot_us is None else STABILIZING

    def after(self, sample: CostSketch, mean_us: float | None = None) -> tuple[CostLearner, CostPair | None]:
        """The state when these tuples have been executed too, and the pair that is published now, if one is.

        `mean_us` is the mean cost of all tuples that came, where that is known: executed ones may be cheaper.
        """
        sketch, recent = self.sketch.plus(sample), sample if self.recent is None else self.recent.plus(sample)
        if recent.tuples < self.window:
            return replace(self, sketch=sketch, recent=recent), None
        known = replace(self, sketch=sketch, recent=None)
        if self.pair is not None and self.notices_changes:
            error, usual = self.pair.error_on(recent), self.usual_error
            if usual is not None and error > _CHANGED * max(usual, self.tolerance):
                return known._publish(recent, mean_us)
            known = replace(known, usual_error=error if usual is None else usual + _FOLLOW * (error - usual))
        ratios_us = sketch.ratios_us
        if self.snapshot_us is None:
            return replace(known, snapshot_us=ratios_us), None
        known = replace(known, eta=relative_error(self.snapshot_us, ratios_us))
        if known.eta > self.tolerance:
            return replace(known, snapshot_us=ratios_us), None
        learner, pair = known._publish(sketch, mean_us)
        return (learner if self.pair else replace(learner, usual_error=pair.error_on(recent))), pair

    def _publish(self, sketch: CostSketch, mean_us: float | None) -> tuple[CostLearner, CostPair]:
        """Publish a sketch, and start anew."""
        functions = sketch.functions
        empty = CostSketch.empty(functions.rows, functions.columns, functions.seed)
        pair = CostPair.of(sketch, self.pair, mean_us)
        return replace(self, sketch=empty, snapshot_us=None, pair=pair), pair


@checked_init("jt.CostLearning")
@dataclass(frozen=True)
class CostLearning:
    """How costs are learned: after every `window` tuples cells are compared, and published when they differ by no more
    than `tolerance` (the seed's N and mu). `epsilon` and `delta` are the error of the sketch and its probability.

    >>> CostLearning(epsilon=0.05).begin().sketch.functions.columns
    55
    >>> CostLearning(window=0)
    Traceback (most recent call last):
    jettison.errors.NetworkError: cost learner: the window is 0: give a number of tuples from 1 on.
    """

    window: int = 4096
    tolerance: float = 0.05
    epsilon: float = 0.01
    delta: float = 0.02

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> CostLearner:
        """A learner that has seen nothing."""
        return CostLearner(CostSketch.empty(*sketch_size(self.epsilon, self.delta)), self.window, self.tolerance)


def relative_error(before_us: NDArray[np.float64], now_us: NDArray[np.float64]) -> float:
    """How far averages are from those of a snapshot, as a share of their sum.

    >>> relative_error(np.array([100.0, 0.0]), np.array([90.0, 5.0]))
    0.15
    """
    whole = float(before_us.sum())
    moved = float(np.abs(now_us - before_us).sum())
    return moved / whole if whole > 0 else (math.inf if moved > 0 else 0.0)
