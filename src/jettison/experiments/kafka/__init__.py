"""Records from a real broker: lag, arrival rates, dropping before parsing, and faults of broker and topic.

In comes nothing but the length of the run. Out go results; a broker is started for each, and ended after it.
"""
