"""What tuples cost, key by key, in little memory: paired Count-Min sketches (LAS 3.1).

Comes in: key columns and durations, in NumPy or Arrow arrays.
Goes out: a `CostSketch` that adds up over tasks and batches, and a `CostTable` that looks costs up, here or as SQL.
"""
