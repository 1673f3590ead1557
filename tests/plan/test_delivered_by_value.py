"""What a batch delivered, as counted."""

from __future__ import annotations

import pytest

import jettison as jt
from jettison.network import QoS, Value
from jettison.plan.delivered import counted_shares
from jettison.plan.drops.semantic import Semantic
from jettison.plan.plan import Plan
from jettison.statistics.profile import Profile
from jettison.statistics.samples import BatchSample, ValueSample


@pytest.mark.parametrize("selectivity", [{}, {"w": 0.7}])
def test_trust_3_the_share_of_a_drop_by_value_is_that_of_the_rows_counted_there(selectivity: dict[str, float]) -> None:
    """200 points are a rough sample of 990 rows, and the spread before the filter is not known: .5028 was claimed."""
    net = jt.Network("told")
    kept = net.source("s", "x double").where("100 div int(x) >= 0", name="w")
    kept.output("o", qos=QoS(value=Value("x", [(0, 50, 0.5), (50, 100, 1)])))
    kept.output("all")
    bounds = net.graph.tracks.by_output["o"].bounds
    drop = Semantic("x", bounds, (*(float(low >= 50) for low in bounds[:-1]), 0.0), keep=0.5)
    values = sorted(float(number % 100) for number in range(1000) if number % 100)
    points = tuple(values[int((place + 0.5) / 200 * 990)] for place in range(200))
    sample = BatchSample(
        0, 0.0, 0.0, 0.0, {"s": 1000}, arcs={"w>o": (990, 500)}, before={"w>o": ValueSample(990, points)}
    )
    delivered, _ = counted_shares(net.graph, Profile({}, selectivity), Plan({"w>o": drop}), sample)
    assert delivered["o"] == pytest.approx(500 / 990, abs=1e-6)
