"""Jettison beside its peers: native Structured Streaming and Flink SQL, on the same input with the same results.

Comes in: the length of the run, and Flink, which is installed into an environment of its own where that is possible.
Goes out: a result with throughputs, the age of results and worth delivered in time of every engine.
"""
