"""One batch of a run, from its offsets to its events: read, plan, log, run, measure, show, learn.

Comes in: the frame that Spark hands over, and the parts that a run is made of.
Goes out: outputs in their sinks, a plan in the log, what was shed in the ledger, and an event for listeners.
"""
