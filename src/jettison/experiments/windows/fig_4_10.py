"""Aggregates side by side: the drop rate over the excess load, by where drops stand (figures 4.9 and 4.10).

Counts of 10 s and of 20 s of the same trips, with work before the split, on both branches, and behind both aggregates.
One window drop stands at the input and decides for both, in steps of 20 s, the lcm of their slides (Shared_WinDrop);
or each branch has its own behind the split (Split_WinDrop); or results go by chance behind the aggregates
(Split_RDrop). The drop rate is that of both outputs together. The seed: shared <= split <= random at all loads.

Measured are costs, and drop rates of 1/2 and 3/4; the curves are computed (see `window_places`). What is before the
split is done once, its rows are kept for both branches.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from jettison.experiments.harness import Result, Say
from jettison.experiments.support.trip_files import SCHEMA
from jettison.experiments.windows.window_figure import result
from jettison.experiments.windows.window_places import SHARES, Place, busy, measure
from jettison.network.declare import Network
from jettison.spark.run.session import local_session

PLACES = (
    Place("shared", step_us=20_000_000),
    Place("split", left_out=("trips",)),
    Place("random", by_chance=("tens>behind_tens", "twenties>behind_twenties")),
)
_BATCH_S = 80.0
"""Four steps of 20 s: as many as one decision is about."""


def network_of(hashes: int) -> Network:
    """A batch has 8 windows of 10 s and 4 of 20 s for each of some 265 zones: what is rare is hashed the more."""
    network = Network("fan_out")
    trips = network.source("trips", SCHEMA, event_time="pickup", id=["trip"])
    before = trips.where(busy("trip", hashes), name="before")
    for name, seconds, times in (("tens", 10, 10), ("twenties", 20, 20)):
        rows = before.where(busy("cents", hashes // 2), name=f"to_{name}")
        counts = rows.window(f"{seconds} seconds", by="zone").agg(n="count(*)", name=name)
        counts.where(busy("n", times * hashes), name=f"behind_{name}").output(f"{name}_out")
    return network


def run(*, quick: bool, say: Say) -> Result:
    spark = local_session()
    rows, batches, hashes = (1_000, 1, 2) if quick else (40_000, 8, 600)
    with tempfile.TemporaryDirectory(prefix="jettison-fig-4-10-") as name:
        saved = measure(
            spark,
            network_of,
            PLACES,
            Path(name),
            say,
            rows=rows,
            hashes=hashes,
            batches=batches,
            batch_s=_BATCH_S,
            shares=(0.5, 1.0) if quick else SHARES,
            shared=frozenset({"before"}),
        )
    title = "Thesis figure 4.10, aggregates side by side: the earlier windows are dropped, the fewer have to go"
    return result("fig-4-10", saved, [place.name for place in PLACES], title)
