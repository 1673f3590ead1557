"""What is gone of a checkpoint as a whole: a run must not begin anew in silence where plans say that it went on."""

from __future__ import annotations

from jettison.errors import CheckpointError
from jettison.spark.checkpoint.logs import Ledger, PlanLog
from jettison.spark.checkpoint.small_files import Folder


def check_offsets_are_there(ledger: Ledger, spark_folder: Folder) -> None:
    """Refuse a checkpoint with the ledger of a batch whose offsets are gone: Spark writes these before it runs."""
    ended = ledger.files.newest()
    newest = max((int(name) for name in spark_folder.names("offsets") if name.isdigit()), default=-1)
    if ended is not None and ended > newest:
        raise CheckpointError(
            f"checkpoint: batch {ended} has run, and Spark's offsets {spark_folder.path}/offsets/{ended} are "
            f"gone: Spark would read other rows as that batch, and they would replace what it has written. Restore the "
            f"folder from a copy, or start with a new checkpoint and new folders for results."
        )


def check_state_is_there(plans: PlanLog, spark_folder: Folder, state_folder: Folder) -> None:
    """Refuse a checkpoint whose last whole batch kept state, of which nothing is left."""
    committed = max((int(name) for name in spark_folder.names("commits") if name.isdigit()), default=None)
    if committed is None or state_folder.names("") or state_folder.folders(""):
        return
    logged = plans.read(committed)
    if logged is not None and logged.keeps_state:
        raise CheckpointError(
            f"checkpoint: {state_folder.path}, what windows and joins keep, is gone, and batch {committed} has run "
            f"with it: windows that are open would come without the rows from before. Restore the folder from a copy, "
            f"or start with a new checkpoint."
        )
