"""Pictures of a network: every operator once, every arc, and what is known about them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from tests.networks import Case, dags, declared_graphs, figure_3_3, steady

from jettison.network import Apply, Graph, Join, Network, Output, QoS, Source, Value, Where
from jettison.network.render import as_mermaid, as_text, describe

pytestmark = pytest.mark.core


def noted() -> tuple[Graph, dict[str, str], dict[str, str]]:
    return (
        figure_3_3(qos_1=QoS(priority=2)),
        {"i1": "0.1 us", "op1": "10 us, passes 50 %", "op4": "5 us"},
        {"i1": "keep 80 %", "op1>op2": "keep 25 %"},
    )


def test_text_with_costs_selectivities_and_drops() -> None:
    assert as_text(*noted()).splitlines() == [
        "network figure-3-3",
        "i1: source x int   [0.1 us]   << keep 80 %",
        "  op1: where x > 0   [10 us, passes 50 %]",
        "    op2: where x > 1   << keep 25 %",
        "      o1: output priority 2",
        "    op3: where x > 2",
        "      o2: output",
        "i2: source x int",
        "  op4: where x > 3   [5 us]",
        "    o3: output",
    ]


def test_mermaid_with_costs_selectivities_and_drops() -> None:
    lines = as_mermaid(*noted()).splitlines()
    assert lines[0] == "flowchart LR"
    assert '  i1[/"i1<br/>source x int<br/>0.1 us<br/>keep 80 %"/]' in lines
    assert '  op1["op1<br/>where x &gt; 0<br/>10 us, passes 50 %"]' in lines
    assert '  o1(["o1<br/>output priority 2"])' in lines
    assert "  op1 -->|keep 25 %| op2" in lines
    assert "  op1 --> op3" in lines
    assert len(lines) == 1 + 9 + 7


def test_a_union_is_drawn_below_its_last_input() -> None:
    net = Network("merge")
    left, right = net.source("l", "x int"), net.source("r", "x int")
    left.union(right, name="u").output("o")
    assert as_text(net.graph, arc_notes={"l>u": "keep 50 %", "r>u": "keep 20 %"}).splitlines() == [
        "network merge",
        "l: source x int",
        "  u: (see below)   << keep 50 %",
        "r: source x int",
        "  u: union l, r   << keep 20 %",
        "    o: output",
    ]


def test_a_split_that_merges_again_is_drawn_once() -> None:
    net = Network("diamond")
    stream = net.source("s", "x int")
    stream.where("x > 0", name="w").union(stream, name="u").output("o")
    text = as_text(net.graph, arc_notes={"s>u": "keep 50 %"})
    assert text.count("o: output") == 1
    assert text.count("u: union") == 1
    assert text.count("keep 50 %") == 1


@steady(100)
@given(dags(most_steps=8))
def test_text_draws_every_operator_once_and_notes_every_drop(case: Case) -> None:
    text = as_text(case.graph, arc_notes={arc: f"({arc})" for arc in case.graph.arcs})
    for operator in case.graph.operators:
        drawn = re.findall(rf"^ *{operator.name}: (?!\(see below\))", text, flags=re.MULTILINE)
        assert len(drawn) == 1, f"{operator.name} is drawn {len(drawn)} times:\n{text}"
    for arc in case.graph.arcs:
        assert text.count(f"<< ({arc})") == 1, f"arc {arc}:\n{text}"


@steady(60)
@given(declared_graphs())
def test_text_has_one_line_per_operator_and_reference(graph: Graph) -> None:
    """A predicate of several lines must not break the picture."""
    lines = as_text(graph).splitlines()
    known = re.compile(r" *[\w-]+: (source|where|select|with_columns|union|join|aggregate|apply|output|\(see)")
    assert [line for line in lines[1:] if not known.match(line)] == []


@steady(80)
@given(declared_graphs())
def test_mermaid_draws_every_operator_and_arc_on_a_line_of_its_own(graph: Graph) -> None:
    lines = as_mermaid(graph).splitlines()
    arcs = [line for line in lines if re.search(r" -->", line)]
    assert len(lines) == 1 + len(graph.operators) + len(arcs)
    assert len(arcs) == sum(len(operator.inputs) for operator in graph.operators)
    ids = [re.match(r"  (\S+?)[\[(]", line) for line in lines[1 : 1 + len(graph.operators)]]
    assert len({found[1] for found in ids if found}) == len(graph.operators), "two operators share an id"


def tiny(where: str, name: str = "w") -> Graph:
    return Graph("n", (Source("s", (("x", "int"),)), Where(name, ("s",), where), Output("o", (name,))))


def test_mermaid_escapes_what_it_would_misread() -> None:
    line = as_mermaid(tiny('x = "a" AND x < 3 AND x > 1')).splitlines()[2]
    assert line == "  w[\"w<br/>where x = 'a' AND x &lt; 3 AND x &gt; 1\"]"


def test_mermaid_escapes_notes_on_arcs() -> None:
    line = as_mermaid(tiny("x > 1"), arc_notes={"s>w": 'a|b "c"'}).splitlines()[-2]
    assert line.count("|") == 2, line
    assert line.count('"') in (0, 2), line


@pytest.mark.parametrize("name", ["end", "graph", "subgraph", "class", "style", "click", "default", "flowchart"])
def test_mermaid_does_not_use_its_own_words_as_ids(name: str) -> None:
    line = as_mermaid(tiny("x > 1", name)).splitlines()[2]
    assert not line.startswith(f"  {name}["), line
    assert f'"{name}<br/>' in line


def test_mermaid_keeps_renamed_ids_apart() -> None:
    graph = Graph(
        "n",
        (
            Source("s", (("x", "int"),)),
            Where("end", ("s",), "x > 1"),
            Where("end_", ("end",), "x > 2"),
            Output("o", ("end_",)),
        ),
    )
    ids = [line.split("[")[0].split("(")[0].strip() for line in as_mermaid(graph).splitlines()[1:5]]
    assert len(set(ids)) == 4, ids


@pytest.mark.parametrize(
    ("operator", "line"),
    [
        (Join("j", ("s",), "zones", ("a", "b"), "left"), "join left zones on a, b"),
        (Join("j", ("s",), object(), ("a",)), "join inner a static table on a"),
        (Apply("a", ("s",), "m:f"), "apply m:f"),
        (Apply("a", ("s",), steady), "apply tests.networks:steady"),
        (Output("o", ("s",)), "output"),
        (Output("o", ("s",), QoS(priority=2.5)), "output priority 2.5"),
        (Output("o", ("s",), QoS([(100, 1), (20, 0.9), (0, 0)])), "output loss 100 % 1, 20 % 0.9, 0 % 0"),
        (Output("o", ("s",), QoS(value=Value("a", [(0, 9, 1.0)]))), "output value of a"),
        (Output("o", ("s",), QoS(latency=[("0 s", 1.0), ("1 minute", 0.0)])), "output latency 0 s 1, 60 s 0"),
        (Output("o", ("s",), QoS(stale="1 minute", gap=4)), "output stale 1 minute, gap 4"),
        (Output("o", ("s",), QoS(gaps={"a": {7: 0}})), "output gaps by a"),
        (Output("o", ("s",), QoS(on_loss="estimate")), "output on_loss estimate"),
        (Output("o", ("s",), QoS(latency_goal="2 seconds")), "output latency_goal 2 seconds"),
    ],
)
def test_an_operator_in_one_line(operator: Join | Apply | Output, line: str) -> None:
    assert describe(operator) == line


def test_a_deep_network_is_drawn() -> None:
    operators = [Source("s", (("x", "int"),))]
    tail = "s"
    for number in range(300):
        operators.append(Where(f"w{number}", (tail,), "x > 1"))  # type: ignore[arg-type]
        tail = f"w{number}"
    operators.append(Output("o", (tail,)))  # type: ignore[arg-type]
    assert len(as_text(Graph("deep", tuple(operators))).splitlines()) == 303
