"""The picture: throughput without overload, and the age of results at three times the capacity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jettison.experiments.peers.overload import TIMES, Length

if TYPE_CHECKING:
    from jettison.experiments.peers.found import Found

_COLOURS = {"jettison": "tab:green", "spark": "tab:red", "flink": "tab:blue"}
_LEAST_AGE_S = 0.05


def draw(figure: Any, found: Found, length: Length) -> None:
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.6))
    _bars(left, found)
    _ages(right, found, length)
    missing = [name for name in _COLOURS if name not in found.overloads]
    note = f" ({', '.join(missing)} not measured)" if missing else ""
    figure.suptitle(f"Three outputs of one stream on Jettison, native Structured Streaming and Flink SQL{note}")


def _bars(axes: Any, found: Found) -> None:
    kinds = list(found.compared)
    engines = [name for name in _COLOURS if any(name == engine for engine, _ in found.rates)]
    width = 0.8 / max(1, len(engines))
    for place, engine in enumerate(engines):
        at = [number + width * (place - (len(engines) - 1) / 2) for number in range(len(kinds))]
        heights = [found.median_rows_per_s(engine, kind) or 0.0 for kind in kinds]
        axes.bar(at, heights, width, label=engine, color=_COLOURS[engine])
    axes.set_xticks(range(len(kinds)), kinds)
    axes.set_ylabel("throughput (rows/s)")
    axes.set_title("without overload, same input and results", fontsize=10)
    axes.legend()


def _ages(axes: Any, found: Found, length: Length) -> None:
    for engine, each in found.overloads.items():
        oldest: dict[int, float] = {}
        for row in each.table:
            second = int(row["second"])
            oldest[second] = max(oldest.get(second, _LEAST_AGE_S), row["p99_age_s"])
        label = f"{engine}: {each.worth_share:.0%} of its worth at capacity"
        axes.plot(list(oldest), list(oldest.values()), marker=".", color=_COLOURS[engine], label=label)
    axes.axhline(length.deadline_s, color="grey", linestyle="--", linewidth=1, label="deadline")
    axes.set_yscale("log")
    axes.set_xlabel("time since the overload began (s)")
    axes.set_ylabel("age of results when delivered, p99 (s)")
    axes.set_title(f"{TIMES:g} times each engine's own capacity", fontsize=10)
    axes.legend(fontsize=8)
