"""The identity of what an operator computes, so that state is never taken for another's.

Comes in: a graph, functions and the code that they run.
Goes out: hashes that are the same in every process, whatever operators are called.
"""
