"""What experiments share: workloads, a broker, batches by hand, capacity, timelines.

Comes in: the sizes that an experiment asks for.
Goes out: data, servers and measurements. Nothing here claims anything.
"""
