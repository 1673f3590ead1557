"""Load-aware shedding: costs learned by key, in the simulator, on Spark, and what the sketch itself takes.

In comes nothing but the length of the run. Out go results whose figures are latencies, errors and times.
"""
