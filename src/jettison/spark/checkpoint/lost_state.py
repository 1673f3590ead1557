"""State that is gone: a run must not begin its windows anew in silence where a plan says that state was kept."""

from __future__ import annotations

from jettison.errors import CheckpointError
from jettison.spark.checkpoint.logs import PlanLog
from jettison.spark.checkpoint.small_files import Folder


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
