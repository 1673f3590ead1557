"""Windows and aggregates: what they compute, from which slices, and how well a sample estimates it.

Comes in: sizes, slides, SQL of aggregates, functions of users.
Goes out: slices, partial results that merge, intervals of estimates, all as frozen values and SQL text.
"""
