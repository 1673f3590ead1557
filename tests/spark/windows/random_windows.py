"""Random networks of nested windows over random rows, and what they give when nothing is shed: plain Python, no Spark.

A second opinion for tests that kill a run: rows come late, out of order, several at one time, with windows that stay
empty. Rows that come when their window has closed are out of it, shed or not.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jettison as jt
from jettison.network.windows.time_windows import WindowSpec

S = 1_000_000
TRIPS = "trip long, at timestamp, zone int, fare double"
Row = tuple[int, int, int | None, float | None]
"""A trip: its number, event time in microseconds, zone, fare."""

Result = tuple[tuple[Any, ...], int]
"""A group and the start of one of its windows, in microseconds."""


@dataclass(frozen=True)
class Stage:
    """An aggregate with an output: `n` rows and a `total`, per zone or of all, of what is above `over`.

    Of trips, `n` counts them and `total` adds fares up. Of another stage's results, they are the sum of `n` and the
    highest `total`. Zone 1 has a gap of its own where `own_gap` says so.
    """

    name: str
    of: str
    over: int
    window: WindowSpec
    gap: int
    own_gap: int | None = None

    @property
    def output(self) -> str:
        return f"{self.name}_out"

    @property
    def qos(self) -> jt.QoS:
        return jt.QoS(gap=self.gap, gaps=None if self.own_gap is None else {"zone": {1: self.own_gap}})

    def gap_of(self, group: tuple[Any, ...]) -> int:
        return self.gap if self.own_gap is None or group != (1,) else self.own_gap


def random_stages(draw: random.Random) -> list[Stage]:
    """Two aggregates of trips, which may share slices, and one or two in a row of their results."""

    def window(least_s: int, by: tuple[str, ...], delay_s: int = 0) -> WindowSpec:
        slide_s = draw.choice((1, 2)) * least_s
        return WindowSpec((slide_s * draw.choice((1, 2, 3))) * S, slide_s * S, by, delay_s * S)

    def gaps(spec: WindowSpec) -> tuple[int, int | None]:
        gap = draw.randint(0, 1) + 2 * (spec.size_us // spec.slide_us)
        return gap, draw.choice((None, 0, gap // 2)) if spec.by else None

    stages: list[Stage] = []
    over, least_s = draw.choice((0, 10)), draw.choice((1, 2))
    for name in ("a", "b"):
        spec = window(least_s, ("zone",), draw.randint(60, 160))
        stages.append(Stage(name, "trips", over, spec, *gaps(spec)))
    by = draw.choice(((), ("zone",)))
    for name in "cd"[: draw.randint(1, 2)]:
        above = stages[draw.randrange(2)] if name == "c" else stages[-1]
        spec = window(draw.choice((1, 2)) * above.window.slide_us // S, by)
        stages.append(Stage(name, above.name, draw.choice((0, 1)), spec, *gaps(spec)))
    return stages


def network_of(stages: Sequence[Stage]) -> jt.Network:
    net = jt.Network("killed")
    streams = {"trips": net.source("trips", TRIPS, event_time="at", id=["trip"])}
    filtered: dict[tuple[str, int], jt.Stream] = {}
    for stage in stages:
        column, whole = ("fare", "count(*)") if stage.of == "trips" else ("n", "sum(n)")
        key = (stage.of, stage.over)
        if key not in filtered:  # one filter for both, so that they may share slices
            filtered[key] = streams[stage.of].where(f"{column} > {stage.over}", name=f"above_{stage.of}_{stage.over}")
        total = "sum(fare)" if stage.of == "trips" else "max(total)"
        size, slide, delay = (f"{each // S} seconds" for each in _times(stage.window))
        windows = filtered[key].window(size, slide=slide, by=stage.window.by, delay=delay)
        streams[stage.name] = windows.agg(n=whole, total=total, name=stage.name)
        streams[stage.name].output(stage.output, qos=stage.qos)
    return net


def _times(window: WindowSpec) -> tuple[int, int, int]:
    return window.size_us, window.slide_us, window.delay_us


def random_batches(draw: random.Random, batches: int, per_batch: int, step_s: float) -> list[list[Row]]:
    """Event time stands still, runs or jumps from batch to batch; the rows of one lie before its end."""
    made: list[list[Row]] = []
    end_s = 1_000.0
    for batch in range(batches):
        end_s += step_s * draw.choice((0, 0.5, 1, 1, 1, 1.5, 2)) + (8 * step_s if draw.random() < 0.04 else 0)
        rows: list[Row] = []
        for number in range(per_batch):
            back_s = draw.uniform(0, 2 * step_s) if draw.random() < 0.95 else draw.uniform(0, 12 * step_s)
            second = end_s - back_s
            at = round(second) * S if draw.random() < 0.3 else round(second * S)
            zone = None if draw.random() < 0.1 else draw.randrange(3)
            fare = None if draw.random() < 0.1 else float(draw.randrange(50))
            rows.append((batch * per_batch + number, at, zone, fare))
        made.append(rows)
    return made


@dataclass(frozen=True)
class Unshed:
    """What a stage gives: by group and window, the batch that closes it, `n` and `total`."""

    stage: Stage
    windows: dict[Result, tuple[int, int, float]]
    marks: list[int | None]
    """The watermark of every batch."""


def unshed(stages: Sequence[Stage], batches: Sequence[Sequence[Row]]) -> dict[str, Unshed]:
    """All windows that close in these batches."""
    found: dict[str, Unshed] = {}
    newest: list[int | None] = [None]
    for batch in batches[:-1]:
        newest.append(max([row[1] for row in batch] + [each for each in newest[-1:] if each is not None]))
    for stage in stages:
        if stage.of == "trips":
            marks = [None if each is None else each - stage.window.delay_us for each in newest]
            items = [
                (number, (zone,), at, 1, fare)
                for number, batch in enumerate(batches)
                for _, at, zone, fare in batch
                if fare is not None and fare > stage.over
            ]
        else:
            above = found[stage.of]
            opened = above.stage.window.first_open_us
            marks = [None if each is None else opened(each) for each in above.marks]
            items = [
                (number - 1, group, start, n, total)  # what closes in a batch is still in time for it
                for (group, start), (number, n, total) in above.windows.items()
                if n > stage.over
            ]
        found[stage.name] = _closed(stage, items, marks)
    return found


def _closed(stage: Stage, items: Sequence[tuple[int, Any, int, int, float]], marks: list[int | None]) -> Unshed:
    size, slide = stage.window.size_us, stage.window.slide_us
    inside: dict[Result, list[tuple[int, float]]] = defaultdict(list)
    for number, group, at, n, value in items:
        mark = marks[number] if number >= 0 else None
        for index in range((at - size) // slide + 1, at // slide + 1):
            if mark is None or index * slide + size > mark:
                inside[group if stage.window.by else (), index * slide].append((n, value))
    windows = {}
    for (group, start), values in inside.items():
        closing = next((b for b, mark in enumerate(marks) if mark is not None and start + size <= mark), None)
        if closing is not None:
            total = sum(value for _, value in values) if stage.of == "trips" else max(value for _, value in values)
            windows[group, start] = (closing, sum(n for n, _ in values), total)
    return Unshed(stage, windows, marks)
