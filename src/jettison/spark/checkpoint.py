"""The checkpoint folder of a run: whose it is, who uses it, and what was learned.

checkpoint/network.json   the network that it belongs to
checkpoint/profile.json   costs and selectivities as last known
checkpoint/plans/         the plan of each batch, written before it runs
checkpoint/ledger/        what was shed
checkpoint/rejects/       rows that did not parse
checkpoint/state/         what joins of streams and aggregates keep
checkpoint/spark/         Spark's own checkpoint
"""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from pyspark.sql import SparkSession

from jettison.errors import CheckpointError
from jettison.network.graph import Graph
from jettison.spark.files import open_folder, resolved
from jettison.spark.logs import Ledger, PlanLog
from jettison.statistics.profile import Profile


class Checkpoint:
    """An opened checkpoint. Only one run at a time holds it."""

    def __init__(self, path: str, graph: Graph, spark: SparkSession) -> None:
        self.path = resolved(path, spark)
        self.spark_path = f"{self.path}/spark"
        self.state_path = f"{self.path}/state"
        self._lock = _lock(self.path)
        try:
            self._folder = open_folder(self.path, spark)
            self.spark_folder = open_folder(self.spark_path, spark)
            self.state_folder = open_folder(self.state_path, spark)
            self.plans = PlanLog(self._folder)
            self.ledger = Ledger(self._folder)
            self._claim(graph)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let others use it."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def profile(self, graph: Graph) -> Profile | None:
        """What was learned; None when nothing was, or when the operators have changed since."""
        text = self._folder.read("profile.json")
        profile = None if text is None else Profile.from_dict(json.loads(text))
        return profile if profile is not None and set(profile.cost_us) == set(graph.by_name) else None

    def shared(self, graph: Graph) -> frozenset[str]:
        text = self._folder.read("shared.json")
        return frozenset() if text is None else frozenset(json.loads(text)) & set(graph.by_name)

    def believed(self) -> bool:
        """Whether batches had confirmed the costs that are kept here (`statistics.belief`)."""
        text = self._folder.read("belief.json")
        return text is None or bool(json.loads(text)["believed"])

    def remember(self, profile: Profile, shared: frozenset[str], *, believed: bool = True) -> None:
        self._folder.write("belief.json", json.dumps({"believed": believed}))
        self._folder.write("profile.json", json.dumps(profile.to_dict()))
        self._folder.write("shared.json", json.dumps(sorted(shared)))

    def _claim(self, graph: Graph) -> None:
        """Write down whose checkpoint this is, or compare."""
        mine = _identity(graph)
        text = self._folder.read("network.json")
        if text is None:
            self._folder.write("network.json", json.dumps(mine))
            return
        theirs = json.loads(text)
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
    """Hold the folder until this process ends, however it ends. On other file systems Spark's own log guards it."""
    if urlparse(path).scheme != "":
        return None
    Path(path).mkdir(parents=True, exist_ok=True)
    handle = os.open(f"{path}/.lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.read(handle, 100).decode() or "another process"
        os.close(handle)
        raise CheckpointError(
            f"checkpoint {path!r} is in use by {holder}: stop that run first, or give this one its own checkpoint."
        ) from error
    os.ftruncate(handle, 0)
    os.write(handle, f"process {os.getpid()}".encode())
    return handle
