"""Which groups of an aggregate are large, followed while running, in bounded memory."""

from __future__ import annotations

from collections.abc import Mapping

from jettison.statistics.samples import GroupSample

_WEIGHT = 0.5
_FORGET_SHARE = 1e-5
_MOST = 4096


class GroupSizes:
    """The share of an aggregate's rows that each large group has, smoothed over batches; by a hash of the group.

    A batch tells only of its large groups. One that it does not name was small, and is half forgotten.

    >>> sizes = GroupSizes()
    >>> sizes.update({"busy": GroupSample(1000.0, {7: 600.0, 8: 300.0})})
    >>> sizes.update({"busy": GroupSample(1000.0, {7: 800.0})})
    >>> sizes.of("busy"), sizes.rows("busy")
    ({7: 0.7, 8: 0.15}, 1000.0)
    """

    def __init__(self) -> None:
        self._shares: dict[str, dict[int, float]] = {}
        self._rows: dict[str, float] = {}
        self._span_us: dict[str, float] = {}

    def of(self, aggregate: str) -> Mapping[int, float]:
        """Shares of large groups; nothing while none is known."""
        return self._shares.get(aggregate, {})

    def rows(self, aggregate: str) -> float | None:
        """How many rows come to an aggregate in a batch."""
        return self._rows.get(aggregate)

    def span_us(self, aggregate: str) -> float | None:
        """How much event time the rows of a batch cover."""
        return self._span_us.get(aggregate)

    def update(self, samples: Mapping[str, GroupSample]) -> None:
        for name, sample in samples.items():
            if sample.rows <= 0:
                continue
            if sample.span_us is not None:
                before_us = self._span_us.get(name, sample.span_us)
                self._span_us[name] = (1 - _WEIGHT) * before_us + _WEIGHT * sample.span_us
            now = {group: size / sample.rows for group, size in sample.sizes.items()}
            if name not in self._shares:
                self._shares[name], self._rows[name] = now, sample.rows
                continue
            old = self._shares[name]
            mixed = {
                group: (1 - _WEIGHT) * old.get(group, now.get(group, 0.0)) + _WEIGHT * now.get(group, 0.0)
                for group in old.keys() | now.keys()
            }
            kept = sorted(mixed.items(), key=lambda each: (-each[1], each[0]))[:_MOST]
            self._shares[name] = {group: share for group, share in kept if share >= _FORGET_SHARE}
            self._rows[name] += _WEIGHT * (sample.rows - self._rows[name])
