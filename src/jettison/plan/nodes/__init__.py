"""Plans for several nodes together: linear programs, tables of plans made in advance, feasible input tables (thesis 5).

Comes in: a placed network, a profile, the rates of its sources.
Goes out: a `NodesPlan` (the share that every drop keeps, and the load that is left on every node), cut into a plan per
fragment; and messages between coordinator and nodes, or between neighbours, which are values.
"""
