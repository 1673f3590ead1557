"""Keys that are worth showing: a sketch knows what a key costs, and not which keys there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from jettison.network.columns.xxhash64 import Hashes
from jettison.statistics.sketches.cost_pair import CostPair
from jettison.statistics.sketches.cost_sketch import CostSketch

SHOWN = 10
"""So many keys are shown by their cost, and so many by how often they come."""
_LONGEST_TEXT = 60


def key_text(values: Sequence[Any]) -> str:
    """A key as it is shown, in one line of a terminal.

    >>> key_text(["airport", None]), len(key_text(["x" * 500])), key_text(["two\\nlines"])
    ('airport, null', 60, 'two\\\\nlines')
    """
    text = ", ".join("null" if value is None else str(value) for value in values)
    text = text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 3]}..."
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


def telling_places(keys: Hashes, counts: NDArray[np.int64], totals_us: NDArray[np.float64]) -> list[int]:
    """Of tuples, or groups of them, one of each of the dearest and the most frequent keys.

    >>> telling_places(np.array([5, 5, 9], np.uint64), np.array([1, 1, 1]), np.array([2.0, 2.0, 70.0]))
    [0, 2]
    """
    if not len(keys):
        return []
    _, firsts, inverse = np.unique(keys, return_index=True, return_inverse=True)
    often = np.bincount(inverse, counts)
    mean_us = np.bincount(inverse, totals_us) / often
    chosen = {*_largest(often), *_largest(mean_us)}
    return sorted(int(firsts[each]) for each in chosen)


def telling_keys(sketch: CostSketch | CostPair, names: Mapping[int, str]) -> dict[int, str]:
    """Of named keys, those that a sketch has as the dearest and the most frequent."""
    if len(names) <= SHOWN:
        return dict(names)
    hashes = np.fromiter(names, np.uint64, len(names))
    counts = sketch.counts_of(hashes)
    chosen = {*_largest(counts), *_largest(np.where(counts > 0, sketch.table.costs_us(hashes), 0.0))}
    return {int(hashes[each]): names[int(hashes[each])] for each in sorted(chosen)}


@dataclass(frozen=True)
class KeyCost:
    """One key as estimated. `error_us` bounds by how much `cost_us` may be too high or too low for its collisions."""

    key: str
    count: int
    cost_us: float
    error_us: float
    work_share: float


def key_costs(pair: CostPair, names: Mapping[int, str]) -> list[KeyCost]:
    """What is known of named keys, the dearest first.

    Up to epsilon x all tuples may share a key's cell, and with them up to epsilon x all work. So W / F lies between
    (W - epsilon x work) / F and W / (F - epsilon x tuples), each with a probability of 1 - delta: the larger distance
    is the error.
    """
    if not names:
        return []
    hashes = np.fromiter(names, np.uint64, len(names))
    counts, costs_us, sketch = pair.counts_of(hashes), pair.table.costs_us(hashes), pair.cells
    found = []
    for name, count, cost_us in zip(names.values(), counts.tolist(), costs_us.tolist(), strict=True):
        others, other_us = sketch.epsilon * sketch.tuples, sketch.epsilon * sketch.work_us
        low_us = max(0.0, cost_us * count - other_us) / count if count else 0.0
        high_us = cost_us * count / (count - others) if count > others else float("inf")
        error_us = max(cost_us - low_us, high_us - cost_us)
        share = min(1.0, cost_us * count / sketch.work_us) if sketch.work_us else 0.0
        found.append(KeyCost(name, count, cost_us, error_us, share))
    return sorted(found, key=lambda each: -each.cost_us)


def _largest(numbers: NDArray[Any]) -> list[int]:
    order: list[int] = np.argsort(-numbers, kind="stable")[:SHOWN].tolist()
    return order
