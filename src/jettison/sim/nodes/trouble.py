"""What goes wrong: slow links, messages that are late, lost or reordered, nodes and coordinators that are gone."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jettison.errors import StartError


@dataclass(frozen=True)
class Trouble:
    """Delays in ms, shares from 0 to 1, and (from, to) seconds in which a node, or the coordinator, is gone.

    `link_ms` is the delay of rows between nodes, `rows_per_s` what a link can carry. A message takes `message_ms`, up
    to `jitter_ms` more by chance (so that one may overtake another), and `lost_share` of them never arrive.

    >>> Trouble(lost_share=2.0)
    Traceback (most recent call last):
    jettison.errors.StartError: lost_share is 2.0: give a share from 0 to 1.
    """

    link_ms: float = 20.0
    rows_per_s: float = math.inf
    message_ms: float = 20.0
    jitter_ms: float = 0.0
    lost_share: float = 0.0
    gone: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)
    coordinator_gone: Sequence[tuple[float, float]] = ()

    def __post_init__(self) -> None:
        for word in ("link_ms", "message_ms", "jitter_ms"):
            if not (math.isfinite(getattr(self, word)) and getattr(self, word) >= 0):
                raise StartError(f"{word} is {getattr(self, word)}: give milliseconds of at least 0.")
        if not 0 <= self.lost_share <= 1:
            raise StartError(f"lost_share is {self.lost_share}: give a share from 0 to 1.")
        if not self.rows_per_s > 0:
            raise StartError(f"rows_per_s of links is {self.rows_per_s}: give rows per second above 0.")

    def back_ms(self, node: str, now_ms: float) -> float | None:
        """When a node that is gone comes back; None while it is there."""
        return next((1000 * to for since, to in self.gone.get(node, ()) if 1000 * since <= now_ms < 1000 * to), None)

    def coordinator_is_gone(self, now_ms: float) -> bool:
        return any(1000 * since <= now_ms < 1000 * to for since, to in self.coordinator_gone)


class Post:
    """Messages under way. The same seed loses and delays the same messages.

    >>> post = Post(Trouble(message_ms=20.0), seed=0)
    >>> post.send("B", "plan", now_ms=0.0); post.received("B", 10.0), post.received("B", 20.0)
    ([], ['plan'])
    """

    def __init__(self, trouble: Trouble, seed: int) -> None:
        self._trouble = trouble
        self._chance = np.random.default_rng([seed, 2])
        self._boxes: dict[str, list[tuple[float, int, Any]]] = {}
        self.sent = 0
        self.lost = 0

    def send(self, to: str, message: Any, now_ms: float) -> None:
        """Put a message under way."""
        self.sent += 1
        lost, late = self._chance.random(2)
        if lost < self._trouble.lost_share:
            self.lost += 1
            return
        arrives_ms = now_ms + self._trouble.message_ms + late * self._trouble.jitter_ms
        heapq.heappush(self._boxes.setdefault(to, []), (arrives_ms, self.sent, message))

    def received(self, to: str, now_ms: float) -> list[Any]:
        """All that has arrived by now, in the order of arrival."""
        box, found = self._boxes.get(to, []), []
        while box and box[0][0] <= now_ms:
            found.append(heapq.heappop(box)[2])
        return found
