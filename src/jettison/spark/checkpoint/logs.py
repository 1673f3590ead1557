"""The two records of a run, by batch, in the checkpoint: plans (written before a batch runs), the ledger (after).

Because drops are deterministic, plan log and source together say exactly which rows were shed. How the files are kept
few is in `batch_files`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from jettison.plan.plan import Plan
from jettison.plan.reasons import STALE_UNREAD, UNREAD, reason_on
from jettison.spark.checkpoint.batch_files import BatchFiles
from jettison.spark.checkpoint.run_clock import RunClock
from jettison.spark.checkpoint.sealed import damaged
from jettison.spark.checkpoint.small_files import Folder
from jettison.statistics.records import Records
from jettison.statistics.samples import BatchSample


@dataclass(frozen=True)
class Logged:
    """A plan as it was logged and is obeyed, with the records that it was made for and the offsets up to which each
    source was read. `would` is the plan of a dry run, which is not obeyed.
    """

    batch: int
    plan: Plan
    records: Records
    offsets: tuple[str, ...] = ()
    would: Plan | None = None
    network: str = ""
    """The identity of the network that it was made for; plans from before that was written have none."""
    careful: bool = False
    """Whether rows on which expressions fail were being rejected already: a repeated batch rejects the same ones."""
    keeps_state: bool = False
    """Whether its network has windows or joins of streams, which keep state."""
    rows_per_s: Mapping[str, float] = field(default_factory=dict)
    """Arrival rates by source, of a run that does not learn: after a restart it goes on with them."""


UNPARSED = "does not parse"
UNFIT = "an expression failed"
GONE = "gone before it was read"
_APART = {UNPARSED: "rows_rejected", UNFIT: "rows_rejected", GONE: "rows_gone"}
"""By reason, the column that counts rows that no drop took."""

_OF_KAFKA = ("gone", "ids", "begins", "ends", "skipped", "stale")

_RESTORE_PLAN = (
    "Restore it from a copy, or start with a new checkpoint; if nothing of batch {batch} was written yet, delete it "
    "and the batch is planned anew."
)
_RESTORE_LEDGER = (
    "Restore it from a copy, or delete it: the ledger is then without batch {batch}; no result depends on it."
)


class PlanLog:
    """Plans by batch id. A batch that is repeated finds its plan here."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self.files = BatchFiles(folder, "plans", "the plan", _RESTORE_PLAN)

    def write(self, logged: Logged) -> None:
        content = {"batch": logged.batch, "rows": dict(logged.records.rows), "plan": logged.plan.to_dict()}
        content["offsets"] = list(logged.offsets)
        content |= {"network": logged.network} if logged.network else {}
        content |= {name: True for name in ("careful", "keeps_state") if getattr(logged, name)}
        content |= {name: value for name in _OF_KAFKA if (value := getattr(logged.records, name))}
        content |= {"rows_per_s": dict(logged.rows_per_s)} if logged.rows_per_s else {}
        if logged.would is not None:
            content["would"] = logged.would.to_dict()
        self.files.write(logged.batch, content)

    def read(self, batch: int) -> Logged | None:
        content = self.files.read(batch)
        if content is None:
            return None
        try:
            records = Records(content["rows"], **{name: content.get(name, {}) for name in _OF_KAFKA})
            plan, offsets = Plan.from_dict(content["plan"]), tuple(content["offsets"])
            would = None if "would" not in content else Plan.from_dict(content["would"])
            careful, keeps_state = (bool(content.get(name, False)) for name in ("careful", "keeps_state"))
            return Logged(
                content["batch"],
                plan,
                records,
                offsets,
                would=would,
                network=content.get("network", ""),
                careful=careful,
                keeps_state=keeps_state,
                rows_per_s=content.get("rows_per_s", {}),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            remedy = _RESTORE_PLAN.format(batch=batch)
            raise damaged(self._folder, f"plans/{batch}.json", f"the plan of batch {batch}", error, remedy) from error

    def batches(self) -> list[int]:
        return self.files.batches()


class Ledger:
    """What was shed, where, when and why: rows of (batch, arc, rows_in, rows_shed, reason, plan_row), and in a dry run
    how many rows would have been (rows_would_shed). Rows that were rejected and records that were gone before they
    were read are no shed rows: they have columns of their own (rows_rejected, rows_gone)."""

    COLUMNS = (
        "batch long, arc string, rows_in long, rows_shed long, reason string, plan_row double, rows_would_shed long, "
        "rows_rejected long, rows_gone long"
    )
    NAMES = tuple(column.split()[0] for column in COLUMNS.split(", "))
    QUERY_COLUMNS = (
        "batch long, output string, sic double, processed double, lost double, rows long, p50_ms double, p95_ms double"
    )

    def __init__(self, folder: Folder) -> None:
        self.files = BatchFiles(folder, "ledger", "the ledger", _RESTORE_LEDGER)
        self.clock = RunClock(self.files.newest_ms)

    def write(self, batch: int, entries: list[dict[str, Any]], more: Mapping[str, Any] | None = None) -> None:
        """Write down a batch; `more` is what outputs got of it (`telemetry.queries`), and what its SIC rests on."""
        content = {"batch": batch, "at_ms": round(self.clock.now_ms()), "entries": entries}
        self.files.write(batch, {**(more or {}), **content})

    def before(self, batch: int) -> Iterator[dict[str, Any]]:
        """The records of batches before this one, the newest first, without a gap; those of earlier versions, which
        have entries alone, end it."""
        for content in self.files.before(batch):
            if not isinstance(content, dict):
                return
            yield content

    def rows(self) -> list[tuple[Any, ...]]:
        """All entries, as COLUMNS says."""
        filled = (
            {**dict.fromkeys(("rows_would_shed", *_APART.values()), 0), **entry, "plan_row": float(entry["plan_row"])}
            for entry in self.entries()
        )
        return [tuple(entry[name] for name in self.NAMES) for entry in filled]

    def queries(self) -> list[tuple[Any, ...]]:
        """What every output got of every batch, as QUERY_COLUMNS says; records of earlier versions have nothing."""
        figures = tuple(column.split()[0] for column in self.QUERY_COLUMNS.split(", "))[2:]
        found = []
        for batch, content in self.files.contents():
            shown = content.get("queries", {}) if isinstance(content, dict) else {}
            for name, each in shown.items():
                values = {key: value if key == "rows" else float(value) for key, value in each.items()}
                found.append((batch, name, *(values.get(key) for key in figures)))
        return found

    def entries(self) -> Iterator[dict[str, Any]]:
        """The rows of all batches; earlier versions wrote what was rejected or gone as shed, with its reason."""
        for _, content in self.files.contents():
            for entry in content if isinstance(content, list) else content["entries"]:
                column = _APART.get(entry.get("reason", ""))
                if column is not None and column not in entry:
                    entry = {**entry, "rows_shed": 0, column: entry["rows_shed"]}
                yield entry


def shed_entries(sample: BatchSample, plan: Plan, would: Plan | None = None) -> list[dict[str, Any]]:
    """The ledger's rows of one batch; `would` is the plan of a dry run."""
    entries = [_arc_entry(sample, plan, arc, would) for arc in dict.fromkeys((*sample.arcs, *sample.would))]
    for source, count in sample.rejected.items():
        if count:
            entries.append(_entry_apart(sample, plan, source, sample.rows_in[source], count, UNPARSED))
    for operator, count in sample.unfit.items():
        entries.append(_entry_apart(sample, plan, operator, sum(sample.rows_in.values()), count, UNFIT))
    for source, skipped in sample.skipped.items():
        stale = sample.stale.get(source, 0)
        for count, reason in ((stale, STALE_UNREAD), (skipped - stale, UNREAD)):
            if count:
                unread = {"rows_in": sample.rows_in[source] + skipped, "rows_shed": count, "reason": reason}
                entries.append({"batch": sample.batch, "arc": source, **unread, "plan_row": plan.row})
    for source, count in sample.gone.items():
        entries.append(_entry_apart(sample, plan, source, sample.rows_in[source] + count, count, GONE))
    return entries


def _entry_apart(sample: BatchSample, plan: Plan, arc: str, rows_in: int, count: int, reason: str) -> dict[str, Any]:
    """Rows that did not get through, though no drop took them."""
    entry = {"batch": sample.batch, "arc": arc, "rows_in": rows_in, "rows_shed": 0, "reason": reason}
    return {**entry, "plan_row": plan.row, _APART[reason]: count}


def _arc_entry(sample: BatchSample, plan: Plan, arc: str, would: Plan | None) -> dict[str, Any]:
    """What reached an arc, what was shed there, and in a dry run what would have been: one row for both."""
    rows, kept = sample.arcs.get(arc, (0, 0))
    reason = reason_on(plan, arc) if rows > kept else ""
    entry = {"batch": sample.batch, "arc": arc, "rows_in": rows, "rows_shed": rows - kept, "reason": reason}
    if arc not in sample.would:
        return {**entry, "plan_row": plan.row}
    reached, shed = sample.would[arc]
    planned = ("", 0.0) if would is None else (f"dry run: {reason_on(would, arc)}", would.row)
    entry |= {"rows_in": rows if arc in sample.arcs else reached, "reason": reason or planned[0]}
    return {**entry, "plan_row": planned[1], "rows_would_shed": shed}
