"""Priorities and minimum accuracies (Stream Economics, chapter 5): several machines simulated, and the time of a cycle.

In comes nothing but the length of the run. Out go results whose figures are minima held, moves, throughput and times.
"""
