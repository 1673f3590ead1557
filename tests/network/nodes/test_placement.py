"""Placement and fragments: what is refused, what is completed, and that a fragment is a network of its own."""

from __future__ import annotations

import pytest

import jettison as jt
from jettison.errors import NetworkError
from jettison.network.nodes.boxes import as_boxes
from jettison.network.render import as_mermaid
from jettison.spec.as_yaml import to_yaml
from jettison.spec.network_file import from_yaml

pytestmark = pytest.mark.core


def declared() -> jt.Network:
    net = jt.Network("pipeline")
    clicks = net.source("clicks", "user long, at timestamp, page string", event_time="at", id=["user"])
    human = clicks.where("user > 0", name="human")
    human.where("page is not null", name="paged").output("pages")
    human.select("user", "at", name="users").output("people", qos=jt.QoS(priority=3, min_accuracy=0.2))
    return net


def placed(*nodes: jt.Node) -> jt.Network:
    net = declared()
    net.place(*nodes)
    return net


def test_sources_and_outputs_run_beside_their_operators() -> None:
    placement = placed(jt.Node("one", ["human"], 1.0), jt.Node("two", ["paged", "users"], 2.5)).graph.placement
    assert placement is not None
    assert placement.node_of["clicks"] == "one"
    assert placement.node_of["pages"] == placement.node_of["people"] == "two"
    assert [str(link) for link in placement.links] == ["human: one -> two"]
    assert (placement.order, placement.is_forest) == (("one", "two"), True)


def test_a_fragment_is_a_network_and_knows_both_ends_of_its_links() -> None:
    graph = placed(jt.Node("one", ["human"], 1.0), jt.Node("two", ["paged", "users"], 1.0)).graph
    one, two = graph.fragment("one"), graph.fragment("two")
    one.graph.check_complete()
    two.graph.check_complete()
    assert one.sends["human_to_two"] == two.reads["human"]
    assert one.graph.by_name["human_to_two"].qos.priority == 4, "what it leads to, together"  # type: ignore[union-attr]
    assert two.graph.sources[0].event_time == "at"
    assert one.arcs_here("human>paged") == ("human>human_to_two",)
    assert two.arcs_here("human>paged") == ("human>paged",)
    assert two.arcs_here("clicks") == ()


def test_yaml_gives_the_placement_back() -> None:
    graph = placed(jt.Node("one", ["human"], 0.5), jt.Node("two", ["paged", "users"], 1.0)).graph
    assert from_yaml(to_yaml(graph)).graph() == graph


def test_nodes_are_boxes_with_their_load() -> None:
    graph = placed(jt.Node("one", ["human"], 1.0), jt.Node("two", ["paged", "users"], 1.0)).graph
    notes = {"human>users": "keep 50 %", "human>paged": "keep 20 %"}
    text = as_boxes(graph, arc_notes=notes, node_notes={"two": "load 250 %"})
    assert "+- two: load 250 % -" in text
    assert text.count("<< keep") == 2, "both stand where they are read: the link is drawn once"
    drops = {"one": {"human>human_to_two": "keep 70 %"}, "two": {"human>users": "keep 0 %"}}
    text = as_boxes(graph, drops=drops)
    assert "human_to_two: link   << keep 70 %" in text
    assert "<< keep 0 %" in text
    assert 'subgraph node_two["two: capacity 1"]' in as_mermaid(graph)


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([jt.Node("one", ["human"], 1.0)], "where 'paged' of network 'pipeline' is on no node"),
        (
            [jt.Node("one", ["human", "paged", "users"], 1.0), jt.Node("two", ["users"], 1.0)],
            "'users' is on nodes 'one' and 'two'",
        ),
        ([jt.Node("one", ["human", "paged", "users", "x"], 1.0)], "node 'one': 'x' is not an operator"),
        (
            [jt.Node("one", ["human", "paged", "users"], 1.0), jt.Node("two", [], 1.0)],
            "node 'two' of network 'pipeline' has no op",
        ),
        ([], "names no node"),
        ([jt.Node("one", ["human"], 1.0), jt.Node("one", ["paged", "users"], 1.0)], "two nodes are called 'one'"),
    ],
)
def test_what_cannot_be_a_placement(nodes: list[jt.Node], said: str) -> None:
    with pytest.raises(NetworkError, match=said):
        placed(*nodes)


@pytest.mark.parametrize("capacity", [0, -1.0, float("nan"), float("inf"), "much", True])
def test_a_node_without_capacity_is_refused(capacity: float) -> None:
    with pytest.raises(NetworkError, match="node 'one': capacity is"):
        jt.Node("one", ["human"], capacity)


def test_a_capacity_must_be_given() -> None:
    with pytest.raises(NetworkError, match=r"jt\.Node: argument 'capacity' is missing"):
        jt.Node("one", ["human"])  # type: ignore[call-arg]
    file = to_yaml(placed(jt.Node("one", ["human", "paged", "users"], 1.0)).graph)
    with pytest.raises(NetworkError, match=r"nodes\.one\.capacity .*missing"):
        from_yaml(file.replace("capacity: 1.0", ""))


def test_nodes_in_a_circle_are_refused() -> None:
    net = jt.Network("circle")
    net.source("s", "x int").where("x > 0", name="a").where("x > 1", name="b").where("x > 2", name="c").output("o")
    with pytest.raises(NetworkError, match="feed each other in a circle"):
        net.place(jt.Node("one", ["a", "c"], 1.0), jt.Node("two", ["b"], 1.0))


def test_what_leaves_a_node_has_columns() -> None:
    net = jt.Network("n")
    net.source("s", "x int").apply("builtins:len", name="f").where("x > 1", name="b").output("o")
    net.place(jt.Node("one", ["f"], 1.0), jt.Node("two", ["b"], 1.0))
    with pytest.raises(NetworkError, match="declare `columns`"):
        net.graph.fragment("two")


@pytest.mark.parametrize("section", ["nodes:", "nodes: {}"])
def test_a_section_without_nodes_is_refused(section: str) -> None:
    text = f"network: n\nsources: {{s: {{schema: x int}}}}\noutputs: {{o: {{of: s}}}}\n{section}\n"
    with pytest.raises(NetworkError, match="its placement names no node"):
        jt.from_yaml(text).graph()
