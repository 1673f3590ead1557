"""Chapter 3 of the thesis: what the road map loses over other shedders, simulated and on Spark, and over the optimum.

In comes nothing but the length of the run. Out go results whose figures are utilities lost.
"""
