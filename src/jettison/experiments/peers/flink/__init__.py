"""Flink SQL as a peer: its installation, its process, and the three outputs in its words.

Comes in: files or a topic to read, and folders to write to.
Goes out: rows per second, and a job over files that keep coming. Where Flink cannot be had, a `StartError` says why.
"""
