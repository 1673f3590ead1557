"""What an interrupted first write leaves behind: Spark wants its folders to be empty before batch 0."""

from __future__ import annotations

from jettison.spark.checkpoint.small_files import Folder


def clear_first_drafts(spark_folder: Folder) -> None:
    """Delete drafts of offsets (hidden files) where Spark has neither planned nor committed a batch.

    Spark writes a draft and renames it. A run that is stopped in between would never start again
    (STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY). Where there is any batch nothing is touched.
    """
    if not spark_folder.names("offsets") and not spark_folder.names("commits"):
        spark_folder.delete("offsets")
