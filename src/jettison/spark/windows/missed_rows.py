"""How many rows a dropped row would have stood for, for results none of whose rows tells that any was dropped."""

from __future__ import annotations

from collections.abc import Sequence

from jettison.network.columns.schema import quoted
from jettison.plan.refine.thinning import GroupShares, Thinned
from jettison.spark.compile.drops import changing, group_hash


def missed_sql(entries: Sequence[Thinned], start: str, size_us: int, more: str) -> str:
    """The largest weight of a row that a result may have missed, in SQL; 1 where it cannot have missed any.

    `start` is the column of the window's start, `more` that of the rows for which others stand: where there are such
    rows, their own weights tell.

    >>> missed_sql((), "start", 10, "more")
    '1D'
    >>> missed_sql([Thinned(GroupShares(others=0.25), 50)], "start", 10, "more")
    'IF(coalesce(more, 0D) = 0, greatest(1D, IF(start > get(array(40L), int(start & 0)), \
get(array(4.0D), int(start & 0)), 1D)), 1D)'
    """
    if not entries:
        return "1D"
    weights = ", ".join(_weight(each, start, size_us) for each in entries)
    return f"IF(coalesce({more}, 0D) = 0, greatest(1D, {weights}), 1D)"


def _weight(entry: Thinned, start: str, size_us: int) -> str:
    conditions = []
    if entry.from_us is not None:
        conditions.append(f"{start} > {changing(f'{entry.from_us - size_us}L', start)}")
    if entry.to_us is not None:
        conditions.append(f"{start} <= {changing(f'{entry.to_us}L', start)}")
    return f"IF({' AND '.join(conditions) or 'true'}, {_of_group(entry.shares, start)}, 1D)"


def _of_group(shares: GroupShares, start: str) -> str:
    others = changing(f"{1 / shares.others!r}D", start)
    if not shares.groups:
        return others
    # one text that Spark takes apart once, as in drops by group
    keys = ",".join(str(group) for group, _ in shares.groups)
    weights = ",".join(repr(1 / share) for _, share in shares.groups)
    hashed = group_hash([quoted(column) for column in shares.columns])
    place = f"int(array_position(CAST(split('{keys}', ',') AS array<bigint>), {hashed})) - 1"
    return f"coalesce(get(CAST(split('{weights}', ',') AS array<double>), {place}), {others})"
