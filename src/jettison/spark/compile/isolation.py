"""Which rows of a batch make functions of the user fail: what cannot be tried row by row is found by running it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from jettison.network.graph import Graph
from jettison.network.operators import Apply, Select, Where, WithColumns, kind_of
from jettison.spark.compile.compiler import Compiler
from jettison.spark.guard.careful import holds_function
from jettison.spark.guard.isolate import isolate


def set_failing_rows_aside(graph: Graph, compiler: Compiler, say: Callable[[str], None]) -> bool:
    """Look for rows on which functions of the user fail, and set them aside; whether there are any."""
    known = compiler.known
    before = dict(known.set_aside)
    for operator in graph.operators:
        tried = isinstance(operator, Apply | Where | Select | WithColumns)
        if not tried or not compiler.is_built_above(operator.name):
            continue
        if not holds_function(operator, compiler.operator(operator.inputs[0]), known):
            continue
        rows = compiler.arriving_at(operator)
        already = len(known.set_aside.get(operator.name, ()))
        found, reason = isolate(operator, rows, partial(compiler.alone, operator), already)
        if found:
            say(f"{kind_of(operator)} {operator.name!r} fails on {len(found)} rows ({reason}): they are rejected")
            known.set_aside[operator.name] = known.set_aside.get(operator.name, frozenset()) | found
    return known.set_aside != before
