"""Arcs: one type reads their text, and nobody else."""

from __future__ import annotations

import json
import pickle
import re

import pytest
from hypothesis import given
from tests.conftest import ROOT
from tests.networks import declared_graphs, steady

from jettison.network import Graph
from jettison.network.arc import Arc

pytestmark = pytest.mark.core


@steady(40)
@given(declared_graphs())
def test_an_arc_knows_where_it_leads(graph: Graph) -> None:
    for operator in graph.operators:
        arcs = graph.arcs_into(operator.name)
        assert [arc.head for arc in arcs] == [operator.name] * len(arcs)
        assert tuple(arc.tail for arc in arcs) == (operator.inputs or (None,))
        assert [arc.is_input for arc in arcs] == [not operator.inputs] * len(arcs)
        assert [arc.origin for arc in arcs] == list(operator.inputs or (operator.name,))
        assert all(arc.tail == operator.name for arc in graph.arcs_out_of(operator.name))


def test_an_arc_is_its_text_in_logs_and_keys() -> None:
    arc = Arc.between("paid", "alerts")
    assert {arc: 1} == {"paid>alerts": 1}
    assert json.dumps({arc: arc}) == '{"paid>alerts": "paid>alerts"}'
    assert f"{arc} {arc!r}" == "paid>alerts 'paid>alerts'"
    assert pickle.loads(pickle.dumps(arc)).tail == "paid"


CUTS = re.compile(r"""partition\(["']>["']\)|split\(["']>["']|["']>["'] (not )?in |removesuffix\(f?["']>""")


def test_nobody_else_cuts_the_text_of_an_arc() -> None:
    sources = sorted((ROOT / "src").rglob("*.py"))
    found = {str(path.relative_to(ROOT)) for path in sources if CUTS.search(path.read_text(encoding="utf-8"))}
    assert CUTS.search('tail = arc.rpartition(">")[0]')
    assert found == set()
