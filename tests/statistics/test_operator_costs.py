"""Costs from the work of prefixes: what is told apart, what is shared, what is noise."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from jettison.network.declare import Network
from jettison.network.graph import Graph
from jettison.statistics.operator_costs import (
    RESOLUTION_MS,
    RESOLUTION_SHARE,
    PrefixWork,
    kept_copies,
    operator_costs,
    prefix_ends,
    work_above_ms,
)

pytestmark = pytest.mark.core


def shop() -> Graph:
    """A parsed source, two filters in a row, a split into a window and a projection of two steps."""
    net = Network("shop")
    s = net.source("s", "a int, at timestamp", event_time="at", payload="json", id=["a"])
    paid = s.where("a > 0", name="some").where("a > 1", name="paid")
    paid.window("10 seconds").agg(n="count(*)", name="busy").output("windows")
    paid.with_columns({"b": "a + 1"}, name="more").select("b", name="narrow").output("rows")
    return net.graph


ENTERING = {"s": 1000.0, "some": 1000.0, "paid": 500.0, "busy": 400.0, "more": 400.0, "narrow": 400.0}
WORK = PrefixWork(
    {"s": 210.0, "paid": 40.0, "busy": 45.0, "narrow": 25.0}, copies={"s": 10.0, "paid": 5.0}, raw={"s": 10.0}
)


def test_copies_are_kept_behind_what_is_dear_and_at_splits_and_cheap_operators_are_measured_together() -> None:
    assert kept_copies(shop()) == {"s", "paid"}, "nobody but an output reads busy"
    assert prefix_ends(shop()) == {"s", "paid", "busy", "narrow"}


def test_work_is_the_difference_to_what_the_prefix_begins_with() -> None:
    costs = operator_costs(shop(), WORK, ENTERING)
    assert costs == pytest.approx({"s": 200.0, "some": 20.0, "paid": 20.0, "busy": 100.0, "more": 25.0, "narrow": 25.0})
    assert work_above_ms(shop(), costs, ENTERING, "paid") == pytest.approx(230.0)
    assert work_above_ms(shop(), costs, ENTERING, "busy") == pytest.approx(270.0)


def changed(**prefixes: float) -> PrefixWork:
    return PrefixWork({**WORK.prefixes, **prefixes}, WORK.copies, WORK.raw)


@pytest.mark.parametrize("narrow_ms", [0.0, 4.0, 5.0, 12.0])
def test_a_difference_below_the_resolution_counts_as_the_resolution(narrow_ms: float) -> None:
    """Of 270 ms of work in all, less than 4 % is noise, negative differences too."""
    costs = operator_costs(shop(), changed(narrow=narrow_ms), ENTERING)
    extra_ms = 200 + 30 + 40 + max(0.0, narrow_ms - 5.0)
    assert costs["narrow"] == pytest.approx(1000 * RESOLUTION_SHARE * extra_ms / 800)
    assert costs["busy"] == pytest.approx(100.0), "others are as they were"


def test_noise_of_a_small_sample_is_no_cost() -> None:
    tiny = PrefixWork({"s": 1.2, "paid": 0.5, "busy": 0.4, "narrow": 0.6}, {"s": 0.4, "paid": 0.3}, {"s": 0.9})
    costs = operator_costs(shop(), tiny, ENTERING)
    assert costs["s"] == pytest.approx(1000 * RESOLUTION_MS / 1000)
    assert costs["busy"] == pytest.approx(1000 * RESOLUTION_MS / 400)


@pytest.mark.parametrize("noise", [0.98, 1.02])
def test_noise_of_a_few_percent_stays_so(noise: float) -> None:
    """A dear prefix above is in no difference below it: that is what copies are for."""
    noisy = changed(s=210.0 * noise, paid=40.0 * noise)
    was, now = operator_costs(shop(), WORK, ENTERING), operator_costs(shop(), noisy, ENTERING)
    assert all(abs(now[name] / was[name] - 1) < 0.03 for name in was)


def test_aggregates_that_share_slices_cost_what_they_add() -> None:
    net = Network("two")
    s = net.source("s", "a int, at timestamp", event_time="at", id=["a"])
    s.window("10 seconds").agg(n="count(*)", name="one").output("o1")
    s.window("20 seconds", slide="10 seconds").agg(n="count(*)", name="two").output("o2")
    entering = {"s": 1000.0, "one": 1000.0, "two": 1000.0}
    times: Mapping[str, float] = {"s": 20.0, "one": 110.0, "two": 130.0}
    apart = operator_costs(net.graph, PrefixWork(times, {"s": 10.0}, {"s": 10.0}), entering)
    assert (apart["one"], apart["two"]) == (100.0, 120.0)
    shared = operator_costs(net.graph, PrefixWork(times, {"s": 10.0}, {"s": 10.0}, {"two": "one"}), entering)
    assert (shared["one"], shared["two"]) == (100.0, 20.0)


def test_what_there_was_no_time_for_has_no_cost_and_what_feeds_two_prefixes_the_lower_of_two() -> None:
    net = Network("late")
    s = net.source("s", "a int", id=["a"]).where("a > 0", name="w")
    s.where("a > 1", name="one").output("o1")
    s.where("a > 2", name="two").output("o2")
    entering = dict.fromkeys(("s", "w", "one", "two"), 1000.0)
    costs = operator_costs(net.graph, PrefixWork({"s": 20.0, "one": 60.0, "two": 40.0}, {}, {"s": 10.0}), entering)
    assert costs == {"s": 10.0, "w": 10.0, "one": 20.0, "two": 10.0}
    assert set(operator_costs(net.graph, PrefixWork({"s": 20.0}, {}, {"s": 10.0}), entering)) == {"s"}
