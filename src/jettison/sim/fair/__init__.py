"""Many nodes that shed fairly, and queries that span several of them, interval by interval (DISSP 4.3 and 5.3).

Comes in: a `Federation` (queries, their sources, the nodes that they are on) and how well nodes know what a query has
elsewhere. Goes out: every query's SIC, interval by interval. The decision is that of the shedder "fair"
(`plan.shedders.fair.admission.admit`), one per node and interval; all else is counted in arrays.
"""
