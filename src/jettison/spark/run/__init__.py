"""A run: checks, start, calibration, batches one by one, the end.

Comes in: what `jt.start` is given.
Goes out: a `Run`, whose every batch is planned, logged, run and measured.
"""
