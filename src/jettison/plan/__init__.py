"""WHERE and HOW MUCH to drop: a plan is a value, computed from a problem.

Comes in: a `Problem` (network, costs, tuples, time) and what was counted in earlier batches.
Goes out: a `Plan` (drops by arc, with the reason), which serialises, and its certificate. Nothing here knows Spark or
a clock.
"""
