"""What is known about an operator that is timed, and how a batch changes it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from jettison.statistics.cost_classes import CostClasses
from jettison.statistics.sketches.cost_learner import CostLearner
from jettison.statistics.sketches.cost_pair import CostPair
from jettison.statistics.sketches.telling_keys import telling_keys
from jettison.statistics.timed import NOTHING_WAITED, TimedSample, Waited

_FORGET = 0.5
"""What tuples of earlier batches count for beside those of the last one, when costs are put in classes."""
_MOST_SCALE = 4.0


@dataclass(frozen=True)
class TimedCosts:
    """What is known about one timed operator. `after` gives what is known when another batch has run.

    Before a pair is published, every tuple costs `mean_us`. `scale` brings estimated and measured work together,
    `skew_us` is how far they were apart in the last batch, as scaled then. `arrived` are tuples that came of late,
    dropped ones included, by class of their estimated cost.
    """

    learner: CostLearner
    published: int = 0
    tuples: int = 0
    work_us: float = 0.0
    lanes: int = 1
    waited: Waited = NOTHING_WAITED
    arrived: CostClasses | None = None
    scale: float = 1.0
    skew_us: float = 0.0
    keys: Mapping[int, str] = field(default_factory=dict)
    """Keys that are worth showing, by their hash."""
    estimated_us: float = 0.0
    compared_us: float = 0.0
    """Of all batches whose work was estimated: that work, and the same as it was measured."""
    first_us: float = 0.0
    """The mean cost of tuples in the first batch that had any. By it tuples are put in classes until a pair is
    published: a mean that moves would put them in another class from batch to batch, and miss the one that is cut."""

    @property
    def pair(self) -> CostPair | None:
        """The published pair."""
        return self.learner.pair

    @property
    def mean_us(self) -> float:
        """The mean cost of tuples that come: as the pair has it, or of all tuples so far."""
        if self.pair is not None:
            return self.pair.mean_us
        return self.work_us / self.tuples if self.tuples else 0.0

    def after(self, sample: TimedSample, *, learn: bool = True) -> TimedCosts:
        """With what was measured in a batch; without `learn` costs stay the mean (Straw-Man)."""
        measured_us = sample.sketch.work_us
        known = replace(
            self,
            tuples=self.tuples + sample.sketch.tuples,
            work_us=self.work_us + measured_us,
            lanes=sample.lanes,
            waited=self.waited.plus(sample.waited),
            skew_us=measured_us - self.scale * sample.estimated_us if sample.estimated_us else 0.0,
            keys=self._telling(sample) if sample.keys else self.keys,
            estimated_us=self.estimated_us + self.scale * sample.estimated_us,
            compared_us=self.compared_us + (measured_us if sample.estimated_us else 0.0),
            first_us=self.first_us or (measured_us / sample.sketch.tuples if sample.sketch.tuples else 0.0),
        )
        if not learn:
            return known
        if sample.estimated_us > 0 and measured_us > 0:
            scale = math.sqrt(self.scale * measured_us / sample.estimated_us)
            known = replace(known, scale=min(_MOST_SCALE, max(1 / _MOST_SCALE, scale)))
        if sample.arrived is not None:
            arrived = sample.arrived if self.arrived is None else self.arrived.plus(sample.arrived, _FORGET)
            known = replace(known, arrived=arrived)
        learner, pair = self.learner.after(sample.sketch, known._mean_of_all_us)
        if pair is None:
            return replace(known, learner=learner)
        # new estimates agree with what was measured. They are put in classes anew if all cost the same before; else
        # tuples that came of late are known better by the old estimates, as measured, than by those that were kept
        classed = None if self.pair is None or known.arrived is None else known.arrived.scaled(known.scale)
        return replace(known, learner=learner, published=self.published + 1, scale=1.0, arrived=classed)

    @property
    def _mean_of_all_us(self) -> float | None:
        """The mean of all tuples that came of late, by their estimates; None where there are none yet. What is executed
        may be cheaper than what comes: a drop by cost takes the dear ones."""
        return None if self.pair is None or self.arrived is None else self.scale * self.arrived.mean_us

    def _telling(self, sample: TimedSample) -> Mapping[int, str]:
        now = CostPair.of(self.learner.sketch.plus(sample.sketch), self.pair)
        return telling_keys(now, {**self.keys, **sample.keys})

    @property
    def classes(self) -> CostClasses:
        """How estimated costs are spread: as counted of late, as the pair has them, or all in one class."""
        if self.arrived is not None:
            return self.arrived
        if self.pair is None:
            return CostClasses.of(np.array([self.first_us]))
        cells = self.pair.cells
        return CostClasses.of(cells.ratios_us[0], counts=cells.counts[0])
