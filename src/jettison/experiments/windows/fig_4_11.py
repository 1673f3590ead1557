"""The effect of the window's size on a window drop, with an excess load of 25 % (figure 4.11).

Windows that slide by one second, and windows that do not overlap. The seed: the latter need fewer drops (by estimate
0.2 to 0.39), since tuples go early, and drop rates hardly change with the size. See `window_parameters`.

Where seed and estimate part (its tumbling windows need more drops than estimated, for operators behind the aggregate
are scheduled seldom) there is no such thing here: a batch is scheduled as a whole. Work that neither side of the
estimate has (merging slices into windows that are then dropped) is measured apart, as part of `other_share`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jettison.experiments.harness import Result, Say
from jettison.experiments.windows.window_parameters import Point, common_checks, common_metrics, points
from jettison.spark.run.session import local_session

SIZES_S = (10, 25, 50, 100)
_EXCESS = 0.25
_SPREAD = 0.1
"""How far drop rates of one kind may be apart and still count as hardly changing."""
_KINDS = {"slide 1 s": "tab:orange", "tumbling": "tab:blue"}


def run(*, quick: bool, say: Say) -> Result:
    spark = local_session()
    sizes_s = SIZES_S[:1] if quick else SIZES_S
    with tempfile.TemporaryDirectory(prefix="jettison-fig-4-11-") as name:
        windows = [(size, slide) for size in sizes_s for slide in (1, size)]
        found = points(spark, windows, Path(name), say, quick=quick)
    kinds = {
        "slide 1 s": [each for each in found if each.slide_s == 1],
        "tumbling": [each for each in found if each.slide_s == each.size_s],
    }
    rates = {kind: [each.drop_rate(_EXCESS) for each in those] for kind, those in kinds.items()}
    spread = {kind: max(each) - min(each) for kind, each in rates.items()}
    metrics = {
        f"{kind.split()[0]}_drop_rate_{each.size_s}": round(each.drop_rate(_EXCESS), 3)
        for kind, those in kinds.items()
        for each in those
    }
    metrics |= {f"{kind.split()[0]}_spread": round(value, 3) for kind, value in spread.items()}
    checks = {
        "tumbling windows need no more drops than those that slide by 1 s, at any size": all(
            tumbling <= sliding for sliding, tumbling in zip(*rates.values(), strict=True)
        ),
        f"drop rates change by no more than {_SPREAD:g} with the size": max(spread.values()) <= _SPREAD,
    }
    return Result(
        "fig-4-11",
        {**metrics, **common_metrics(found)},
        {**checks, **common_checks(found)},
        [each.row() for each in found],
        lambda figure: _draw(figure, kinds),
    )


def _draw(figure: Any, kinds: Mapping[str, Sequence[Point]]) -> None:
    left, right = figure.subplots(1, 2)
    for at, (kind, found) in enumerate(kinds.items()):
        color, sizes = _KINDS[kind], [each.size_s for each in found]
        places = [number + 0.4 * at - 0.2 for number in range(len(found))]
        left.plot(sizes, [each.early_share for each in found], "x", color=color, label=f"{kind}: counted on Spark")
        left.plot(sizes, [each.estimated_early_share for each in found], color=color, label=f"{kind}: estimate")
        right.bar(places, [each.drop_rate(_EXCESS) for each in found], 0.38, color=color, label=f"{kind}: measured")
        estimates = [each.estimated_drop_rate(_EXCESS) for each in found]
        right.plot(places, estimates, ":", color="black", marker="_", label="estimate" if at == 0 else None)
    sizes = [each.size_s for each in kinds["slide 1 s"]]
    thesis = [each.early_share_of_thesis for each in kinds["slide 1 s"]]
    left.plot(sizes, thesis, ":", color=_KINDS["slide 1 s"], label="slide 1 s: thesis 4.9.2 as printed")
    left.set_xlabel("window size (s)")
    left.set_ylabel("tuples dropped early (share of all), 10 of 11 windows dropped")
    left.set_ylim(-0.02, 1)
    left.legend(fontsize=8)
    right.set_xticks(range(len(sizes)), [str(size) for size in sizes])
    right.set_xlabel("window size (s)")
    right.set_ylabel("drop rate (share of windows) at 25 % excess load")
    right.set_ylim(0, 1.0)
    right.legend(fontsize=8)
    most_other = max(each.other_share for found in kinds.values() for each in found)
    figure.suptitle(
        "Thesis figure 4.11: windows that do not overlap need fewer drops, at any size; the size matters little",
        fontsize=11,
    )
    figure.supxlabel(
        "Estimate (4.9.2) from measured shares of work before and behind the aggregate. It knows nothing of work in "
        f"between\n(slices, and merging them into windows), which is {most_other:.1%} at most.",
        fontsize=8,
    )
