"""Samples of values, taken with the counting that a batch does anyway: what histograms are learned from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jettison.network.graph import Graph
from jettison.spark.compile.drops import IDENTITY
from jettison.statistics.samples import ValueSample

VALUES_MASK = 15
"""Of rows whose identity has none of these bits values are looked at: one in 16."""
_POINTS = 200
_ACCURACY = 1000
_SAMPLED_ROWS = 4096


def valued_columns(graph: Graph, operator: str) -> tuple[str, ...]:
    """Columns of an operator that outputs, itself included, are valued by."""
    found = [track.columns[operator] for track in graph.tracks.all if operator in track.columns]
    return tuple(dict.fromkeys(found))


def sample_mask(rows: int) -> int:
    """Of which bits of a row's identity all must be 0 so that some 4,000 to 8,000 of so many rows are looked at.

    >>> sample_mask(100), sample_mask(10_000), sample_mask(1_000_000)
    (0, 1, 127)
    """
    mask = 1
    while rows >= 2 * mask * _SAMPLED_ROWS:
        mask *= 2
    return mask - 1


def value_metrics(number: int, value: str, mask: int = VALUES_MASK) -> list[str]:
    """Evenly spaced quantiles of a value in one row of 16, unless `mask` says another part, and how many of those had
    none."""
    sampled, number_of = f"{IDENTITY} & {mask} = 0", f"try_cast({value} AS double)"
    # one text, taken apart once, instead of 200 numbers that Spark looks at again in every step of its analysis
    shares = ",".join(f"{(point + 0.5) / _POINTS:.4f}" for point in range(_POINTS))
    at = f"CAST(split('{shares}', ',') AS array<double>)"
    usable = f"{sampled} AND {number_of} IS NOT NULL AND NOT isnan({number_of})"
    return [
        f"count_if({sampled}) AS v{number}_rows",
        f"count_if({usable}) AS v{number}_usable",
        f"percentile_approx(CASE WHEN {usable} THEN {number_of} END, {at}, {_ACCURACY}) AS v{number}_points",
    ]


def value_sample(number: int, seen: Mapping[str, Any]) -> ValueSample | None:
    """What was seen of one value; None where nobody looked at any row."""
    rows, points = seen.get(f"v{number}_rows"), seen.get(f"v{number}_points")
    if not rows:
        return None
    return ValueSample(rows, tuple(float(point) for point in points or ()), rows - seen[f"v{number}_usable"])


def value_samples(graph: Graph, operator: str, seen: Mapping[str, Any]) -> dict[str, ValueSample]:
    """What was seen, by "operator.column"."""
    found: dict[str, ValueSample] = {}
    for number, column in enumerate(valued_columns(graph, operator)):
        sample = value_sample(number, seen)
        if sample is not None:
            found[f"{operator}.{column}"] = sample
    return found
