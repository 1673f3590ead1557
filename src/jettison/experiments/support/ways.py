"""Four ways through one overload, compared: no shedding, a cap on what a batch reads, shedding by chance and by value.

The measure is worth delivered in time (`statistics.worth`): rows that arrive per second x each output's priority x
utility of the share that arrives within three triggers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.table import Table

from jettison.network.graph import Graph
from jettison.statistics.latency import LatencyHistogram
from jettison.statistics.samples import BatchSample
from jettison.statistics.worth import DEADLINE_TRIGGERS, shares_in_time, worth_by_rows_per_s, worth_per_s
from jettison.synthetic.rates import Rate

NONE, CAPPED, CHANCE, VALUE = "no shedding", "batches capped", "shed by chance", "shed by value"
_COLOURS = {NONE: "tab:red", CAPPED: "tab:orange", CHANCE: "tab:blue", VALUE: "tab:green"}


@dataclass(frozen=True)
class Overload:
    """What all ways go through: a network, arrivals, and what the machine bears."""

    graph: Graph
    rate: Rate
    seconds: float
    capacity_rows_per_s: float
    trigger_ms: float
    passing: Mapping[str, float]
    """By output, how many rows it gets for each row that arrives, nothing shed."""
    dear: float
    """How many of the rows that arrive are worth most."""

    @property
    def deadline_ms(self) -> float:
        return DEADLINE_TRIGGERS * self.trigger_ms

    @property
    def arrived(self) -> int:
        return self.rate.rows_until(self.seconds)

    def worth_at(self, rows_per_s: float, shares: Mapping[str, float]) -> float:
        """Worth per second when so many rows arrive, and of each output this share comes in time."""
        return worth_per_s(self.graph, shares, rows_per_s)

    def worth_by_rows_at(self, rows_per_s: float, shares: Mapping[str, float]) -> float:
        """The same, outputs weighed by the rows offered to them."""
        offered = {name: share * rows_per_s for name, share in self.passing.items()}
        return worth_by_rows_per_s(self.graph, shares, offered)


@dataclass(frozen=True)
class Way:
    """One way through, as measured. `dear_share`: of the rows that are worth most, how many were delivered."""

    name: str
    samples: Sequence[BatchSample]
    delivered: Mapping[str, float]
    dear_share: float

    def age_ms(self, share: float) -> float | None:
        """The age that this share of all results stay below when they are written."""
        seen = LatencyHistogram()
        for sample in self.samples:
            for output in sample.outputs.values():
                if output.latency_ms is not None and output.rows:
                    seen.add(output.rows, output.latency_ms)
        return seen.quantile(share)

    def worth(self, overload: Overload) -> float:
        """Worth per second over the whole run."""
        shares = shares_in_time(overload.graph, self.samples, overload.arrived, overload.deadline_ms)
        return overload.worth_at(overload.arrived / overload.seconds, shares)

    def timeline(self, overload: Overload) -> list[dict[str, Any]]:
        """One row per batch: when its results were written, how old they were, and what they were worth per second."""
        first_ms = self.samples[0].started_ms if self.samples else 0.0
        rows = []
        for sample in self.samples:
            read = sum(sample.rows_in.values()) + sum(sample.skipped.values())
            shares = shares_in_time(overload.graph, [sample], read, overload.deadline_ms)
            rows_per_s = 1000 * read / max(1.0, sample.interval_ms)
            ages = [output.latency_ms[6] for output in sample.outputs.values() if output.latency_ms and output.rows]
            rows.append(
                {
                    "way": self.name,
                    "batch": sample.batch,
                    "second": round((sample.started_ms + sample.duration_ms - first_ms) / 1000, 2),
                    "rows": read,
                    "batch_ms": round(sample.duration_ms),
                    "p99_age_s": round(max(ages) / 1000, 3) if ages else "",
                    "worth_per_s": round(overload.worth_at(rows_per_s, shares)),
                    "worth_by_rows_per_s": round(overload.worth_by_rows_at(rows_per_s, shares)),
                }
            )
        return rows


def compared(ways: Sequence[Way], overload: Overload) -> Table:
    """One line for each way."""
    at_capacity = overload.worth_at(overload.capacity_rows_per_s, dict.fromkeys(overload.passing, 1.0))
    caption = (
        f"worth in time: rows that arrive x priority x utility of the share delivered within "
        f"{overload.deadline_ms / 1000:g} s; 100 % is what this machine delivers at its capacity"
    )
    shown = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), caption=caption, caption_justify="left")
    shown.add_column("")
    outputs = [output.name for output in overload.graph.outputs]
    for heading in ("worth in time", "age p50", "p99", *outputs, "dearest"):
        shown.add_column(heading, justify="right")
    for way in ways:
        ages = ["-" if age is None else f"{age / 1000:.1f} s" for age in (way.age_ms(0.5), way.age_ms(0.99))]
        shares = [f"{way.delivered[name]:.0%}" for name in outputs]
        shown.add_row(way.name, f"{way.worth(overload) / at_capacity:.0%}", *ages, *shares, f"{way.dear_share:.0%}")
    return shown


def verdict(ways: Sequence[Way], overload: Overload) -> str:
    """What was won, in numbers.

    Shedding by value over the better of the two ways without shedding.
    """
    by_name = {way.name: way for way in ways}
    best = max((by_name[NONE], by_name[CAPPED]), key=lambda way: way.worth(overload))
    ours = by_name[VALUE]
    mine, theirs = ours.worth(overload), best.worth(overload)
    times = f"{mine / theirs:.1f} times the worth" if theirs > 0 else "all of the worth"
    old_s, fresh_s = (best.age_ms(0.99) or 0.0) / 1000, (ours.age_ms(0.99) or 0.0) / 1000
    return (
        f"Shedding by value delivered {times} of the best run without shedding ({best.name}), with results at most "
        f"{fresh_s:.1f} s old instead of {old_s:.1f} s (p99), and {ours.dear_share:.0%} of the dearest trips "
        f"instead of {best.dear_share:.0%}."
    )


def draw(figure: Any, ways: Sequence[Way], overload: Overload) -> None:
    """Arrivals against capacity above, the age of results below it, worth per second at the bottom."""
    above, middle, below = figure.subplots(3, 1, sharex=True, height_ratios=(1, 2, 2))
    seconds = [0.1 * step for step in range(int(10 * overload.seconds) + 1)]
    arrivals = [10 * (overload.rate.rows_until(at + 0.1) - overload.rate.rows_until(at)) for at in seconds]
    above.fill_between(seconds, arrivals, color="lightgrey", label="rows that arrive per second")
    above.axhline(overload.capacity_rows_per_s, color="black", linewidth=1, label="what this machine can process")
    above.legend(loc="upper left", fontsize=8)
    above.set_ylabel("rows/s")
    for way in ways:
        rows = [row for row in way.timeline(overload) if row["p99_age_s"] != ""]
        at = [row["second"] for row in rows]
        middle.plot(at, [max(0.05, row["p99_age_s"]) for row in rows], marker=".", color=_COLOURS[way.name])
        below.step(at, [row["worth_per_s"] for row in rows], where="mid", color=_COLOURS[way.name], label=way.name)
    middle.axhline(overload.deadline_ms / 1000, color="grey", linestyle="--", linewidth=1)
    middle.annotate("deadline", (0, overload.deadline_ms / 1000), fontsize=8, color="grey", va="bottom")
    middle.set_yscale("log")
    middle.set_ylabel("age of results (s)")
    below.set_ylabel("worth in time per s")
    below.set_ylim(bottom=0)
    below.set_xlabel("seconds")
    below.legend(loc="upper left", fontsize=8)
    figure.suptitle("Three times what the machine can process: the age of results, and what they are worth")
