"""Whether a batch may be planned anew: not where it has written something, for that could double or lose rows.

A plan is written before anything of its batch. So a batch that Spark has begun, and that has no plan, has written
nothing, unless a record of it shows that it has. The same holds where the plan is for other rows than Spark hands over:
Spark had lost the offsets of the batch, and has chosen new ones.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from jettison.errors import CheckpointError
from jettison.spark.checkpoint.checkpoint import Checkpoint
from jettison.spark.checkpoint.logs import Logged
from jettison.spark.checkpoint.small_files import local_place
from jettison.spark.write.sinks import ParquetSink, Sink


def check_never_ran(checkpoint: Checkpoint, sinks: Mapping[str, Sink], batch: int) -> None:
    """Refuse to plan a batch anew that has written something under a plan that is gone."""
    proof = _written(checkpoint, sinks, batch, begun=checkpoint.was_begun(batch))
    if proof is not None:
        raise CheckpointError(
            f"checkpoint {checkpoint.path!r}: batch {batch} has run ({proof} is of it), and its plan is gone: planned "
            f"anew, other rows would be shed than before. Restore {checkpoint.plans.files.where(batch)} from a copy, "
            f"or start with a new checkpoint."
        )


def is_for_other_rows(logged: Logged, offsets: Sequence[str]) -> bool:
    """Whether a plan was made for a batch that read up to other offsets than these; unknown offsets are any.

    >>> from jettison.plan.plan import Plan
    >>> from jettison.statistics.records import Records
    >>> logged = Logged(7, Plan(), Records({"s": 10}), ('{"rows": 10}',))
    >>> is_for_other_rows(logged, ['{"rows": 10}']), is_for_other_rows(logged, ['{"rows": 12}'])
    (False, True)
    >>> is_for_other_rows(logged, [])
    False
    """
    return bool(logged.offsets and offsets) and tuple(logged.offsets) != tuple(offsets)


def check_other_rows(checkpoint: Checkpoint, sinks: Mapping[str, Sink], batch: int) -> None:
    """Refuse to run a batch with other rows than it was planned for, where it has written something with those."""
    proof = _written(checkpoint, sinks, batch, begun=True)
    if proof is not None:
        folder = checkpoint.spark_folder.path
        raise CheckpointError(
            f"checkpoint {checkpoint.path!r}: batch {batch} has run ({proof} is of it) with other rows than Spark "
            f"reads for it now: {folder}/offsets/{batch} is not what it was. Restore it from a copy, or start with a "
            f"new checkpoint and new folders for results."
        )


def _written(checkpoint: Checkpoint, sinks: Mapping[str, Sink], batch: int, *, begun: bool) -> str | None:
    """The path of something that a batch has written; None where there is nothing."""
    proof = checkpoint.record_of(batch)
    if proof is None and begun:
        folders = [sink.folder(batch) for sink in sinks.values() if isinstance(sink, ParquetSink)]
        written = [os.path.abspath(path) if local_place(path) == path else path for path in folders]
        proof = next((path for path in written if checkpoint.exists(path)), None)
    return proof
