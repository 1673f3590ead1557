"""The options in a file's `run` section, in the groups of `jt.start`.

    shedding:    true  |  dry-run  |  {mode: on, shedder: random, headroom: 0.8, catch_up: newest, stale: 1 minute,
                  stw: 10 seconds}
    costs:       {profile: true, learn: false, shared: [paid]}
    checkpoint:  out/checkpoint  |  {path: out/checkpoint, retention: 30 days}

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
from jettison.spec.models import Strict
from jettison.statistics.profile import Profile


class SheddingSpec(Strict):
    """See `jettison.options.shedding.Shedding`."""

    mode: Literal["on", "off", "dry-run"] = "on"
    shedder: str = "semantic"
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

    def options(self) -> Shedding:
        """The group, its values checked."""
        try:
            return Shedding(self.mode, self.shedder, self.headroom, self.catch_up, self.stale, self.stw)
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
