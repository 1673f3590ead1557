"""Tuples that cost different amounts, one by one: a queue as in the seed of load-aware shedding, and micro-batches.

Comes in: a stream of keys with arrival times and true durations, and who estimates costs.
Goes out: which tuples were kept, how long each waited, what was learned when.
"""
