"""What users see of a run: report, history, log lines, metrics, the live line.

Comes in: the figures of finished batches.
Goes out: text, series for Prometheus, bounded records. Nothing here imports Spark, and nothing here changes a plan.
"""
