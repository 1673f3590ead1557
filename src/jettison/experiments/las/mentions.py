"""A stream like the seed's: tweets that mention politicians, media and others, with 110 durations of 1 to 152 ms.

The seed gives the number of tweets and entities, the classes and the range of durations; the rest is ours. Entities are
mentioned with a heavy tail (Zipf). Of a thousand entities 4 are politicians, most of them often mentioned and long to
process; 16 are media, in between; the others are many and quick. The duration belongs to the entity.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from jettison.sim.timed.queue import TimedStream, Vector

TUPLES, ENTITIES, DURATIONS = 500_000, 35_000, 110
_ZIPF = 1.05
_LONGEST_MS = 152.0
_MEDIA_MS, _OTHERS_MS = 60.0, 12.0
_DEBATE_TUPLES, _DEBATE_TIMES = 25_000, 2.5
"""For so many tweets politicians are mentioned so many times as often, then for as many they are not: topics come in
bursts. In a debate tweets take longer than the mean, which is what the Straw-Man cannot see."""
CLASSES = ("politicians", "media", "others")


def classes_of(entities: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """0 for politicians, 1 for media, 2 for others; the more often an entity is mentioned, the likelier it is known."""
    rank = np.arange(1, entities + 1)
    known = rng.random(entities) < np.minimum(0.5, 3.0 * rank**-0.5)
    return np.where(known, np.where(rng.random(entities) < 0.2, 0, 1), 2)


def durations_us(classes: NDArray[np.int64], rng: np.random.Generator) -> Vector:
    """What every entity takes: one of 110 values from 1 to 152 ms, by its class."""
    values_ms = np.geomspace(1.0, _LONGEST_MS, DURATIONS)
    low = np.searchsorted(values_ms, [_MEDIA_MS, _OTHERS_MS, 1.0])
    high = np.array([DURATIONS, low[0], low[1]])
    return 1000.0 * values_ms[rng.integers(low[classes], high[classes])]


def entities_of(count: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], Vector, Vector]:
    """Classes of entities, what each takes in microseconds, and how often it is mentioned."""
    classes = classes_of(count, rng)
    return classes, durations_us(classes, rng), np.arange(1, count + 1).astype(np.float64) ** -_ZIPF


def mentions(tuples: int, load: float, seed: int = 3) -> TimedStream:
    """So many tweets, evenly spaced, that bring `load` times the work that can be done, more of it in debates."""
    rng = np.random.default_rng(seed)
    classes, by_entity_us, calm = entities_of(ENTITIES, rng)
    busy = np.where(classes == 0, _DEBATE_TIMES, 1.0) * calm
    parts = []
    for first in range(0, tuples, _DEBATE_TUPLES):
        chances = busy if first // _DEBATE_TUPLES % 2 else calm
        parts.append(rng.choice(ENTITIES, min(_DEBATE_TUPLES, tuples - first), p=chances / chances.sum()))
    keys = np.concatenate(parts)
    every = np.unique(by_entity_us, return_index=True)[1]
    keys[rng.choice(tuples, len(every), replace=False)] = every  # every duration comes
    duration_us = by_entity_us[keys]
    return TimedStream(keys, np.arange(tuples) * (duration_us.mean() / load), duration_us)


def shifted_mentions(tuples: int, load: float, seed: int = 3) -> TimedStream:
    """Tweets without debates, of whose entities half swap what they take, two by two, in the middle of the stream.

    Tweets come as fast, before and after, as brings `load` times the work that can be done.
    """
    rng = np.random.default_rng(seed)
    _, before_us, chances = entities_of(ENTITIES, rng)
    swapped = rng.permutation(ENTITIES)[: ENTITIES // 4 * 2].reshape(2, -1)
    after_us = before_us.copy()
    after_us[swapped[0]], after_us[swapped[1]] = before_us[swapped[1]], before_us[swapped[0]]
    keys = rng.choice(ENTITIES, tuples, p=chances / chances.sum())
    half = tuples // 2
    duration_us = np.concatenate([before_us[keys[:half]], after_us[keys[half:]]])
    gaps_us = np.where(np.arange(tuples) < half, duration_us[:half].mean(), duration_us[half:].mean()) / load
    return TimedStream(keys, np.cumsum(gaps_us) - gaps_us[0], duration_us)
