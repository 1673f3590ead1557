"""The only folder that imports pyspark: it obeys plans and measures batches.

Comes in: a network, streams of Spark, sinks, and the plans of the control loop.
Goes out: results in sinks, records in the checkpoint, and a `BatchSample` per batch.
"""
