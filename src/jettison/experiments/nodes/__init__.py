"""Experiments on several nodes: planning and simulation, chapter 5 of the thesis. Nothing here runs on Spark.

Times are processor time, so that a busy machine does not change them.
"""
