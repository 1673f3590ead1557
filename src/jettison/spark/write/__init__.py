"""Sinks: where results, shed rows and rejected rows are written.

Comes in: the frames of a batch and its id.
Goes out: rows in a sink. A repeated batch replaces its own rows and no others; a folder belongs to one run.
"""
