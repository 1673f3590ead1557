"""Sources: what a batch will read, and how much the next one may.

Comes in: streams of Spark, topics of Kafka, generated rows.
Goes out: one tagged stream, and the number of rows of a batch before it runs.
"""
