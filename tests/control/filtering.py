"""A control loop above a filter that has to do with the value: what it passes can be counted at the output alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
from tests.control.drifting import passing, sampled

from jettison.control.loop import Controller, Settings
from jettison.network import Network, QoS, Value
from jettison.plan.delivered import counted_shares
from jettison.plan.drops.semantic import Semantic
from jettison.plan.plan import Plan
from jettison.statistics.profile import Profile
from jettison.statistics.samples import BatchSample, OutputSample

Values = npt.NDArray[np.float64]
Passes = Callable[[Values], npt.NDArray[np.bool_]]


@dataclass
class Filtering:
    """Batches of rows of which a filter on another column passes some; nothing is learned but what is counted."""

    profile: Profile
    trigger_ms: float = 100.0
    shedder: str = "semantic"
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))
    plans: list[Plan] = field(default_factory=list)
    planned: list[float] = field(default_factory=list)
    counted: list[float] = field(default_factory=list)
    told: list[float] = field(default_factory=list)
    told_worth: list[float] = field(default_factory=list)
    said: list[float] = field(default_factory=list)
    """`_kept`: what results say of themselves before they are written."""
    rows: list[int] = field(default_factory=list)
    full: list[int] = field(default_factory=list)
    worth: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        net = Network("filtering")
        self.value = Value("x", [(0, 100, 0.0, 1.0)])
        source = net.source("s", "id long, x double, g int", id=["id"])
        source.where("g = 1", name="w").output("out", qos=QoS(value=self.value))
        self.graph = net.graph
        self.track = self.graph.tracks.by_output["out"]
        settings = Settings(trigger_ms=self.trigger_ms, learn=False, shedder=self.shedder)
        self.controller = Controller(self.graph, settings, self.profile)

    def batch(self, values: Values, passes: Passes) -> None:
        number, costs = len(self.plans), self.controller.costs
        plan = self.controller.decide({"s": len(values)}, self.trigger_ms * number)
        arcs: dict[str, tuple[int, int]] = {}
        behind = self._dropped("s", plan, values, arcs)
        filtered = self._dropped("s>w", plan, behind, arcs)
        filtered = filtered[passes(filtered)]
        out = self._dropped("w>out", plan, filtered, arcs)
        before = {"s": values, "s>w": behind, "w>out": filtered}
        looked = {arc: sampled(rows) for arc, rows in before.items() if isinstance(plan.drops.get(arc), Semantic)}
        seen = {"s.x": behind, "out.x": out}  # of so few rows all are looked at
        sample = BatchSample(
            number,
            self.trigger_ms * number,
            self.trigger_ms,
            0.9 * self.trigger_ms,
            {"s": len(values)},
            arcs=arcs,
            outputs={"out": OutputSample(len(out))},
            values={name: sampled(rows) for name, rows in seen.items() if len(rows)},
            before={arc: each for arc, each in looked.items() if each.rows},
        )
        unwritten = replace(sample, outputs={}, values={})
        early, _ = counted_shares(self.graph, costs.profile, plan, unwritten, costs.passes_by_value)
        delivered, worth = counted_shares(self.graph, costs.profile, plan, sample, costs.passes_by_value)
        self.controller.record(replace(sample, delivered=delivered, worth=worth))
        self._note(plan, values[passes(values)], out)
        self.said.append(early.get("out", 1.0))
        self.told.append(delivered.get("out", 1.0))
        self.told_worth.append(worth.get("out", self.told[-1]))

    def _dropped(self, arc: str, plan: Plan, values: Values, arcs: dict[str, tuple[int, int]]) -> Values:
        drop = plan.drops.get(arc)
        if drop is None:
            return values
        kept = values[self.random.random(len(values)) < passing(self.track, drop, values)]
        arcs[arc] = (len(values), len(kept))
        return kept

    def _note(self, plan: Plan, full: Values, out: Values) -> None:
        self.plans.append(plan)
        self.planned.append(plan.delivered.get("out", 1.0))
        self.counted.append(len(out) / len(full) if len(full) else 1.0)
        self.rows.append(len(out))
        self.full.append(len(full))
        self.worth.append(float(out.sum() / full.sum()) if len(full) else 1.0)
