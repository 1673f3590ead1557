"""What the tasks of a map told, as one sample for the shedder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from jettison.plan.drops.cost_bound import CostBound
from jettison.plan.drops.kind import Drop
from jettison.spark.maps.cost_filter import classes_seen
from jettison.spark.maps.task_report import TaskReport
from jettison.statistics.sketches.cost_sketch import CostSketch
from jettison.statistics.timed import NOTHING_WAITED, TimedSample, Waited


def timed_sample(
    reports: Sequence[TaskReport], most_lanes: int, drop: Drop | None, at_drop: Mapping[str, Any]
) -> TimedSample | None:
    """All tasks together; None where nothing was timed. `at_drop` is what was observed of rows before a drop."""
    sketches = [each.sketch for each in reports if each.sketch is not None]
    if not sketches:
        return None
    waited = reduce(Waited.plus, (each.waited for each in reports), NOTHING_WAITED)
    lanes = max(1, most_lanes)  # rows are dealt out to as many by the rule in order of arrival
    keys = {key: text for each in reports for key, text in each.keys.items()}
    sample = TimedSample(reduce(CostSketch.plus, sketches), lanes, waited=waited, keys=keys)
    if not isinstance(drop, CostBound):
        return sample
    estimated_us = float(at_drop.get("estimated_us") or 0.0)
    return replace(sample, estimated_us=estimated_us, arrived=classes_seen(drop, at_drop))
