"""Fair shedding (DISSP chapter 5): all queries get about the same SIC, whatever they cost.

Comes in: a `Problem` (network, costs, rows, budget) and the SIC that every query has over its source time window.
Goes out: a plan whose drops are nested buckets of a source's rows; whole keys above joins of streams, whole windows
where results must be right, sampling shares above estimates.

`competition` is the question in numbers, `parts` reads it off a network, `admission` is the seed's algorithm 1,
`max_min` the exact shares by linear programs, `levels` turns answers into drops, `shedder` is what a run asks.
"""
