"""Arcs on which tuples go early, on all ways to an aggregate."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from jettison.network.arc import Arc
from jettison.plan.windows.decisions import WindowDecisions


def cutting_together(decisions: WindowDecisions, arc: str) -> frozenset[str] | None:
    """The arcs that must lose tuples together with one, so that on every way to its aggregates they do: itself
    alone where streams do not merge. None where some way has none."""
    found, done = {arc}, set[str]()
    waiting = list(decisions.arcs.deciders(arc) or ())
    while waiting:
        name = waiting.pop()
        done.add(name)
        for cut in list(_cuts(decisions, name, found, at_inputs=Arc(arc).is_input)):
            if cut is None:
                return None
            found.add(cut)
            waiting += [each for each in decisions.arcs.deciders(cut) or () if each not in done]
    return frozenset(found)


def _cuts(decisions: WindowDecisions, name: str, known: Collection[str], *, at_inputs: bool) -> Iterator[str | None]:
    """On every way up from an operator: a known cut, else an input, or the nearest arc where tuples may go."""
    for arc in decisions.graph.arcs_into(name):
        tail = arc.tail
        splits = tail is not None and len(decisions.graph.consumers[tail]) > 1
        if arc in known:
            yield arc
        elif tail and (_cut_above(decisions, tail, known) or at_inputs or not (splits and decisions.droppable(arc))):
            yield from _cuts(decisions, tail, known, at_inputs=at_inputs)
        else:
            yield arc if decisions.droppable(arc) else None


def _cut_above(decisions: WindowDecisions, name: str, known: Collection[str]) -> bool:
    arcs = decisions.graph.arcs_into(name)
    return any(arc in known or (arc.tail is not None and _cut_above(decisions, arc.tail, known)) for arc in arcs)


def deciding_arc(decisions: WindowDecisions, name: str, arcs: Collection[str]) -> str | None:
    """Of these arcs, the last on the way to an aggregate."""
    waiting, seen = [name], set[str]()
    while waiting:
        at = waiting.pop(0)
        for arc in decisions.graph.arcs_into(at):
            if arc in arcs and decisions.droppable(arc):
                return arc
            tail = arc.tail
            if tail and tail not in seen:
                seen.add(tail)
                waiting.append(tail)
    return None
