"""State of operators in the checkpoint: joins of streams, windows of time, windows of rows.

Comes in: the rows of a batch behind their drops, and a watermark.
Goes out: pairs and closed windows, and one committed record per batch and operator, from which a restart goes on.
"""
