"""Where rows go: results, what is shed, dead letters. Checked before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from jettison.errors import StartError
from jettison.network.columns.words import meant
from jettison.network.graph import Graph
from jettison.spark.write.dead_letters import ShedSinks
from jettison.spark.write.sinks import ParquetSink, Sink, as_sink


@dataclass(frozen=True)
class Targets:
    """All sinks of a run; `dead_letters` is None where they are kept in the checkpoint."""

    outputs: Mapping[str, Sink]
    shed: ShedSinks
    dead_letters: Sink | None

    @property
    def all(self) -> dict[str, Sink | None]:
        """Every sink, by what it is to the user."""
        return {
            **{f"output {name!r}": sink for name, sink in self.outputs.items()},
            **{f"on_shed {name}": sink for name, sink in self.shed.sinks.items()},
            "dead_letters": self.dead_letters,
        }

    @property
    def paths(self) -> dict[str, str | None]:
        """The folders of parquet sinks."""
        return {name: sink.path for name, sink in self.all.items() if isinstance(sink, ParquetSink)}


def check_targets(
    graph: Graph, sinks: Mapping[str, Any], on_shed: Mapping[str, Any], dead_letters: Any, checkpoint: str | None
) -> Targets:
    """The sinks of a run: one for every output, no two on one path."""
    letters = None if dead_letters is None else as_sink("dead_letters", dead_letters)
    targets = Targets(check_sinks(graph, sinks), ShedSinks(graph, on_shed), letters)
    check_paths(targets.all, checkpoint)
    return targets


def check_sinks(graph: Graph, sinks: Mapping[str, Any]) -> dict[str, Sink]:
    """A sink for every output, and for nothing else."""
    names = [output.name for output in graph.outputs]
    for name in sinks:
        if name not in names:
            known = ", ".join(names)
            raise StartError(
                f"there is a sink for {name!r}, which is not an output{meant(name, names)}. Outputs: {known}."
            )
    for name in names:
        if name not in sinks:
            raise StartError(f"output {name!r} has no sink: add sinks={{{name!r}: jt.parquet('out/{name}')}}.")
    return {name: as_sink(name, sinks[name]) for name in names}


def check_paths(sinks: Mapping[str, Sink | None], checkpoint: str | None = None) -> None:
    """A batch's folder is replaced as a whole: two sinks on one path would undo each other. What else is in a sink's
    folder Spark takes for results when it reads them."""
    owners: dict[str, str] = {}
    kept = None if checkpoint is None or urlparse(checkpoint).scheme else Path(checkpoint).absolute()
    for name, sink in sinks.items():
        if isinstance(sink, ParquetSink):
            path = sink.path.rstrip("/")
            place = Path(path).absolute()
            shown = path if urlparse(path).scheme else str(place)
            if not urlparse(path).scheme and place.exists() and not place.is_dir():
                raise StartError(f"{name}: {shown!r} is a file: give the path of a folder.")
            if not urlparse(path).scheme and kept is not None and kept.is_relative_to(place):
                raise StartError(
                    f"{name} writes to {shown!r}, and the checkpoint {str(kept)!r} is inside: results could not be "
                    f"read any more. Give the checkpoint a folder of its own."
                )
            if path in owners:
                raise StartError(f"{owners[path]} and {name} both write to {shown!r}: give each a path of its own.")
            owners[path] = name
