"""Event time as arithmetic: progress of streams, watermarks, lookahead, what state has seen.

Comes in: a network and the newest event times of its sources.
Goes out: watermarks, the windows that they close, how long a join remembers, which windows were seen whole.
"""
