"""Intervals of estimates as `estimates.py` says them in SQL, in plain NumPy: what Spark must give."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from jettison.network.windows.estimate_context import Context

Floats = NDArray[np.float64]
Ends = tuple[float, float] | None
Q = 1.959963985


def context_of(slices: Iterable[tuple[Floats, Floats]]) -> Context:
    """What a batch tells of a column: of every slice the weights and the values of its rows."""
    told = [(w, x, w.sum(), (w * x).sum(), (w * x * x).sum()) for w, x in slices if len(x)]
    many = [each for each in told if len(each[1]) > 1]
    within = [q - t * t / n for _, _, n, t, q in many]
    return Context(
        rows=sum(n for _, _, n, _, _ in told),
        squares=sum(q for *_, q in told),
        sizes=sum((w * abs(x)).sum() for w, x, *_ in told),
        grouped=sum(n for _, _, n, _, _ in many),
        within=sum(v for v, each in zip(within, many, strict=True) if v > 1e-12 * each[4]),
        above=sum(t - x.min() * n for _, x, n, t, _ in many),
        below=sum(x.max() * n - t for _, x, n, t, _ in many),
        low=min(x.min() for _, x, *_ in told),
        high=max(x.max() for _, x, *_ in told),
    )


def count_interval(w: Floats, most: float) -> tuple[float, float]:
    """Of the weights of rows that are counted; `most` is the largest weight of any row."""
    t, v = w.sum(), (w * (w - 1)).sum()
    low, high = _ends(t, v, v / t if t else 0.0, most - 0.5, Q, 1.0)
    return max(low, float(len(w))), high


def sum_interval(w: Floats, x: Floats, known: Context | None) -> Ends:
    n = int((w > 1).sum())
    if n < 2:
        return None
    t, v, a = (w * x).sum(), (w * (w - 1) * x * x).sum(), (w * abs(x)).sum()
    bend = v * t**3 / a**4 if a else 0.0
    up = down = 0.0
    if known is not None:
        facts = known.facts()
        like = _likely((w * x * x).sum() / w.sum(), facts["square"], n * facts["share"])
        most = max(facts["most_up"], x.max()), max(facts["most_down"], -x.min())
        up, down = (min(each, like * facts["jump"]) * (_beside(w) + 0.5) for each in most)
    low, high = _bent(t, v, bend, up, down, _student(n), (w * x * x).sum() / a if a else 0.0)
    if known is not None and t >= a * (1 - 1e-12) and known.low >= 0 and x.min() >= 0:
        low = max(low, min(t, x.sum()))
    return (low, high) if high > low else None


def avg_interval(w: Floats, x: Floats, known: Context | None) -> Ends:
    n, rows = int((w > 1).sum()), w.sum()
    if n < 2:
        return None
    t, a = (w * x).sum() / rows, (w * abs(x)).sum() / rows
    spread = (w * (w - 1) * (x - t) ** 2).sum()
    v = spread * n / (n - 1) / rows**2 if spread > 1e-12 * (w * (w - 1) * x * x).sum() else 0.0
    own = (w * (x - t) ** 2).sum() / rows
    own = own if own > 1e-12 * (w * x * x).sum() / rows else 0.0
    up = down = 0.0
    if known is not None:
        facts = known.facts()
        like = _likely(own, facts["variance"], n * facts["variance_share"])
        up, down = (
            min(gap, like * size * max(1.0, gap / size) ** (1 / 3)) if size > 0 else 0.0
            for gap, size in ((max(known.high, x.max()) - t, facts["up"]), (t - min(known.low, x.min()), facts["down"]))
        )
    if not (v > 0 or up > 0 or down > 0):
        up = down = abs(t)
    each = (_beside(w) + 0.5) / rows
    low, high = _bent(
        t, v, v * t**3 / a**4 if a else 0.0, up * each, down * each, _student(n), own / a / rows if a else 0.0
    )
    if known is not None and known.within > 0:
        low, high = max(low, min(x.min(), known.low)), min(high, max(x.max(), known.high))
    return (low, high) if high > low else None


@cache
def _student(n: int) -> float:
    return float(stats.t.ppf(0.975, n - 1))


def _beside(w: Floats) -> float:
    """How many rows a row stands for beside itself."""
    thinned = w[w > 1]
    return float((thinned * (thinned - 1)).sum() / thinned.sum())


def _likely(own: float, of_stream: float, expected: float) -> float:
    r = min(1.0, own / of_stream) if of_stream else 0.0
    if r <= 0:
        return 1.0
    return math.sqrt(r) + (1 - math.sqrt(r)) * min(1.0, math.exp(5 - expected * (1 - r + r * math.log(r))))


def _bent(t: float, v: float, bend: float, up: float, down: float, q: float, one: float) -> tuple[float, float]:
    return _ends(t, v, min(bend, max(bend, 0.0) - down), max(bend, up + min(bend, 0.0)), q, one)


def _ends(t: float, v: float, down: float, up: float, q: float, one: float) -> tuple[float, float]:
    """Roots of (t - true)^2 = q^2 (v + b (true - t)), with another b on each side."""
    low = t + q * q * down / 2 - q * math.sqrt(v + (q * down / 2) ** 2) - (one / 2 if t > 0 else 0)
    high = t + q * q * up / 2 + q * math.sqrt(v + (q * up / 2) ** 2) + (one / 2 if t < 0 else 0)
    return float(low), float(high)
