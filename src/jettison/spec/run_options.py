"""The options in a file's `run` section, in the groups of `jt.start`.

    shedding:    true  |  dry-run  |  {mode: on, shedder: random, headroom: 0.8, catch_up: newest, stale: 1 minute,
                  stw: 10 seconds}
    costs:       {profile: true, learn: false, shared: [paid]}
    checkpoint:  out/checkpoint  |  {path: out/checkpoint, retention: 30 days}

The shedder las has options of its own: `shedding: {las: {tau: 2 seconds, order: worth, least_keep: 0.05}}`.
`costs: {profile: true}` takes the costs of the file's `profile` section; without it a run measures them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, model_validator

from jettison.errors import StartError
from jettison.options.checkpoint import Checkpoint
from jettison.options.costs import Costs
from jettison.options.shedding import Shedding
from jettison.plan.shedders.las import LEARNING, Las
from jettison.plan.shedders.registry import LAS
from jettison.spec.models import Strict
from jettison.statistics.profile import Profile
from jettison.statistics.sketches.cost_learner import CostLearning


class LearningSpec(Strict):
    """See `jettison.statistics.sketches.cost_learner.CostLearning`."""

    window: int = LEARNING.window
    tolerance: float = LEARNING.tolerance
    epsilon: float = LEARNING.epsilon
    delta: float = LEARNING.delta


class LasSpec(Strict):
    """See `jettison.plan.shedders.las.Las`."""

    tau: str | None = None
    check: str = "average"
    order: str = "arrival"
    least_keep: float = 0.0
    learning: LearningSpec = LearningSpec()

    def shedder(self) -> Las:
        """The shedder, its values checked."""
        learning = CostLearning(**self.learning.model_dump())
        return Las(self.tau, check=self.check, order=self.order, least_keep=self.least_keep, learning=learning)


class SheddingSpec(Strict):
    """See `jettison.options.shedding.Shedding`."""

    mode: Literal["on", "off", "dry-run"] = "on"
    shedder: str = "semantic"
    las: LasSpec | None = None
    headroom: float = 0.9
    catch_up: Literal["shed", "newest", "all"] = "shed"
    stale: str | None = None
    stw: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _short(cls, given: Any) -> Any:
        if isinstance(given, Mapping | cls):
            return given
        return {"mode": {True: "on", False: "off"}[given] if isinstance(given, bool) else given}

    def planner(self) -> str | Las:
        """The name of the shedder, or the shedder itself where it has options."""
        if self.las is None:
            return self.shedder
        if self.shedder != LAS and "shedder" in self.model_fields_set:
            raise StartError(
                f"run.shedding has options of las, and its shedder is {self.shedder!r}: write shedder: las, or leave "
                f"one of them out."
            )
        return self.las.shedder()

    def options(self) -> Shedding:
        """The group, its values checked."""
        try:
            return Shedding(self.mode, self.planner(), self.headroom, self.catch_up, self.stale, self.stw)
        except StartError as error:
            raise StartError(str(error).replace("jt.Shedding: ", "run.shedding.")) from None


class CostsSpec(Strict):
    """See `jettison.options.costs.Costs`; `profile: true` takes that of the file."""

    profile: bool = False
    learn: bool = True
    shared: tuple[str, ...] | None = None

    def options(self, profile: Profile | None) -> Costs:
        """The group; `profile` is that of the file."""
        if self.profile and profile is None:
            raise StartError("run.costs.profile is true, and the file has no profile: add one, or leave this out.")
        return Costs(profile if self.profile else None, self.learn, self.shared)


class CheckpointSpec(Strict):
    """See `jettison.options.checkpoint.Checkpoint`."""

    path: str | None = None
    retention: str | int | None = "7 days"

    @model_validator(mode="before")
    @classmethod
    def _short(cls, given: Any) -> Any:
        return given if isinstance(given, Mapping | cls) else {"path": given}

    def options(self) -> Checkpoint:
        """The group, its values checked."""
        try:
            return Checkpoint(self.path, self.retention)
        except StartError as error:
            raise StartError(f"run.checkpoint: {error}") from None


class RunSpec(Strict):
    """Where data comes from and goes to, how fast, and what becomes of an overload."""

    trigger: str = "1 second"
    checkpoint: CheckpointSpec = CheckpointSpec()
    shedding: SheddingSpec = SheddingSpec()
    costs: CostsSpec = CostsSpec()
    sources: dict[str, dict[str, Any]] = Field(default_factory=dict)
    sinks: dict[str, dict[str, Any]] = Field(default_factory=dict)
    tables: dict[str, dict[str, Any]] = Field(default_factory=dict)
    dead_letters: dict[str, Any] | None = None
    on_shed: dict[str, dict[str, Any]] = Field(default_factory=dict)
