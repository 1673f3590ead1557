"""Several nodes in the simulator: coordinated beats local, and no trouble leaves a node without shedding."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.plan.nodes.networks import shop

import jettison as jt
from jettison.errors import NetworkError, StartError
from jettison.experiments.nodes.distributed import chain
from jettison.plan.nodes.fragment_structure import node_view
from jettison.plan.nodes.structure import Matrix, Structure, structure
from jettison.plan.nodes.tables import Grain
from jettison.sim.nodes import NodesResult, Trouble, simulate_nodes
from jettison.sim.nodes.coordination import Neighbours
from jettison.sim.nodes.engine import NodesSettings
from jettison.sim.nodes.links import LinkQueue
from jettison.sim.nodes.trouble import Post
from jettison.synthetic.rates import Burst

pytestmark = pytest.mark.core

RATES = {"s0": 60_000.0, "s1": 60_000.0}


_DONE: dict[str, NodesResult] = {}
"""Runs that several tests look at: the same arguments give the same result."""


def simulated(mode: str, trouble: Trouble) -> NodesResult:
    graph, profile = chain()
    return simulate_nodes(graph, profile, RATES, seconds=20.0, settings=NodesSettings(mode=mode), trouble=trouble)


def run(mode: str = "per-tick", **trouble: object) -> NodesResult:
    given = Trouble(**trouble)  # type: ignore[arg-type]
    key = f"{mode} {given}"
    if key not in _DONE:
        _DONE[key] = simulated(mode, given)
    return _DONE[key]


def test_coordinated_plans_deliver_more_than_local_ones_and_runs_repeat() -> None:
    local, coordinated = run("local"), run("per-tick")
    assert coordinated.worth > 1.2 * local.worth
    assert simulated("per-tick", Trouble()) == coordinated
    assert run("tables").worth > local.worth
    assert run("neighbours").worth > local.worth


def test_agreed_drops_are_applied_where_a_stream_splits_only_on_the_next_node() -> None:
    """The node below gets what the plan says, and need not shed the rest by itself."""
    made, rates = shop()
    found = simulate_nodes(made.graph, made.profile, rates, seconds=30)
    settled = [batch for batch in found.batches if batch.started_ms >= 15_000]
    left = [batch for batch in settled if batch.node == "left"]
    # items take .45 s of work at 7 us each, and nothing else comes to the node
    assert np.mean([batch.rows_in for batch in left]) == pytest.approx(0.45e6 / 7, rel=0.05)
    assert np.mean([batch.busy for batch in settled if batch.node == "ingest"]) < 0.8
    assert found.in_time["items"] == pytest.approx(0.45e6 / 7 / 135_000, rel=0.05)


@pytest.mark.parametrize("mode", ["local", "per-tick"])
def test_what_a_node_gives_on_and_what_it_drops_are_all_that_it_would_give_on(mode: str) -> None:
    """Also where rows are dropped at the input of a node and again on a closed branch."""
    made, rates = shop()
    found = simulate_nodes(made.graph, made.profile, rates, seconds=20, settings=NodesSettings(mode=mode))
    per_row = {"ingest": None, "left": 1.3, "right": 0.5}
    for node, share in per_row.items():
        here = [batch for batch in found.batches if batch.node == node]
        came = sum(batch.rows_in for batch in here)
        whole = came * share if share else came * (0.75 * 0.9 + 0.25 * 0.5)  # three quarters of the rows are views
        assert sum(batch.given + batch.dropped for batch in here) == pytest.approx(whole, rel=0.01)


def test_outputs_with_less_than_a_row_per_second_get_what_they_get() -> None:
    net = jt.Network("sparse")
    stream = net.source("a", "x long").where("true", name="f")
    stream.where("true", name="g").output("rare")
    net.place(jt.Node("one", ["f"], 1.0), jt.Node("two", ["g"], 1.0))
    profile = jt.Profile({"f": 10.0, "g": 10.0}, {"g": 0.0002})
    for seed in range(3):
        calm = simulate_nodes(net.graph, profile, {"a": 1000.0}, seconds=60, seed=seed)
        assert calm.share == calm.in_time == {"rare": 1.0}, "nothing was dropped"
        assert calm.worth == calm.worth_of_all == pytest.approx(1.0)
    dear = jt.Profile({"f": 10.0, "g": 1800.0}, {"g": 0.001})
    worths = [simulate_nodes(net.graph, dear, {"a": 1000.0}, seconds=60, seed=seed).worth for seed in range(6)]
    assert np.mean(worths) == pytest.approx(0.5, rel=0.12)


def test_a_node_that_never_comes_back_delivers_nothing_more() -> None:
    found = run(gone={"C": [(6.0, 60.0)]})
    assert sum(found.in_time.values()) < 0.6 * sum(run().in_time.values())


def test_the_shedder_of_nodes_is_chosen() -> None:
    made, rates = shop()
    chosen = [
        simulate_nodes(
            made.graph, made.profile, rates, seconds=8, settings=NodesSettings(mode="local", shedder=shedder)
        )
        for shedder in ("semantic", "input-uniform")
    ]
    assert chosen[0].batches != chosen[1].batches


def test_below_capacity_nothing_is_dropped() -> None:
    graph, profile = chain()
    found = simulate_nodes(graph, profile, {"s0": 5000.0, "s1": 5000.0}, seconds=12)
    assert sum(batch.dropped for batch in found.batches) == 0
    assert found.share == pytest.approx({"o0": 1.0, "o1": 1.0}, abs=0.01)


@pytest.mark.parametrize(
    "trouble",
    [
        {"lost_share": 1.0},
        {"lost_share": 0.3, "jitter_ms": 3000.0},
        {"coordinator_gone": [(0.0, 60.0)]},
        {"gone": {"B": [(6.0, 10.0)]}},
        {"gone": {"A": [(6.0, 9.0)], "C": [(12.0, 14.0)]}},
    ],
)
def test_no_node_is_ever_without_shedding(trouble: dict[str, object]) -> None:
    for mode in ("per-tick", "neighbours"):
        found = run(mode, **trouble)
        assert found.unshed_batches == 0
        after = [batch.busy for batch in found.batches if batch.started_ms >= 18_000]
        assert max(after) <= 1.05, "every node keeps up in the end"


def test_without_any_message_nodes_do_as_well_as_by_themselves() -> None:
    assert run(lost_share=1.0).worth == pytest.approx(run("local").worth, rel=0.05)


def test_an_old_plan_is_followed_by_the_rates_of_now() -> None:
    """A plan promises rows per second: when rates fall while the coordinator is gone, a larger share passes."""
    graph, profile = chain()
    falling = {name: Burst(3000.0, 60_000.0, at_s=0.0, length_s=10.0) for name in RATES}
    gone = Trouble(coordinator_gone=[(8.0, 24.0)])
    found = simulate_nodes(graph, profile, falling, seconds=24, trouble=gone)
    after = [batch for batch in found.batches if batch.node == "A" and batch.started_ms >= 14_000]
    assert sum(batch.dropped for batch in after) == 0, "all of it fits"


def test_a_node_that_is_gone_runs_nothing_and_comes_back() -> None:
    found = run(gone={"B": [(6.0, 10.0)]})
    times = [batch.started_ms for batch in found.batches if batch.node == "B"]
    assert not [at for at in times if 6000 <= at < 10_000]
    assert [at for at in times if at >= 10_000]


@pytest.mark.parametrize("mode", ["per-tick", "neighbours"])
def test_a_node_in_the_middle_that_comes_back_is_told_again(mode: str) -> None:
    """It comes back with nothing; what it knew of others is sent to it anew, and all is as before."""
    whole, found = run(mode), run(mode, gone={"B": ((5.0, 9.0),)})
    after = [batch for batch in found.batches if batch.node == "A" and batch.started_ms > 14_000]
    before = [batch for batch in whole.batches if batch.node == "A" and batch.started_ms > 14_000]
    assert np.mean([each.given for each in after]) == pytest.approx(np.mean([each.given for each in before]), rel=0.05)


def test_neighbours_hear_of_a_change_after_a_restart() -> None:
    """Versions of a node that was restarted begin anew, and its children's tables are gone."""
    graph, profile = chain()
    made, dear = structure(graph, profile), structure(graph, replace(profile, cost_us={**profile.cost_us, "c0": 300.0}))
    between = Neighbours(made, Post(Trouble(message_ms=1.0), seed=0), Grain(0.1))
    rates = {"A": {"s0": 1e4, "s1": 1e4}, "B": {"a0": 1e4, "a1": 1e4}, "C": {"b0": 1e4, "b1": 1e4}}

    def talk(since: int) -> None:
        for tick in range(since, since + 8):
            for at, (node, coming) in enumerate(rates.items()):
                between.keeps(node, coming, 1000.0 * tick + 100 * at)

    talk(0)
    assert between.nodes["A"].complete
    for node in ("B", "C"):
        between.restarted(node, 8000.0)
    assert not between.nodes["B"].complete
    between.nodes["C"].changed(node_view(dear, "C"))
    talk(9)
    assert between.nodes["B"].complete
    assert np.array_equal(between.nodes["A"].fit.loads[-1], node_view(dear, "A").loads(_loads(dear))[-1])
    assert between.nodes["A"].fit.rates[:, 0].max() == pytest.approx(1e6 / 300)


def _loads(made: Structure) -> dict[str, Matrix]:
    """What the tables of nodes B and C say of loads."""
    return {"B": node_view(made, "B").loads({"C": node_view(made, "C").loads({})})}


def test_links_delay_and_bound_what_they_carry() -> None:
    link = LinkQueue(delay_ms=10.0, rows_per_s=1000.0)
    for at in (0.0, 1.0):
        link.put(np.array([at]), np.array([[100.0]]), now_ms=at)
    assert [until for until, _, _ in link.ready(500.0)] == [110.0, 210.0]
    narrow = run(rows_per_s=5000.0)
    assert narrow.waiting > run().waiting
    assert sum(narrow.in_time.values()) < sum(run().in_time.values())


def test_messages_may_overtake_each_other() -> None:
    post = Post(Trouble(message_ms=10.0, jitter_ms=1000.0), seed=3)
    for number in range(20):
        post.send("B", number, now_ms=float(number))
    came = post.received("B", 5000.0)
    assert sorted(came) == list(range(20))
    assert came != sorted(came)


def test_what_is_refused() -> None:
    graph, profile = chain()
    with pytest.raises(StartError, match="mode is 'central'"):
        NodesSettings(mode="central")
    with pytest.raises(StartError, match="headroom is 2"):
        NodesSettings(headroom=2)
    with pytest.raises(StartError, match="deadline_s is 0"):
        NodesSettings(deadline_s=0)
    with pytest.raises(NetworkError, match="epsilon is 0"):
        NodesSettings(epsilon=0)
    for rate in (0, 0.0, -1.0, float("nan"), float("inf"), "many", True):
        with pytest.raises(StartError, match="rate of source 's1' is"):
            simulate_nodes(graph, profile, {"s0": 1.0, "s1": rate}, seconds=5)  # type: ignore[dict-item]
    with pytest.raises(StartError, match="'X' is no node"):
        simulate_nodes(graph, profile, RATES, seconds=5, trouble=Trouble(gone={"X": [(0, 1)]}))
    with pytest.raises(StartError, match="source 's1' has none"):
        simulate_nodes(graph, profile, {"s0": 1.0}, seconds=5)
    with pytest.raises(StartError, match="seconds is 0"):
        simulate_nodes(graph, profile, RATES, seconds=0)
