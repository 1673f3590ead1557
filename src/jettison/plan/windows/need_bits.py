"""Which ticks are needed, as bits: what a filter can look up for every tuple.

Windows begin and end at multiples of a granule, so that all ticks of a granule fare alike. One bit per granule, 60 bits
to a word: an hour of seconds is 60 words.

Most tuples of a batch are in few windows, those of now, and often all of these are kept. So one stretch of time of
which everything is needed stands apart: two comparisons are cheaper than to look a bit up.
"""

from __future__ import annotations

import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Any

import numpy as np

from jettison.plan.windows.needs import within_needs

WORD_BITS = 60
"""A word must stay a positive long in SQL."""


@dataclass(frozen=True)
class Needed:
    """A bit per granule from `low_us` on; what lies before or behind is needed.

    From `sure_us[0]` up to, not including, `sure_us[1]` all is needed, as the bits say too.

    >>> some = needed_bits(((0, 20), (40, 50)), low_us=0, high_us=60, granule_us=10)
    >>> [some.at(tick) for tick in (-1, 15, 25, 45, 59, 60)]
    [True, True, False, True, False, True]
    """

    low_us: int
    high_us: int
    granule_us: int
    words: tuple[int, ...]
    sure_us: tuple[int, int] = (0, 0)

    def to_dict(self) -> dict[str, Any]:
        """As it is logged: bits are packed, for there may be tens of thousands of them. Schedules repeat themselves,
        so 32,768 bits take 100 to 5,500 characters."""
        size = (self.high_us - self.low_us) // self.granule_us
        bits = sum(word << (WORD_BITS * number) for number, word in enumerate(self.words))
        packed = zlib.compress(bits.to_bytes(-(-size // 8), "little"))
        content = {"low_us": self.low_us, "granule_us": self.granule_us, "size": size}
        return {**content, "sure_us": list(self.sure_us), "bits": b64encode(packed).decode()}

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Needed:
        """What `to_dict` gives.

        >>> some = needed_bits(((0, 20), (40, 50)), low_us=0, high_us=60, granule_us=10, now_us=25)
        >>> Needed.from_dict(some.to_dict()) == some
        True
        """
        low_us, granule_us, size = content["low_us"], content["granule_us"], content["size"]
        bits = int.from_bytes(zlib.decompress(b64decode(content["bits"])), "little")
        whole = (1 << WORD_BITS) - 1
        words = tuple(bits >> (WORD_BITS * number) & whole for number in range(-(-size // WORD_BITS)))
        first_us, last_us = content["sure_us"]
        return cls(low_us, low_us + size * granule_us, granule_us, words, (first_us, last_us))

    @property
    def everything(self) -> bool:
        return sum(word.bit_count() for word in self.words) == (self.high_us - self.low_us) // self.granule_us

    def at(self, tick_us: int) -> bool:
        if not self.low_us <= tick_us < self.high_us:
            return True
        word, bit = divmod((tick_us - self.low_us) // self.granule_us, WORD_BITS)
        return bool(self.words[word] >> bit & 1)

    def all_within(self, start_us: int, end_us: int) -> bool:
        """Whether everything from one time up to, not including, another is needed.

        >>> some = needed_bits(((0, 20), (40, 50)), low_us=0, high_us=60, granule_us=10)
        >>> some.all_within(-50, 20), some.all_within(0, 21), some.all_within(30, 45), some.all_within(45, 45)
        (True, False, False, True)
        """
        low, high = max(start_us, self.low_us), min(end_us, self.high_us)
        return all(self.at(tick) for tick in range(low // self.granule_us * self.granule_us, high, self.granule_us))


def needed_bits(
    needs: Iterable[tuple[int, int]], low_us: int, high_us: int, granule_us: int, now_us: int | None = None
) -> Needed:
    """Bits of the granules from one multiple of the granule up to, not including, another.

    What is needed at `now_us`, or as soon as possible after it, up to the next gap, is what most tuples are judged by:

    >>> needed_bits(((0, 20), (40, 50)), low_us=0, high_us=60, granule_us=10, now_us=25).sure_us
    (40, 50)
    """
    found = within_needs(tuple(needs), np.arange(low_us, high_us, granule_us, dtype=np.int64))
    padded = np.zeros(-(-len(found) // WORD_BITS) * WORD_BITS, np.int64)
    padded[: len(found)] = found
    words = padded.reshape(-1, WORD_BITS) @ (np.int64(1) << np.arange(WORD_BITS, dtype=np.int64))
    sure_us = (0, 0)
    if now_us is not None and low_us <= now_us < high_us:
        edges = np.flatnonzero(np.diff(np.concatenate(([False], found, [False])))) * granule_us + low_us
        runs = zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True)
        sure_us = next(((start, end) for start, end in runs if end > now_us), sure_us)
    return Needed(low_us, high_us, granule_us, tuple(words.tolist()), sure_us)


def together(some: Sequence[Needed]) -> Needed:
    """What any of these needs, all over the same time.

    >>> one, other = (needed_bits(needs, 0, 30, 10) for needs in ([(0, 10)], [(20, 30)]))
    >>> [together([one, other]).at(tick) for tick in (5, 15, 25)]
    [True, False, True]
    """
    words = tuple(reduce(or_, each) for each in zip(*(needed.words for needed in some), strict=True))
    return replace(some[0], words=words)
