"""Priorities and minimum accuracies (Stream Economics, chapter 5): on Spark and Kafka, and several machines simulated.

In comes nothing but the length of the run. Out go results whose figures are minima held, moves, throughput and times.
"""
