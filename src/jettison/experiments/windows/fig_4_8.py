"""Nested aggregates: the drop rate over the excess load, by where drops stand (figures 4.7 and 4.8).

Counts of 10 s, and of 100 s of those, with work before, between and behind them that takes about as long each. A window
drop stands at the input (Nested2), in the middle (Nested1), or results go by chance behind both (RDrop), which is all
that one could do without window drops. The seed: input <= middle <= random at all loads, and the random drop delivers
nothing beyond an excess of 65 %.

Measured are costs, and drop rates of 1/2 and 3/4; the curves are computed (see `window_places`).
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

PLACES = (Place("input"), Place("middle", left_out=("trips",)), Place("random", by_chance=("hundreds>behind",)))
_BATCH_S = 400.0
"""Four windows of 100 s: as many as one decision is about."""


def network_of(hashes: int) -> Network:
    """Of some 265 zones a batch has 40 windows of 10 s and 4 of 100 s: what is rare is hashed the more."""
    network = Network("nested")
    trips = network.source("trips", SCHEMA, event_time="pickup", id=["trip"])
    before = trips.where(busy("trip", hashes), name="before")
    tens = before.window("10 seconds", by="zone").agg(n="count(*)", name="tens")
    between = tens.where(busy("n", 4 * hashes), name="between")
    hundreds = between.window("100 seconds", by="zone").agg(n="sum(n)", name="hundreds")
    hundreds.where(busy("n", 40 * hashes), name="behind").output("counts")
    return network


def run(*, quick: bool, say: Say) -> Result:
    spark = local_session()
    rows, batches, hashes = (1_000, 1, 2) if quick else (40_000, 8, 600)
    with tempfile.TemporaryDirectory(prefix="jettison-fig-4-8-") as name:
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
        )
    title = "Thesis figure 4.8, nested aggregates: the earlier windows are dropped, the fewer have to go"
    return result("fig-4-8", saved, [place.name for place in PLACES], title)
