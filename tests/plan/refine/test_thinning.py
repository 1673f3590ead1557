"""When rows were dropped by chance, and what was kept of each group: what a result must know to call itself exact."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from jettison.network import Network, QoS
from jettison.network.operators import Aggregate
from jettison.plan.drops.random import Random
from jettison.plan.drops.stratified import Stratified
from jettison.plan.plan import Plan
from jettison.plan.refine.thinning import MOST_ENTRIES, GroupShares, Thinned, shares_above, thinned_after, touching

pytestmark = pytest.mark.core

HALF = GroupShares(others=0.5)


def network() -> tuple[Network, Aggregate]:
    net = Network("taxi")
    one, two = (
        net.source(name, "trip long, at timestamp, place int, kind string", event_time="at", id=["trip"])
        for name in ("one", "two")
    )
    both = one.where("trip > 0", name="paid").union(two, name="both").select("trip", "place AS zone", name="zones")
    both.window("10 seconds", by="zone").agg(n="count(*)", name="busy").output("o", qos=QoS(on_loss="estimate"))
    return net, net.graph.aggregates[0]


def test_trust_4_shares_multiply_along_a_way_and_each_way_counts() -> None:
    net, busy = network()
    drop = Stratified(("place",), 0.5, ((7, 0.25),), 1.0)
    plan = Plan({"one": drop, "one>paid": Random(0.5), "two": Random(0.1)})
    assert shares_above(net.graph, plan, busy) == (
        GroupShares(("zone",), ((7, 0.125),), 0.5),
        GroupShares(others=0.1),
    )
    unlike = Plan({"one": Stratified(("kind",), 0.5, ((7, 0.25),), 1.0)})
    assert shares_above(net.graph, unlike, busy) == (GroupShares(others=0.25),), "nobody can tell whose rows they were"
    assert shares_above(net.graph, Plan({"one": Random(1.0)}), busy) == ()


def test_trust_4_entries_grow_end_and_go() -> None:
    first = thinned_after((), [HALF], None, (None, 5), None)
    assert first == (Thinned(HALF),)
    assert thinned_after(first, [HALF], 10, (5, 15), 10) == first, "the same drop goes on"
    assert thinned_after(first, [], 10, (15, 15), 10) == first, "nothing tells yet how far it had got"
    ended = thinned_after(first, [], 10, (15, 25), 10)
    assert ended == (Thinned(HALF, None, 25),)
    again = thinned_after(ended, [HALF], 20, (25, 35), 20)
    assert again == (*ended, Thinned(HALF, 20))
    assert thinned_after(again, [HALF], 30, (35, 45), 26) == (Thinned(HALF, 20),)


def test_trust_4_entries_are_few_and_forget_no_loss() -> None:
    entries: tuple[Thinned, ...] = ()
    for batch in range(3 * MOST_ENTRIES):
        shares = GroupShares(("zone",), ((batch, 0.1 + 0.01 * batch),), 1.0)
        entries = thinned_after(entries, [shares], 0, (batch, batch + 1), 0)
        assert len(entries) <= MOST_ENTRIES
    (one,) = touching(entries, (0, 0), 100)
    assert dict(one.shares.groups) == {batch: 0.1 + 0.01 * batch for batch in range(3 * MOST_ENTRIES)}
    assert one.shares.others == 1.0


def test_trust_4_only_entries_that_overlap_closing_windows_matter() -> None:
    entries = (Thinned(HALF, 0, 25), Thinned(GroupShares(others=0.1), 40, None))
    assert touching(entries, (30, 30), 10) == ()
    assert touching(entries, (20, 20), 10) == entries[:1]
    assert touching(entries, (20, 40), 10) == entries
    assert touching(entries, (20, 25), 20) == (Thinned(HALF, 0, 25), Thinned(GroupShares(others=0.1), 40, None))
    assert touching(entries, (25, 25), 20) == (Thinned(GroupShares(others=0.1), 0, None),), "one for both"


def test_trust_4_groups_of_unlike_columns_have_the_lowest_share() -> None:
    one, two = GroupShares(("zone",), ((1, 0.5),)), GroupShares(("kind",), ((2, 0.2),))
    assert one.or_lower(two) == GroupShares(others=0.2)
    assert one.times(two) == GroupShares(others=0.1)


def test_trust_4_entries_are_kept_to_the_last_bit() -> None:
    entry = Thinned(GroupShares(("zone",), ((-(2**63), 1 / 3),), 0.1 + 0.2), None, 7)
    assert Thinned.from_dict(json.loads(json.dumps(asdict(entry)))) == entry
