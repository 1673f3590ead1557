"""WHEN to act: one tick of the loop, the same for Spark and for the simulator.

Comes in: the size of the next batch, the sample of the last one, the time.
Goes out: the plan of the next batch, ready to be logged and obeyed.
"""
