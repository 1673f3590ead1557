"""Kinds of drop: one file each, with its value, its checks, its dictionary form and the share that passes.

Comes in: what a shedder chose for an arc.
Goes out: a frozen value that a plan holds, a log keeps and the simulator follows; for Spark, `spark.compile.drops` has
one function per kind, found by registration.
"""

from jettison.plan.drops import by_key, cost_bound, random, semantic, stratified, window

__all__ = ["by_key", "cost_bound", "random", "semantic", "stratified", "window"]  # imported: every plan can be read
