"""Whether a batch ran that has no plan: then its plan was deleted, and planning it anew could double or lose rows.

A plan is written before anything of its batch. So a batch that Spark has begun, and that has no plan, has written
nothing, unless a record of it shows that it has.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from jettison.errors import CheckpointError
from jettison.spark.checkpoint.checkpoint import Checkpoint
from jettison.spark.checkpoint.small_files import local_place
from jettison.spark.write.sinks import ParquetSink, Sink


def check_never_ran(checkpoint: Checkpoint, sinks: Mapping[str, Sink], batch: int) -> None:
    """Refuse to plan a batch anew that has written something under a plan that is gone."""
    proof = checkpoint.record_of(batch)
    if proof is None and checkpoint.was_begun(batch):
        folders = [sink.folder(batch) for sink in sinks.values() if isinstance(sink, ParquetSink)]
        written = [os.path.abspath(path) if local_place(path) == path else path for path in folders]
        proof = next((path for path in written if checkpoint.exists(path)), None)
    if proof is not None:
        raise CheckpointError(
            f"checkpoint {checkpoint.path!r}: batch {batch} has run ({proof} is of it), and its plan is gone: planned "
            f"anew, other rows would be shed than before. Restore {checkpoint.plans.files.where(batch)} from a copy, "
            f"or start with a new checkpoint."
        )
