"""How far event times have got at sources and functions, after each of the last two batches.

Files name places, not operators: a function may be called otherwise in another program, or have changed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from jettison.network.event_time.coverage import places_above
from jettison.network.event_time.progress import further
from jettison.network.graph import Graph
from jettison.network.identity.function_hash import unknown_parts
from jettison.network.identity.lineage_hash import identity, lineage
from jettison.network.operators import Apply
from jettison.spark.checkpoint.sealed import write_sealed
from jettison.spark.checkpoint.small_files import Folder
from jettison.spark.state.presence_files import SEEN, named_where_damaged, read_json

Times = Mapping[str, int | None]
"""By operator, the newest event time; None where not all rows were looked at."""


class SeenTimes:
    """The newest event times of one run, by operator, as they are in its checkpoint."""

    def __init__(self, folder: Folder, graph: Graph, code: Mapping[str, tuple[str, ...]]) -> None:
        self._folder = folder
        self._graph = graph
        self._places = {
            each.name: _place(graph, each.name, code) for each in graph.operators if _seen_at(graph, each.name)
        }
        self._unsure = frozenset(name for name in self._places if unknown_parts(lineage(graph, name)))
        with named_where_damaged(folder, SEEN):
            self._seen: dict[int, dict[str, int | None]] = {
                int(batch): self.by_operator(times) for batch, times in (read_json(folder, SEEN) or {}).items()
            }

    def after(self, batch: int) -> Times | None:
        """What was seen up to a batch; None where that is not known."""
        return self._seen.get(batch)

    def saw(self, batch: int, newest_us: Times) -> dict[str, int]:
        """Write down how far event times have got with a batch, when all of its rows have been looked at; those of
        this batch that are known.

        None stands for a place that not all rows of the batch were looked at: nobody knows how far times have got there
        until it is seen again.
        """
        now = {name: time for name, time in newest_us.items() if name in self._places}
        seen = {name: time for name, time in now.items() if time is not None}
        if not self._places:
            return seen
        before = self._before(batch) or {}
        known = {name: time for name, time in before.items() if time is not None}
        unknown = {name: None for name in {**before, **now} if name not in seen and None in _values(name, before, now)}
        after: dict[str, int | None] = {**further(known, seen), **unknown}
        self._seen = {number: times for number, times in self._seen.items() if number == batch - 1} | {batch: after}
        content = {str(number): self.by_place(self._sure(times)) for number, times in self._seen.items()}
        write_sealed(self._folder, SEEN, json.dumps(content))
        return seen

    def above(self, name: str) -> tuple[str, ...]:
        """The operators above one at which event times can be seen."""
        return tuple(place for place in places_above(self._graph, name) if place in self._places)

    def by_operator(self, times: Mapping[str, Any]) -> dict[str, Any]:
        """Times by operator, of those by place in files; operators with the same place see the same rows."""
        return {name: times[place] for name, place in self._places.items() if place in times}

    def by_place(self, times: Times) -> dict[str, int | None]:
        """Times by place, as files have them: the latest of all operators at a place, None where one is not known."""
        found: dict[str, int | None] = {}
        for name, time in times.items():
            place = self._places[name]
            other = found.get(place, time)
            found[place] = None if time is None or other is None else max(time, other)
        return found

    def _sure(self, times: Times) -> dict[str, int | None]:
        """Times for another run, which may have another function at a place of which only the type is known."""
        return {name: None if name in self._unsure else time for name, time in times.items()}

    def _before(self, batch: int) -> dict[str, int | None] | None:
        earlier = [number for number in self._seen if number < batch]
        return self._seen[max(earlier)] if earlier else None


def _values(name: str, *times: Mapping[str, int | None]) -> list[int | None]:
    return [each[name] for each in times if name in each]


def _seen_at(graph: Graph, name: str) -> bool:
    """Whether event times can be seen at an operator."""
    operator = graph.by_name[name]
    timed = any(source.event_time is not None for source in graph.sources_above(name))
    return timed and (isinstance(operator, Apply) or not operator.inputs)


def _place(graph: Graph, name: str, code: Mapping[str, tuple[str, ...]]) -> str:
    """The name of a place in files: functions may be called otherwise in another program, or have changed."""
    if not graph.by_name[name].inputs:
        return name
    lines = "".join(f" {line}" for line in code.get(name, ()))
    return f"apply {identity(graph, name)}{lines}"
