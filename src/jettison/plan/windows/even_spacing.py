"""Windows that go evenly: how many of a block, and which, so that every stretch of windows keeps its share.

Windows come in blocks of gap + 1, of which the first is kept (`fates`). Drawn by chance, a share holds in the long
run alone: of 69 windows with a floor of .3 no more than .2 were kept. Here block b loses

    together * (floor((b + 1) * rate + phase) - floor(b * rate + phase)),   rate = drop_share * (gap + 1) / together

windows, as many as are due since the first block. `together` is 1 where windows do not overlap: then those that go
are spread over their block, and no stretch is two windows away from its share. Where windows overlap, tuples go early
only if neighbours go: there `together` is the gap, and a block goes whole or not at all.

Rates and phases are whole numbers of 2^-20. A segment that goes on with the blocks of another begins with the phase
that it has reached, so what is due is not forgotten when shares change.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BITS = 20
"""A share is a whole number of 2^-20, as with all drops that judge by a hash."""

UNIT = 1 << BITS
_ROUNDING = 1e-6


def rate_of(drop_share: float, gap: int, together: int) -> int:
    """How many times `together` windows are due per block; never more than asked for.

    >>> rate_of(0.5, gap=4, together=1) / UNIT, rate_of(0.5, gap=4, together=4) / UNIT
    (2.5, 0.625)
    """
    return min(gap // together * UNIT, int(drop_share * (gap + 1) / together * UNIT + _ROUNDING))


def phase_at(phase: int, rate: int, blocks: NDArray[np.int64]) -> NDArray[np.int64]:
    """What is due at the beginning of these blocks, without the whole ones."""
    reached: NDArray[np.int64] = (blocks % UNIT * (rate % UNIT) + phase) % UNIT
    return reached


def goes(
    into: NDArray[np.int64], blocks: NDArray[np.int64], *, gap: int, together: int, rate: int, phase: int
) -> NDArray[np.bool_]:
    """Which windows go: `into` windows behind the first of their block, which is kept.

    Of a block of 5 that loses 2, the second and the fourth go:

    >>> into, blocks = np.arange(10) % 5, np.arange(10) // 5
    >>> goes(into, blocks, gap=4, together=1, rate=2 * UNIT, phase=0).astype(int)
    array([0, 1, 0, 1, 0, 0, 1, 0, 1, 0])
    """
    lost = together * ((phase_at(phase, rate, blocks) + rate) // UNIT)
    found: NDArray[np.bool_] = -(-into * lost // (gap + 1)) > -(-(into - 1) * lost // (gap + 1))
    return found & (into > 0)
