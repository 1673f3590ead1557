"""Windows as frames of Spark: slices, windows of rows, functions of the user.

Comes in: rows behind their drops, and partial results of earlier batches.
Goes out: frames with partial results per group and slice, and frames with the results of closed windows. Nothing here
writes.
"""
