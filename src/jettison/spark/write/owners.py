"""Whose a parquet folder is: a batch replaces `batch=7`, so a folder must never belong to two runs.

`_jettison.json` in the folder (Spark's readers pass over names that begin with _) names the run that writes there. A
run is what goes on with one checkpoint: its identity is made once, in `checkpoint/run.json`.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from pyspark.sql import SparkSession

from jettison.errors import StartError
from jettison.spark.checkpoint.checkpoint import Checkpoint
from jettison.spark.checkpoint.sealed import load, write_sealed
from jettison.spark.checkpoint.small_files import Folder, open_folder, spark_place
from jettison.spark.write.sinks import BATCH_COLUMN, DRAFT, REPLACE, ParquetSink, Sink

OWNER = "_jettison.json"
RUN = "run.json"


@dataclass(frozen=True)
class Owner:
    """Who writes into a folder: a run (by its identity), and what of it."""

    run: str
    network: str
    output: str
    checkpoint: str

    @staticmethod
    def read(folder: Folder) -> Owner | None:
        """The owner of a folder; None where nobody has said so. Of a damaged file only that there is one."""
        try:
            text = folder.read(OWNER)
            if text is None:
                return None
            content = json.loads(text)
            return Owner(*(str(content[name]) for name in ("run", "network", "output", "checkpoint")))
        except (ValueError, KeyError, TypeError):
            return Owner("", "unknown", "unknown", "unknown")

    def write(self, folder: Folder) -> None:
        try:
            folder.write(OWNER, json.dumps(asdict(self)))
        except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
            raise StartError(f"{self.output}: {folder.path!r} is no folder to write into: {error.strerror}.") from error


@dataclass(frozen=True)
class _Claim:
    path: str
    folder: Folder
    owner: Owner
    before: Owner | None
    replaces: bool


class Owners:
    """The parquet folders of one run, checked when this is made. `take` writes down whose they are, `release` undoes it
    where that was new."""

    def __init__(
        self, spark: SparkSession, checkpoint: Checkpoint, network: str, sinks: Mapping[str, Sink | None]
    ) -> None:
        self._checkpoint = checkpoint
        self._spark = spark
        remedy = "Restore it from a copy, or start with a new checkpoint, and sinks of their own."
        known = load(checkpoint.folder, RUN, "the identity of the run", remedy) or {}
        self._run = str(known.get("run") or uuid.uuid4().hex)
        self._old = "run" not in known or "adopts" in known  # of a version without identities, or new
        files = {name: sink for name, sink in sinks.items() if isinstance(sink, ParquetSink)}
        self._claims: list[_Claim] = []
        places: dict[str, str] = {}
        for name, sink in files.items():
            place = spark_place(sink.path, spark)
            if place in places:
                raise StartError(f"{places[place]} and {name} both write to {sink.path!r}: give each its own path.")
            places[place] = name
            owner = Owner(self._run, network, name, checkpoint.path)
            self._claims.append(self._checked(sink, open_folder(place, spark), owner, set(files)))

    def take(self) -> None:
        """Write down whose the folders are. What a sink is to replace is deleted now."""
        try:
            self._take()
        except OSError as error:
            raise StartError(
                f"checkpoint {self._checkpoint.path!r}: {error.strerror or error} ({error.filename}). Make room, or "
                f"allow writing there, and start again."
            ) from error

    def _take(self) -> None:
        adopts = {"adopts": True} if self._old else {}  # a start that is killed below does so again
        write_sealed(self._checkpoint.folder, RUN, json.dumps({"run": self._run, **adopts}))
        for claim in self._claims:
            if claim.before == claim.owner:
                continue
            claim.owner.write(claim.folder)  # first: from here on the earlier run must not go on here
            if claim.replaces:
                for name in [*batches_in(claim.folder), *drafts_in(claim.folder)]:
                    claim.folder.delete(name)
        if adopts:
            write_sealed(self._checkpoint.folder, RUN, json.dumps({"run": self._run}))

    def release(self) -> None:
        """After a start that failed: folders that had no owner have none again."""
        for claim in self._claims:
            if claim.before is None and Owner.read(claim.folder) == claim.owner and not batches_in(claim.folder):
                claim.folder.delete(OWNER)

    def _checked(self, sink: ParquetSink, folder: Folder, owner: Owner, names: set[str]) -> _Claim:
        before = Owner.read(folder)
        whose = f"{owner.output}: {folder.path!r}"
        if before is not None and before.run == owner.run:
            if before.output != owner.output and before.output in names:
                raise StartError(
                    f"{whose} has the rows of {before.output} of this very run, which has a sink of its own now: give "
                    f"each its own path, as before."
                )
            self._refuse_copy(whose, before, owner)
            return _Claim(sink.path, folder, owner, before, replaces=False)
        if before is not None and self._lost_its_run(before):
            raise StartError(
                f"checkpoint {owner.checkpoint!r}: {RUN}, the identity of its run, is gone, and {folder.path!r} has "
                f"the rows of {before.output} of that run. Restore it from a copy, or start with a new checkpoint, and "
                f"sinks of their own."
            )
        if sink.on_other_run == REPLACE:
            return _Claim(sink.path, folder, owner, before, replaces=True)
        if before is None and not self._is_foreign(folder):
            return _Claim(sink.path, folder, owner, before, replaces=False)
        if before is not None and not before.run:
            raise StartError(
                f"{whose}: {folder.path}/{OWNER}, which says whose the folder is, is damaged. Restore it from a copy, "
                f"or give another path; jt.parquet(path, on_other_run='replace') deletes what is in the folder."
            )
        raise StartError(
            f"{whose} {_owner_text(before, owner)}, and batches of this run would replace its own. Go on with "
            f"{_its_checkpoint(before, owner)}, give another path, such as {_another(folder.path)!r}, or delete the "
            f"folder; jt.parquet(path, on_other_run='replace') deletes it at the start."
        )

    def _lost_its_run(self, before: Owner) -> bool:
        """Whether this checkpoint has run batches into a folder, and says no more as which run."""
        return self._old and before.checkpoint == self._checkpoint.path and bool(self._checkpoint.plans.batches())

    def _refuse_copy(self, whose: str, before: Owner, owner: Owner) -> None:
        """A checkpoint that was moved goes on; of one that was copied, and is still there, two runs could."""
        if before.checkpoint == owner.checkpoint:
            return
        try:
            text = open_folder(before.checkpoint, self._spark).read(RUN)
            original = None if text is None else json.loads(text).get("run")
        except Exception:  # a place that is gone, or not to be reached any more
            return
        if original == owner.run:
            raise StartError(
                f"{whose} has the rows of the run with checkpoint {before.checkpoint!r}, of which checkpoint "
                f"{owner.checkpoint!r} is a copy: batches of both would replace each other. Go on with the original, "
                f"or delete it if this one is to take its place; for a second run give another path."
            )

    def _is_foreign(self, folder: Folder) -> bool:
        """Whether a folder without an owner has batches that this checkpoint cannot have written.

        Earlier versions wrote no owners: a checkpoint of theirs that has planned all of these batches goes on.
        """
        there = batches_in(folder)
        if not there:
            return False
        planned = self._checkpoint.plans.batches() if self._old else []
        return not planned or max(_number(name) for name in there) > max(planned)


def batches_in(folder: Folder) -> list[str]:
    """The folders of batches in a parquet folder, by name."""
    return [name for name in folder.folders("") if name.startswith(f"{BATCH_COLUMN}=")]


def drafts_in(folder: Folder) -> list[str]:
    """What a kill has left of batches that the driver was writing."""
    return [name for name in folder.folders("") if name.startswith(DRAFT)]


def _number(name: str) -> int:
    number = name.partition("=")[2]
    return int(number) if number.isdecimal() else 2**63


def _owner_text(before: Owner | None, owner: Owner) -> str:
    if before is None:
        return "has batches of a run that is not known"
    if before.checkpoint == owner.checkpoint:
        return f"belongs to an earlier run, whose checkpoint was in {before.checkpoint!r} before this one"
    return f"belongs to {before.output} of network {before.network!r} with checkpoint {before.checkpoint!r}"


def _its_checkpoint(before: Owner | None, owner: Owner) -> str:
    known = before is not None and before.checkpoint not in ("unknown", owner.checkpoint)
    return "that checkpoint" if known else "the checkpoint of that run"


def _another(path: str) -> str:
    return f"{path.rstrip('/')}-2"
