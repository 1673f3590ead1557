"""More than a machine can process: bursts, lasting overloads, stalls, values that drift, and the demo.

In comes nothing but the length of the run. Out go results on Spark: ages, worth in time, shares planned and delivered.
"""
