"""Runs that are killed and runs that last: nothing lost, nothing doubled, nothing that grows.

In comes nothing but the length of the run. Out go results whose figures are counts and growth.
"""
