"""Functions of the user's in Python workers (`stream.map`), timed tuple by tuple, and drops by what they cost (LAS).

Comes in: rows of a `Map`, and the published cost sketch that a plan names.
Goes out: rows with the columns that the function adds, rejected rows with their reasons, and what tuples took.
"""
