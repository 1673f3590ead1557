"""Which branches a node drops by itself, and in which order: complementary local plans (thesis 5.5.2).

A branch of a split saves some work per tuple and loses some worth. Where it loses less per unit of work than the input
above it, the node should drop there first, all of it, before it asks its parent for fewer tuples. With splits below
splits this is a walk up the tree: a location joins the branches below it that are worth more per unit of work than it
is itself (they are never dropped before it); what is left are blocks, each at its location, worth ever less.

    input  1 + branches (2, worth 1) and (5, worth 1)  ->  a block of work 3 and worth 1 that stays, and one of 5 and 1

Where a branch leads to other nodes as well, only what they do not need is dropped there; of the rest, blocks below
it are dropped by themselves. Branches above a union whose stream splits again are not dropped: what that loses is
shared with others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jettison.plan.nodes.structure import Matrix, Structure, Vector


@dataclass(frozen=True)
class LocalDrops:
    """Blocks that a node may drop by itself, each at its location, those that lose least per unit of work first.

    `work_us` is per tuple that comes to the location, with what it has joined of blocks below. A block that was joined
    by one above it (`joined_by`, -1 for none; `share` is its tuples per tuple there) is dropped by itself only where
    the other one is not, as nodes downstream need tuples there. `local` are all locations that lead to outputs of this
    node alone, `serving` those that lead to any. `least_us` is the work of a tuple from each location on the cheapest
    way to an output of this node.
    """

    locations: npt.NDArray[np.intp]
    work_us: Vector
    joined_by: npt.NDArray[np.intp]
    share: Vector
    local: npt.NDArray[np.bool_]
    serving: npt.NDArray[np.bool_]
    least_us: Vector

    def apply(self, over_us: Vector, spare: Matrix) -> Matrix:
        """Tuples that are dropped at every location, so that nothing is over, as far as that goes.

        `spare` are tuples at every location that no other node needs, locations x rows.
        """
        joined = np.where(self.joined_by[:, None] >= 0, self.share[:, None] * spare[self.joined_by], 0.0)
        alone = np.maximum(spare[self.locations] - joined, 0.0)
        saves = alone * self.work_us[:, None]
        before = np.cumsum(saves, axis=0) - saves
        share = np.divide(over_us - before, saves, out=np.zeros_like(saves), where=saves > 0)
        dropped = np.zeros_like(spare)
        dropped[self.locations] = np.clip(share, 0.0, 1.0) * alone
        return dropped


def local_drops(own: Structure, worth: Vector) -> LocalDrops:
    """The blocks of one node; `worth` is of its outputs, 0 for links, which are not the node's to judge.

    >>> from jettison.plan.nodes.examples import fan_out
    >>> found = local_drops(fan_out(1.0, [2.0, 5.0]), np.ones(2))
    >>> found.locations.tolist(), (found.work_us / 1e6).tolist(), found.joined_by.tolist()
    ([2, 1], [5.0, 2.0], [-1, 0])
    """
    count = len(own.arcs)
    work, value = own.work_us[0], worth @ own.gives
    linked = np.asarray((own.gives[worth == 0] > 0).any(axis=0))
    serving = np.asarray((own.gives[worth > 0] > 0).any(axis=0))
    blocks: dict[int, tuple[float, float]] = {}
    joined: dict[int, tuple[int, float]] = {}
    pending: dict[int, list[int]] = {}
    merges = (own.reaches > 0).sum(axis=1) > 1
    merging = np.zeros(count, dtype=bool)  # above such: what is lost there is not this location's alone
    for at in reversed(range(count)):
        below = [each for each in range(count) if own.reaches[each, at] > 0]
        merging[at] = any(merges[each] or merging[each] for each in below)
        linked[at] |= any(linked[each] for each in below)
        serving[at] |= any(serving[each] for each in below)
        mass, gain = float(work[at]), float(value[at])
        open_ = {each for top in below if serving[top] for each in (top, *pending[top])}
        rest = []
        for each in sorted(open_, key=lambda each: -_ratio(blocks[each])):
            factor = _between(own, at, each)
            if _ratio(blocks[each]) >= _ratio((mass, gain)) and each not in joined and not merging[at]:
                mass, gain = mass + factor * blocks[each][0], gain + factor * blocks[each][1]
                joined[each] = (at, factor)
            else:
                rest.append(each)
        blocks[at], pending[at] = (mass, gain), rest
    found = [at for at in range(count) if serving[at] and not (own.is_input[at] or merging[at])]
    found.sort(key=lambda at: _ratio(blocks[at]))
    load = np.array([blocks[at][0] for at in found], dtype=float)
    above = np.array([joined.get(at, (-1, 0.0))[0] for at in found], dtype=np.intp)
    share = np.array([joined.get(at, (-1, 0.0))[1] for at in found], dtype=float)
    return LocalDrops(np.array(found, dtype=np.intp), load, above, share, ~linked, serving, _least_us(own, worth))


def _ratio(block: tuple[float, float]) -> float:
    """Worth per unit of work; a location that does nothing and gives nothing is as good as the best branch below."""
    work, gain = block
    if work > 0:
        return gain / work
    return np.inf if gain > 0 else -np.inf


def _least_us(own: Structure, worth: Vector) -> Vector:
    """Work per tuple from every location to the nearest output that is worth something; infinite where there is none.

    >>> from jettison.plan.nodes.examples import fan_out
    >>> (_least_us(fan_out(1.0, [2.0, 5.0]), np.ones(2)) / 1e6).tolist()
    [3.0, 2.0, 5.0]
    """
    work, ends = own.work_us[0], np.asarray((own.gives[worth > 0] > 0).any(axis=0))
    least = np.full(len(own.arcs), np.inf)
    for at in reversed(range(len(own.arcs))):
        below = np.flatnonzero(own.reaches[:, at] > 0)
        ways = own.reaches[below, at] * least[below]
        least[at] = work[at] + (0.0 if ends[at] else float(ways.min(initial=np.inf)))
    return least


def _between(own: Structure, above: int, below: int) -> float:
    """Tuples at a location per tuple at another one above it."""
    flow = np.zeros(len(own.arcs))
    flow[above] = 1.0
    for at in range(above + 1, below + 1):
        flow[at] = own.reaches[at] @ flow
    return float(flow[below])
