"""What is observed of a batch's rows while they are computed: where, and under which names."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, Observation

from jettison.network.columns.schema import quoted
from jettison.network.graph import Graph
from jettison.spark.compile.value_samples import value_metrics


@dataclass
class Counted:
    """Observations placed in a batch's frames: on sources behind their drop, and on arcs before the drop there."""

    sources: dict[str, Observation] = field(default_factory=dict)
    arcs: dict[str, Observation] = field(default_factory=dict)
    newest: dict[str, Observation] = field(default_factory=dict)
    """By operator whose rows come to windows or joins of streams: how far its event times have got, before anything is
    shed by window."""
    before: dict[str, Observation] = field(default_factory=dict)
    """By source whose drop judges by value: the values before it."""
    tails: dict[str, Observation] = field(default_factory=dict)
    """By operator: the rows it gives, where drops stand before slices, which tell themselves what comes to them."""
    maps: dict[str, Observation] = field(default_factory=dict)
    """By map: what its tasks tell."""
    again: dict[str, int] = field(default_factory=dict)
    """Rows behind a source's drop, where they had to be counted by a job of their own."""
    within: dict[str, DataFrame] = field(default_factory=dict)
    """By source or arc: the persisted frame that holds the observation."""

    def places(self) -> Set[str]:
        return self.by_place().keys()

    def by_place(self) -> dict[str, Observation]:
        """All observations, under names that tell them apart."""
        newest = {newest_place(name): each for name, each in self.newest.items()}
        before = {before_place(name): each for name, each in self.before.items()}
        tails = {tail_place(name): each for name, each in self.tails.items()}
        maps = {map_place(name): each for name, each in self.maps.items()}
        return self.sources | self.arcs | newest | before | tails | maps


def newest_place(operator: str) -> str:
    """The name under which the newest event time of an operator's rows is observed."""
    return f"{operator} (newest)"


def before_place(source: str) -> str:
    """The name under which the values of a source's rows are observed before its drop."""
    return f"{source} (before)"


def tail_place(operator: str) -> str:
    """The name under which the rows that an operator gives are counted."""
    return f"{operator} (rows)"


def map_place(operator: str) -> str:
    """The name under which it is observed what a map's tasks tell."""
    return f"{operator} (map)"


def arc_metrics(graph: Graph, arc: str, condition: str, mask: int) -> list[str]:
    """What is observed of an inner arc's rows before its drop, in SQL: how many come, how many pass, and a sample of
    the values by which they could be judged."""
    at = graph.tracks.at(arc)
    values = [] if at is None else value_metrics(0, quoted(at[1]), mask)
    return ["count(1) AS rows", f"count_if({condition}) AS kept", *values]
