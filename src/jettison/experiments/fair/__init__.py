"""Source information content and fair shedding (DISSP 4 and 5): what the metric says, what it costs, who gets what.

In comes nothing but the length of the run. Out go results whose checks are the bars of the metric and of the shedder.
"""
