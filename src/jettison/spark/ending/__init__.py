"""How a run ends: stopped between two batches, interrupted, or left by its Spark session.

Comes in: a query of Spark, and what must be closed.
Goes out: everything released, whatever fails on the way, and one error that names the first cause.
"""
