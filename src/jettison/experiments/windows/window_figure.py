"""What figures 4.8 and 4.10 have in common: the share of results that is missing over the excess load, by place.

Curves are computed from measured costs, crosses were seen on Spark (see `window_places`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jettison.experiments.harness import Result
from jettison.experiments.windows.window_places import Saved
from jettison.network.arc import Arc

_EXCESS = tuple(step / 20 for step in range(1, 61))
_COUNTED_NEAR = 0.02
"""How far a share of rows that was counted may be from that of windows: of few rows some lie on an edge."""
_NEAR = 0.12
"""How far a drop rate that was seen may be from the one computed."""


def result(name: str, saved: Saved, places: Sequence[str], title: str) -> Result:
    """`places` from the earliest to the last, which is by chance."""
    early, middle, late = places
    rates = {place: [saved.rate(place, excess) for excess in _EXCESS] for place in places}
    seen = {key: saved.carried(*key) for key in saved.after_ms if key[1] < 1.0}
    shares = sorted({share for _, share in seen})
    off = {key: abs(saved.rate(key[0], excess) - key[1]) for key, excess in seen.items()}
    limit = saved.most_excess(late)
    rows = [
        {"excess_percent": round(100 * excess), **{place: round(rates[place][at], 4) for place in places}}
        for at, excess in enumerate(_EXCESS)
    ]
    checks = {
        f"{early} <= {middle} <= {late} at every excess load": all(
            a <= b <= c for a, b, c in zip(*(rates[place] for place in places), strict=True)
        ),
        f"{late} delivers nothing beyond some excess load that the others take": 0 < limit < _EXCESS[-1]
        and max(saved.rate(early, limit), saved.rate(middle, limit)) < 1.0,
        "seen on Spark: of the same share dropped, the earlier place carries more": all(
            seen[early, share] >= seen[middle, share] >= seen[late, share] for share in shares
        ),
        f"seen on Spark: drop rates within {_NEAR:g} of those computed": max(off.values()) <= _NEAR,
        "seen on Spark: what is delivered is what the unshed run delivers": saved.exact,
        f"counted: of trips {early} lets in just what kept windows need, {middle} and {late} all": _as_said(
            saved, [early], 0.0
        )
        and _as_said(saved, [middle, late], 1.0),
        f"counted: behind that, {middle} lets pass just what kept windows need": _passes_inside(saved, middle),
    }
    metrics = {f"{place}_at_50": round(saved.rate(place, 0.5), 3) for place in places}
    metrics |= {f"{place}_most_excess_percent": round(100 * saved.most_excess(place), 1) for place in places}
    metrics |= {
        f"{place}_seen_excess_percent_at_{share:g}": round(100 * excess, 1) for (place, share), excess in seen.items()
    }
    metrics |= {"furthest_from_computed": round(max(off.values()), 3)}
    metrics |= {"work_ms": round(saved.work_ms, 1), "fixed_ms": round(saved.fixed_ms, 1)}
    metrics = {key.replace(" ", "_"): value for key, value in metrics.items()}
    return Result(name, metrics, checks, rows, lambda figure: _draw(figure, rates, seen, title))


def _as_said(saved: Saved, places: Sequence[str], whole: float) -> bool:
    """Whether at these places as many rows came in as stay when windows go there; all of them where `whole` is 1."""
    off = [
        abs(passing - max(whole, 1.0 - share))
        for (place, share), passed in saved.passed.items()
        if place in places
        for arc, passing in passed.items()
        if Arc(arc).is_input
    ]
    return len(off) >= len(places) and max(off) <= _COUNTED_NEAR


def _passes_inside(saved: Saved, place: str) -> bool:
    """Whether behind the inputs as many rows pass the first drops of a place as stay."""
    inside = {
        share: [passing for arc, passing in passed.items() if not Arc(arc).is_input]
        for (at, share), passed in saved.passed.items()
        if at == place
    }
    off = [abs(min(found, default=2.0) - (1.0 - share)) for share, found in inside.items()]
    return bool(off) and max(off) <= _COUNTED_NEAR


def _draw(figure: Any, rates: Any, seen: Any, title: str) -> None:
    axes = figure.subplots()
    for place, computed in rates.items():
        (line,) = axes.plot([100 * excess for excess in _EXCESS], computed, label=f"drop at: {place}")
        points = [(100 * excess, share) for (at, share), excess in seen.items() if at == place]
        points = [point for point in points if point[0] <= 100 * _EXCESS[-1]]
        axes.plot(*zip(*points, strict=True), "x", color=line.get_color()) if points else None
    axes.set_xlabel("excess load (% of capacity)")
    axes.set_ylabel("drop rate (share of results that is missing)")
    axes.set_ylim(0, 1.05)
    axes.set_title(f"{title}\n(lines: computed from measured costs; crosses: seen on Spark)", fontsize=10)
    axes.legend()
