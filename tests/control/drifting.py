"""A control loop on simulated rows: whatever values come, what passes its drops is counted row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from jettison.control.loop import Controller, Settings
from jettison.network import Graph, Network, QoS, Value
from jettison.network.columns.value_tracks import Track
from jettison.plan.delivered import counted_shares
from jettison.plan.drops.kind import Drop
from jettison.plan.drops.semantic import Semantic
from jettison.plan.plan import Plan
from jettison.statistics.profile import Profile
from jettison.statistics.samples import BatchSample, OutputSample, ValueSample

Values = npt.NDArray[np.float64]

PLANNED = 0.26
BUDGET_US = 900_000.0
RISING = Value("x", [(0, 10_000, 0.0, 1.0)], otherwise=0.3)


def plain(value: Value = RISING) -> Network:
    """A source and a valued output."""
    net = Network("plain")
    net.source("s", "id long, x double", id=["id"]).output("o", qos=QoS(value=value))
    return net


def split(value: Value = RISING) -> Network:
    """A computed value, two branches, and a filter on one of them that removes the dearest rows."""
    net = Network("split")
    wide = net.source("s", "id long, a double", id=["id"]).with_columns({"x": "a + 0"}, name="wide")
    wide.where("x IS NULL OR x < 9000 OR x > 10000", name="low").output("o", qos=QoS(value=value))
    wide.select("id", name="ids").output("log")
    return net


def through(values: Values) -> npt.NDArray[np.bool_]:
    """Which rows that filter passes."""
    return ~((values >= 9_000) & (values <= 10_000))


@dataclass
class Loop:
    """Batches of rows whose x is given; costs are such that `PLANNED` of `rows` rows fit."""

    rows: int = 10_000
    shedder: str = "semantic"
    looks: bool = True
    """Whether values are sampled before drops by value."""
    value: Value = RISING
    profile: Profile | None = None
    filtered: bool = False
    """Whether values are computed behind the source, and judged behind a split, above a filter on them."""
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))
    planned: list[float] = field(default_factory=list)
    counted: list[float] = field(default_factory=list)
    plans: list[Plan] = field(default_factory=list)
    samples: list[BatchSample] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.graph: Graph = (split if self.filtered else plain)(self.value).graph
        self._arc = "wide>low" if self.filtered else "s"
        self.track: Track = self.graph.tracks.by_output["o"]
        given = self.profile or Profile({"low" if self.filtered else "o": BUDGET_US / PLANNED / self.rows}, {})
        settings = Settings(trigger_ms=1000.0, learn=False, shedder=self.shedder)
        self.controller = Controller(self.graph, settings, given)

    def batch(self, values: Values) -> None:
        number = len(self.plans)
        rows = {"s": len(values)}
        plan = self.controller.decide(rows, 1000.0 * number)
        drop = plan.drops.get(self._arc)
        kept = values[self.random.random(len(values)) < passing(self.track, drop, values)]
        looked = self.looks and (isinstance(drop, Semantic) or self.filtered)
        out = kept[through(kept)] if self.filtered else kept
        behind = {"o.x": sampled(out[self.random.random(len(out)) < 1 / 2])}
        if not self.filtered:
            behind["s.x"] = sampled(kept[self.random.random(len(kept)) < 1 / 16])
        sample = BatchSample(
            number,
            1000.0 * number,
            1000.0,
            900.0,
            rows,
            arcs={"s": (len(values), len(values)), self._arc: (len(values), len(kept))},
            outputs={"o": OutputSample(len(out))},
            values={name: each for name, each in behind.items() if each.rows},
            before={self._arc: sampled(values)} if looked and drop is not None else {},
        )
        delivered, worth = counted_shares(
            self.graph, self.controller.profile, plan, sample, self.controller.costs.passes_by_value
        )
        sample = replace(sample, delivered=delivered, worth=worth)
        self.controller.record(sample)
        self.plans.append(plan)
        self.samples.append(sample)
        self.planned.append(plan.delivered.get("o", 1.0))
        full = int(through(values).sum()) if self.filtered else len(values)
        self.counted.append(len(out) / full if full else 1.0)

    def gaps(self) -> list[float]:
        return [abs(one - other) for one, other in zip(self.planned, self.counted, strict=True)]

    def empty_runs(self) -> int:
        empty = [kept == 0 and share > 0 for share, kept in zip(self.planned, self.counted, strict=True)]
        return sum(one and other for one, other in pairwise(empty))


def cells(track: Track, values: Values) -> npt.NDArray[np.intp]:
    """The cell of each value."""
    inside = (values >= track.bounds[0]) & (values <= track.bounds[-1])  # NaN is not
    found = np.clip(np.searchsorted(track.bounds, values, side="right") - 1, 0, track.cells - 2)
    return np.where(inside, found, track.cells - 1)


def passing(track: Track, drop: Drop | None, values: Values) -> Values:
    """The chance of each row to pass a drop."""
    if drop is None:
        return np.ones(len(values))
    if isinstance(drop, Semantic):
        return np.array(drop.keeps)[cells(track, values)]
    return np.full(len(values), drop.keep)


def sampled(values: Values) -> ValueSample:
    """Quantiles, as Spark gives them."""
    usable = values[~np.isnan(values)]
    points = np.quantile(usable, (np.arange(200) + 0.5) / 200, method="inverted_cdf") if len(usable) else []
    return ValueSample(len(values), tuple(float(point) for point in points), len(values) - len(usable))


def drawn(random: np.random.Generator, shape: Sequence[tuple[float, float, float]], rows: int) -> Values:
    """Rows of a mixture of ranges (from, to, share); a range that begins with NaN is of nulls."""
    shares = np.array([share for *_, share in shape])
    which = random.choice(len(shape), size=rows, p=shares / shares.sum())
    low, high = (np.array([row[at] for row in shape])[which] for at in (0, 1))
    found: Values = low + (high - low) * random.random(rows)
    return found
