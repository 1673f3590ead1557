"""What a stream tells about the values of one column, for groups whose own sample says too little.

A sample in which all values are equal, or none is large, knows nothing of the rows that it has missed. Other groups and
earlier batches do. Every batch observes the sums below over its new slices, exact ones included, and the state's record
keeps them with a memory of about ten batches. From them follow the sizes by which a missed row may move a result: for a
sum E x^2 / E|x|, the mean value of a row drawn with a probability that goes with its value; for an average the variance
within groups, divided by the distance of the mean from the smallest value (upwards) or from the largest (downwards).
For a value that is either 0 or c both are c. For values with a long tail they would still be short, so each is moved a
third of the way, on a scale of logarithms, towards the largest value seen.

One row in a hundred is 50, the others are 0:

>>> seen = Context(rows=1000.0, squares=25_000.0, sizes=500.0, grouped=1000.0, within=24_750.0, above=500.0,
...                below=49_500.0, low=0.0, high=50.0)
>>> {name: round(value, 2) for name, value in seen.facts().items()}  # doctest: +NORMALIZE_WHITESPACE
{'square': 25.0, 'share': 0.01, 'jump': 50.0, 'most_up': 50.0, 'most_down': 0.0, 'variance': 24.75,
 'variance_share': 0.01, 'up': 49.5, 'down': 0.5, 'low': 0.0, 'high': 50.0}
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

COLUMN = "_jt_context"
"""The hidden column of results, while they are made, that holds the facts of all estimated columns."""
FACTS = (
    "square",
    "share",
    "jump",
    "most_up",
    "most_down",
    "variance",
    "variance_share",
    "up",
    "down",
    "low",
    "high",
)
TOWARDS_LARGEST = 1 / 3
_FORGOTTEN = 0.1
"""So much is forgotten with a batch, or less where it is small."""
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Context:
    """Sums over the rows that were seen, by their weight: `rows`, their `squares` and absolute `sizes`.

    Over slices with two rows or more: `grouped` rows, the squares `within` groups (around the mean of their slice), and
    how far rows are `above` the smallest and `below` the largest value of their slice. `low` and `high` are the range.
    """

    rows: float
    squares: float
    sizes: float
    grouped: float
    within: float
    above: float
    below: float
    low: float
    high: float

    def after(self, batch: Context) -> Context:
        """What is known after one batch more; a value far off is forgotten too.

        >>> calm, wild = (Context(1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, -1.0, high) for high in (1.0, 101.0))
        >>> round(wild.after(calm).high, 2), calm.after(wild).high
        (91.0, 101.0)
        """
        memory = 1 - min(_FORGOTTEN, _ratio(batch.rows, self.rows))
        sums = {
            name: memory * value + getattr(batch, name)
            for name, value in asdict(self).items()
            if name not in ("low", "high")
        }
        low = min(batch.low, batch.low + memory * (self.low - batch.low))
        high = max(batch.high, batch.high + memory * (self.high - batch.high))
        return Context(**sums, low=low, high=high)

    def facts(self) -> dict[str, float]:
        """What intervals need to know, in the order of `FACTS`."""
        square, size = _ratio(self.squares, self.rows), _ratio(self.sizes, self.rows)
        jump, largest = _ratio(square, size), max(abs(self.low), abs(self.high))
        around_zero = size if self.low < 0 < self.high else math.inf
        variance = _ratio(self.within, self.grouped)
        up, down = (_ratio(variance, min(_ratio(way, self.grouped), around_zero)) for way in (self.above, self.below))
        return {
            "square": square,
            "share": min(1.0, _ratio(square, jump**2)),
            "jump": jump * max(1.0, _ratio(largest, jump)) ** TOWARDS_LARGEST,
            "most_up": max(0.0, self.high),
            "most_down": max(0.0, -self.low),
            "variance": variance,
            "variance_share": min(1.0, _ratio(variance, max(up, down) ** 2)),
            "up": up,
            "down": down,
            "low": self.low,
            "high": self.high,
        }


def fact(place: int, name: str) -> str:
    """A fact about the column at a place, in the SQL of results; null where nothing is known.

    >>> fact(1, "share")
    'get(_jt_context, 12)'
    """
    return f"get({COLUMN}, {place * len(FACTS) + FACTS.index(name)})"


def facts_sql(arguments: Sequence[str], known: Mapping[str, Context], rows: str) -> str:
    """The facts of columns as an array of doubles. `rows` is a column of whole numbers, by which the array is not a
    constant to Spark: code is not compiled anew when a batch knows more.

    >>> facts_sql(["fare"], {}, "n")
    'array(CAST(NULL AS array<double>))[int(n & 0)]'
    """
    if not any(each in known for each in arguments):
        return f"array(CAST(NULL AS array<double>))[int({rows} & 0)]"
    values: list[str] = []
    for each in arguments:
        facts = known[each].facts().values() if each in known else [None] * len(FACTS)
        values += ["CAST(NULL AS double)" if value is None else f"double('{value!r}')" for value in facts]
    return f"array(array({', '.join(values)}))[int({rows} & 0)]"


def context_metrics(place: int, sums: Mapping[str, str]) -> list[str]:
    """What is observed of new slices, by column. `sums` says in SQL what a slice has: its `count` of rows, the `rows`
    they stand for, their `total`, `squares`, `sizes`, `low` and `high`. Slices with infinite values are left out."""
    rows, total, squares = (f"({sums[name]})" for name in ("rows", "total", "squares"))
    within = f"({squares} - {total} * try_divide({total}, {rows}))"
    of_slice = {
        "rows": rows,
        "squares": squares,
        "sizes": sums["sizes"],
        "grouped": f"IF({sums['count']} > 1, {rows}, 0D)",
        "within": f"IF({sums['count']} > 1 AND {within} > {_ROUNDING}D * {squares}, {within}, 0D)",
        "above": f"IF({sums['count']} > 1, {total} - {sums['low']} * {rows}, 0D)",
        "below": f"IF({sums['count']} > 1, {sums['high']} * {rows} - {total}, 0D)",
    }
    finite = f"{squares} < double('inf')"  # which a NaN is not: Spark takes it for larger
    found = [f"sum(IF({finite}, {sql}, 0D)) AS context{place}_{name}" for name, sql in of_slice.items()]
    found.append(f"min(IF({finite}, {sums['low']}, NULL)) AS context{place}_low")
    return [*found, f"max(IF({finite}, {sums['high']}, NULL)) AS context{place}_high"]


def observed_context(place: int, seen: Mapping[str, Any]) -> Context | None:
    """What was seen of a column; None where there was no value."""
    if not seen.get(f"context{place}_rows") or seen.get(f"context{place}_low") is None:
        return None
    return Context(**{each.name: float(seen[f"context{place}_{each.name}"]) for each in fields(Context)})


def remembered(before: Mapping[str, Context], batches: Sequence[Mapping[str, Context]]) -> dict[str, Context]:
    """What is known of columns after what a batch has seen, in one part or several."""
    found = dict(before)
    for seen in batches:
        for name, context in seen.items():
            found[name] = found[name].after(context) if name in found else context
    return found


def _ratio(above: float, below: float) -> float:
    return above / below if below > 0 else 0.0
