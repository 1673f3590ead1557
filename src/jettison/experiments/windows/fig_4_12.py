"""The effect of the window's slide on a window drop, for windows of 100 s (figure 4.12).

With a short slide there are many results to save behind the aggregate and no tuples before it; with a long one it is
the other way round. The seed: the drop rate that is asked for first rises with the slide, then falls, from where
floor(size / slide) is no more than the gap of 10. See `window_parameters`.

The estimate as printed in the thesis says less than is saved wherever windows overlap: it divides the tuples that go by
the length of the dropped windows laid over each other, and so counts ticks twice that the batch shares with its
neighbours (`plan.windows.savings` has the exact one). Merging slices into windows that are then dropped grows with
size / slide and is not saved, as results are judged behind it; but it is little (`other_share`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from jettison.experiments.harness import Result, Say
from jettison.experiments.windows.window_parameters import GAP, SHARE, Point, common_checks, common_metrics, points
from jettison.spark.run.session import local_session

SIZE_S = 100
SLIDES_S = (1, 10, 20, 50, 100)
_EXCESS = tuple(step / 20 for step in range(1, 41))


def run(*, quick: bool, say: Say) -> Result:
    spark = local_session()
    slides_s = (10, 100) if quick else SLIDES_S
    with tempfile.TemporaryDirectory(prefix="jettison-fig-4-12-") as name:
        found = points(spark, [(SIZE_S, slide) for slide in slides_s], Path(name), say, quick=quick)
    metrics = {f"early_share_{each.slide_s}": round(each.early_share, 4) for each in found}
    metrics |= {f"saved_share_{each.slide_s}": round(each.saved_share, 4) for each in found}
    metrics |= {f"drop_rate_{each.slide_s}": round(each.drop_rate(0.25), 3) for each in found}
    falling = [each for each in found if each.size_s // each.slide_s <= GAP]
    checks = {
        "the longer the slide the more tuples go early, none while size / slide is above the gap": all(
            a.early_share < b.early_share for a, b in pairwise(falling)
        )
        and all(each.early_share == 0.0 for each in found if each not in falling),
        "the drop rate first rises with the slide, then falls": all(
            a.saved_share < b.saved_share for a, b in pairwise(falling)
        )
        and all(each.saved_share > falling[0].saved_share for each in found if each not in falling),
        "no fewer tuples go early than the thesis estimates": all(
            each.early_share >= each.early_share_of_thesis - 0.001 for each in found
        ),
    }
    return Result(
        "fig-4-12",
        {**metrics, **common_metrics(found)},
        {**checks, **common_checks(found)},
        [each.row() for each in found],
        lambda figure: _draw(figure, found),
    )


def _draw(figure: Any, found: Sequence[Point]) -> None:
    left, right = figure.subplots(1, 2)
    slides = [each.slide_s for each in found]
    series = (
        ("tuples dropped early: counted on Spark", "x", "tab:blue", [each.early_share for each in found]),
        ("tuples: estimate", "-", "tab:blue", [each.estimated_early_share for each in found]),
        ("tuples: thesis 4.9.2 as printed", ":", "tab:blue", [each.early_share_of_thesis for each in found]),
        ("work saved: measured on Spark", "o", "tab:red", [each.saved_share for each in found]),
        ("work: estimate", "--", "tab:red", [each.estimated_saved_share for each in found]),
    )
    for label, style, color, values in series:
        left.plot(slides, values, style, color=color, label=label)
    left.set_xlabel(f"slide (s) of windows of {SIZE_S} s")
    left.set_ylabel(f"share of all, {SHARE:.0%} of windows dropped")
    left.set_ylim(-0.02, 1)
    left.legend(fontsize=8)
    percent = [100 * excess for excess in _EXCESS]
    for number, each in enumerate(found):
        right.plot(
            percent, [each.drop_rate(excess) for excess in _EXCESS], color=f"C{number}", label=f"{each.slide_s} s"
        )
        right.plot(percent, [each.estimated_drop_rate(excess) for excess in _EXCESS], "--", color=f"C{number}")
    right.set_xlabel("excess load (% of capacity)")
    right.set_ylabel("drop rate (share of windows)")
    right.set_ylim(0, 1.05)
    right.legend(title="slide (dashed: estimate)", fontsize=8)
    figure.suptitle(
        "Thesis figure 4.12: a window drop is at its best where windows overlap little; in between it saves least",
        fontsize=11,
    )
    figure.supxlabel(
        "Estimate (4.9.2) from measured shares of work before and behind the aggregate. The one printed in the thesis "
        "counts ticks twice that dropped\nwindows share with kept ones. Neither knows of work in between (slices, and "
        f"merging them), which is {max(each.other_share for each in found):.1%} at most.",
        fontsize=8,
    )
