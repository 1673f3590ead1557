"""What Jettison costs where nothing is shed: beside plain Spark, native Structured Streaming, and by size.

In comes nothing but the length of the run. Out go results whose checks are bars of speed. They hold on a quiet machine.
"""
