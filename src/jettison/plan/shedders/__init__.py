"""Policies: each file answers a `Problem` with a `Plan`.

Comes in: a `Problem`.
Goes out: a `Plan` that is feasible, or one whose reason says why none is. `registry` finds a policy by its name.
"""
