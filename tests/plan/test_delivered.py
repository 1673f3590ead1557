"""What a run delivered: rows that came over rows that would have come, whatever filters pass in which batch."""

from __future__ import annotations

import pytest

from jettison.network import Network
from jettison.plan.drops.random import Random
from jettison.plan.plan import Plan
from jettison.statistics.samples import BatchSample, OutputSample
from jettison.telemetry.report import Totals

pytestmark = pytest.mark.core


def test_trust_7_batches_weigh_what_would_have_come_to_the_output() -> None:
    """900 of 1,000 rows pass the filter in the batch that is shed to a tenth, 100 in the one that is not."""
    net = Network("one")
    net.source("s", "x int").where("x > 0", name="w").output("o")
    totals = Totals(net.graph, 900.0)
    shed = Plan({"s": Random(0.1)}, "overload", delivered={"o": 0.1})
    calm = BatchSample(0, 0.0, 1000.0, 80.0, {"s": 1000}, outputs={"o": OutputSample(100)})
    burst = BatchSample(1, 0.0, 1000.0, 80.0, {"s": 1000}, arcs={"s": (1000, 100)}, outputs={"o": OutputSample(90)})
    totals.add(calm, Plan(delivered={"o": 1.0}))
    totals.add(burst, shed)
    assert totals.delivered_share("o") == pytest.approx(190 / 1000)
