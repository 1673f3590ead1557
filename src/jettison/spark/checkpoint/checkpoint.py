"""The checkpoint folder of a run: whose it is, who uses it, and what was learned.

checkpoint/network.json   the network that it belongs to
checkpoint/run.json       the identity of the run that goes on with it
checkpoint/profile.json   costs and selectivities as last known
checkpoint/shared.json    operators whose rows are persisted for several outputs
checkpoint/plans/         the plan of each batch, written before it runs
checkpoint/ledger/        what was shed
checkpoint/dead_letters/  rows that did not parse, as long as plans and ledger are kept
checkpoint/state/         what joins of streams and aggregates keep
checkpoint/spark/         Spark's own checkpoint

Files have checksums (`sealed`). What is damaged is refused by name, except profile.json and shared.json: these are
caches, and what they said is learned anew.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pyspark.sql import SparkSession

from jettison.errors import CheckpointError
from jettison.network.graph import Graph
from jettison.network.identity.lineage_hash import network_identity
from jettison.options.retention import Retention
from jettison.spark.checkpoint.lease import Lease
from jettison.spark.checkpoint.logs import Ledger, Logged, PlanLog
from jettison.spark.checkpoint.lost_state import check_offsets_are_there, check_state_is_there
from jettison.spark.checkpoint.sealed import load, read_sealed, write_sealed
from jettison.spark.checkpoint.small_files import Folder, exists, local_place, open_folder, resolved
from jettison.spark.checkpoint.spark_files import check_spark_files
from jettison.spark.checkpoint.tidying import Tidying
from jettison.statistics.profile import Profile

_log = logging.getLogger(__name__)
T = TypeVar("T")


class Checkpoint:
    """An opened checkpoint. Only one run at a time holds it."""

    def __init__(self, path: str, graph: Graph, spark: SparkSession, retention: Retention | None = None) -> None:
        self.path = resolved(path, spark)
        self.spark_path = f"{self.path}/spark"
        self.state_path = f"{self.path}/state"
        self._spark = spark
        self._tidying: Tidying | None = None
        self._lease: Lease | None = None
        self._network = network_identity(graph)  # may throw: nothing is held yet
        self._lock = _lock(self.path)
        try:
            self._folder = open_folder(self.path, spark)
            self._lease = None if self._lock is not None else Lease(self._folder)
            self.spark_folder = open_folder(self.spark_path, spark)
            self.state_folder = open_folder(self.state_path, spark)
            self.plans = PlanLog(self._folder)
            self.ledger = Ledger(self._folder)
            records = (self.ledger.files, self.plans.files)
            self._tidying = Tidying(
                self._folder, records, retention or Retention(), self.check_held, clock=self.ledger.clock
            )
            self._begun = max((int(name) for name in self.spark_folder.names("offsets") if name.isdigit()), default=-1)
            self._claim(graph)
            check_spark_files(self.spark_folder)
            check_offsets_are_there(self.ledger, self.spark_folder)
            check_state_is_there(self.plans, self.spark_folder, self.state_folder)
        except OSError as error:  # such as a full disk
            self.close()
            raise CheckpointError(
                f"checkpoint {self.path!r} cannot be used: {error.strerror or error}. Mend that, and start again."
            ) from error
        except BaseException:
            self.close()
            raise

    @property
    def folder(self) -> Folder:
        """Its small files."""
        return self._folder

    def close(self) -> None:
        """Let others use it."""
        try:
            if self._tidying is not None:
                self._tidying.close()
            if self._lease is not None:
                self._lease.release()
        finally:
            self._lease = None
            if self._lock is not None:
                os.close(self._lock)
                self._lock = None

    def check_held(self) -> None:
        """Raise when another run may have taken the checkpoint."""
        if self._lease is not None:
            self._lease.check()

    @property
    def tidying(self) -> Tidying:
        """What keeps it small."""
        assert self._tidying is not None
        return self._tidying

    def plan_before(self, batch: int, why: str) -> Logged | None:
        """The plan of the batch before, which must be there unless this is the first; `why` says what it is for."""
        last = self.plans.read(batch - 1) if batch > 0 else None
        if batch > 0 and last is None:
            raise CheckpointError(
                f"checkpoint {self.path!r}: {self.plans.files.where(batch - 1)}, the plan of the batch before batch "
                f"{batch}, is gone, and {why}. Restore it from a copy, or start with a new checkpoint."
            )
        return last

    def next_batch(self) -> int:
        """The batch that comes after the last that Spark has committed."""
        committed = [int(name) for name in self.spark_folder.names("commits") if name.isdigit()]
        return max(committed, default=-1) + 1

    def was_begun(self, batch: int) -> bool:
        """Whether Spark had begun a batch before this start."""
        return batch <= self._begun

    def exists(self, path: str) -> bool:
        return exists(path, self._spark)

    def record_of(self, batch: int) -> str | None:
        """The path of a record that shows that a batch ran; None where there is none."""
        kept = [f"state/{name}/{batch}.json" for name in self.state_folder.folders("")]
        return next((f"{self.path}/{name}" for name in (*kept, f"ledger/{batch}.json") if self._has(name)), None)

    def _has(self, name: str) -> bool:
        return self._folder.read_bytes(name) is not None

    def profile(self, graph: Graph) -> Profile | None:
        """What was learned; None when nothing was, or when the operators have changed since."""
        profile = self._cached("profile.json", self._profile_of)
        return profile if profile is not None and set(profile.cost_us) == set(graph.by_name) else None

    def shared(self, graph: Graph) -> frozenset[str]:
        found = self._cached("shared.json", lambda read: frozenset(read if isinstance(read, list) else read["shared"]))
        return frozenset() if found is None else found & set(graph.by_name)

    def _profile_of(self, content: dict[str, Any]) -> Profile | None:
        """Costs of this very network; None where they are of another."""
        content.pop("believed", None)
        return Profile.from_dict(content) if content.pop("network", self._network) == self._network else None

    def _cached(self, name: str, made: Callable[[Any], T]) -> T | None:
        """What a cache has; None where there is none, or where it is damaged: then it is made anew."""
        try:
            text = read_sealed(self._folder, name)
            return None if text is None else made(json.loads(text))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            _log.warning(
                "checkpoint: %s/%s is damaged (%s: %s); costs are measured anew, and it is written again",
                self.path,
                name,
                type(error).__name__,
                error,
            )
            return None

    def believed(self) -> bool:
        """Whether batches had confirmed the costs that are kept here (`statistics.belief`)."""
        return self._cached("profile.json", lambda content: bool(content.get("believed", True))) is not False

    def remember(self, profile: Profile, shared: frozenset[str], *, believed: bool = True) -> None:
        self.check_held()
        content = {**profile.to_dict(), "network": self._network, "believed": believed}
        write_sealed(self._folder, "profile.json", json.dumps(content))
        write_sealed(self._folder, "shared.json", json.dumps({"shared": sorted(shared)}))

    def _claim(self, graph: Graph) -> None:
        """Write down whose checkpoint this is, or compare."""
        mine = _identity(graph)
        remedy = f"Restore it from a copy, or delete it if the checkpoint is that of network {graph.name!r}."
        theirs = load(self._folder, "network.json", "whose it is", remedy)
        if theirs is None:
            write_sealed(self._folder, "network.json", json.dumps(mine))
            return
        if not isinstance(theirs, dict) or not {"network", "sources"} <= set(theirs):
            raise CheckpointError(f"checkpoint: {self.path}/network.json does not say whose it is. {remedy}")
        if theirs["network"] != mine["network"]:
            raise CheckpointError(
                f"checkpoint {self.path!r} belongs to network {theirs['network']!r}, not to {mine['network']!r}: "
                f"give this network a checkpoint of its own."
            )
        if theirs["sources"] != mine["sources"]:
            raise CheckpointError(
                f"checkpoint {self.path!r}: {_difference(theirs['sources'], mine['sources'])}. What was read before "
                f"has another shape: declare the sources as they were, or start with a new checkpoint."
            )


def _identity(graph: Graph) -> dict[str, Any]:
    sources = {
        source.name: {
            "schema": dict(source.schema),
            "event_time": source.event_time,
            "id": list(source.id),
            "payload": source.payload,
            "topic": None if source.kafka is None else source.kafka.topic,
        }
        for source in graph.sources
    }
    return {"network": graph.name, "sources": sources}


def _difference(theirs: dict[str, Any], mine: dict[str, Any]) -> str:
    """The first difference, in words."""
    for name in sorted(set(theirs) | set(mine)):
        old, new = theirs.get(name), mine.get(name)
        if old is None or new is None:
            return f"source {name!r} was {'added' if old is None else 'removed'} since"
        for column in sorted(set(old["schema"]) | set(new["schema"])):
            before, now = old["schema"].get(column, "absent"), new["schema"].get(column, "absent")
            if before != now:
                return f"source {name!r}, column {column!r} was {before} and is {now}"
        for option in ("event_time", "id", "payload", "topic"):
            if old.get(option) != new[option]:
                return f"source {name!r}, {option} was {old.get(option)!r} and is {new[option]!r}"
    return "the order of columns has changed"


def _lock(path: str) -> int | None:
    """Hold the folder until this process ends, however it ends. On other file systems a `Lease` does."""
    place = local_place(path)
    if place is None:
        return None
    try:
        Path(place).mkdir(parents=True, exist_ok=True)
        handle = os.open(f"{place}/.lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise CheckpointError(f"checkpoint {path!r} is no folder to write into: {error.strerror}.") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.read(handle, 100).decode() or "another process"
        os.close(handle)
        raise CheckpointError(
            f"checkpoint {path!r} is in use by {holder}: stop that run first, or give this one its own checkpoint."
        ) from error
    try:
        os.ftruncate(handle, 0)
        os.write(handle, f"process {os.getpid()}".encode())
    except OSError as error:
        os.close(handle)
        raise CheckpointError(
            f"checkpoint {path!r} cannot be written to: {error.strerror}. Make room, and start again."
        ) from error
    return handle
