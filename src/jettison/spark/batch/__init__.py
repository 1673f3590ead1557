"""One batch of a run, from its offsets to its events: read, plan, log, run, measure, show, learn.

In: the frame that Spark hands over, and what a run is made of. Out: outputs, a logged plan, a ledger entry, an event.
"""
