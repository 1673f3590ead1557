"""The two records of a run, by batch, in the checkpoint: plans (written before a batch runs), the ledger (after).

Because drops are deterministic, plan log and source together say exactly which rows were shed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from jettison.plan.plan import Plan
from jettison.spark.files import Folder
from jettison.spark.offsets import Offsets
from jettison.statistics.samples import BatchSample


@dataclass(frozen=True)
class Logged:
    """A plan as it was logged, with the rows that it was made for and the offsets up to which each source was read.

    Of Kafka, by source: records that were gone, the topics' identities, the range that was read where it was not
    Spark's own (a topic made anew, records passed over), how many records were passed over unread, and how many of
    those were stale.
    """

    batch: int
    plan: Plan
    rows: Mapping[str, int]
    offsets: tuple[str, ...] = ()
    gone: Mapping[str, int] = field(default_factory=dict)
    ids: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    begins: Mapping[str, Offsets] = field(default_factory=dict)
    ends: Mapping[str, Offsets] = field(default_factory=dict)
    skipped: Mapping[str, int] = field(default_factory=dict)
    stale: Mapping[str, int] = field(default_factory=dict)


class PlanLog:
    """Plans by batch id. A batch that is repeated finds its plan here."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def write(self, logged: Logged) -> None:
        content = {"batch": logged.batch, "rows": dict(logged.rows), "plan": logged.plan.to_dict()}
        content["offsets"] = list(logged.offsets)
        kafka = {"gone": logged.gone, "ids": logged.ids, "begins": logged.begins, "ends": logged.ends}
        kafka |= {"skipped": logged.skipped, "stale": logged.stale}
        content |= {name: value for name, value in kafka.items() if value}
        self._folder.write(f"plans/{logged.batch}.json", json.dumps(content))

    def read(self, batch: int) -> Logged | None:
        text = self._folder.read(f"plans/{batch}.json")
        if text is None:
            return None
        content = json.loads(text)
        kafka = {name: content.get(name, {}) for name in ("gone", "ids", "begins", "ends", "skipped", "stale")}
        plan, offsets = Plan.from_dict(content["plan"]), tuple(content["offsets"])
        return Logged(content["batch"], plan, content["rows"], offsets, **kafka)

    def batches(self) -> list[int]:
        return sorted(int(name.removesuffix(".json")) for name in self._folder.names("plans"))


class Ledger:
    """What was shed, where, when and why: rows of (batch, arc, rows_in, rows_shed, reason, plan_row)."""

    COLUMNS = "batch long, arc string, rows_in long, rows_shed long, reason string, plan_row double"

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def write(self, batch: int, entries: list[dict[str, Any]]) -> None:
        self._folder.write(f"ledger/{batch}.json", json.dumps(entries))

    def entries(self) -> Iterator[dict[str, Any]]:
        for name in sorted(self._folder.names("ledger"), key=lambda n: int(n.removesuffix(".json"))):
            yield from json.loads(self._folder.read(f"ledger/{name}") or "[]")


def shed_entries(sample: BatchSample, plan: Plan) -> list[dict[str, Any]]:
    """The ledger's rows of one batch."""
    entries = [
        {
            "batch": sample.batch,
            "arc": arc,
            "rows_in": rows,
            "rows_shed": rows - kept,
            "reason": plan.reason if rows > kept else "",
            "plan_row": plan.row,
        }
        for arc, (rows, kept) in sample.arcs.items()
    ]
    for source, count in sample.rejected.items():
        if count:
            rejected = {"rows_in": sample.rows_in[source], "rows_shed": count, "reason": "does not parse"}
            entries.append({"batch": sample.batch, "arc": source, **rejected, "plan_row": plan.row})
    for operator, count in sample.unfit.items():
        rejected = {"rows_in": sum(sample.rows_in.values()), "rows_shed": count, "reason": "an expression failed"}
        entries.append({"batch": sample.batch, "arc": operator, **rejected, "plan_row": plan.row})
    for source, skipped in sample.skipped.items():
        stale = sample.stale.get(source, 0)
        for count, reason in ((stale, "stale, passed over unread"), (skipped - stale, "passed over unread")):
            if count:
                unread = {"rows_in": sample.rows_in[source] + skipped, "rows_shed": count, "reason": reason}
                entries.append({"batch": sample.batch, "arc": source, **unread, "plan_row": plan.row})
    for source, count in sample.gone.items():
        lost = {"rows_in": sample.rows_in[source] + count, "rows_shed": count, "reason": "gone before it was read"}
        entries.append({"batch": sample.batch, "arc": source, **lost, "plan_row": plan.row})
    return entries
