"""An output may be called as the operator before it; everything that names one of them still means one thing."""

from __future__ import annotations

import pytest

import jettison as jt
from jettison.network.identity.lineage_hash import network_identity
from jettison.plan.drops.random import Random
from jettison.plan.plan import Plan
from jettison.statistics.samples import BatchSample, OutputSample
from jettison.telemetry.report import Totals

pytestmark = pytest.mark.core


def network(last: str = "busy") -> jt.Network:
    net = jt.Network("n")
    trips = net.source("trips", "trip long, at timestamp, fare double", event_time="at", id=["trip"])
    paid = trips.where("fare > 0", name="paid")
    paid.output("paid")
    busy = paid.window("5 seconds").agg(n="count(*)", name="busy")
    busy.output(last)
    busy.window("10 seconds").agg(n="sum(n)", name="longer").output("sums")  # read on, though `busy` is an output too
    return net


def test_the_house_an_output_may_have_the_name_of_the_operator_before_it() -> None:
    graph = network().graph
    assert [output.name for output in graph.outputs] == ["paid", "busy", "sums"]
    assert graph.arcs == (
        "trips",
        "trips>paid.where",
        "paid.where>paid",
        "paid.where>busy.aggregate",
        "busy.aggregate>busy",
        "busy.aggregate>longer",
        "longer>sums",
    )
    assert len(set(graph.arcs)) == len(graph.arcs)
    assert len(graph.by_name) == len(graph.operators)


def test_the_house_such_a_network_is_read_back_from_yaml_equal() -> None:
    net = network()
    text = jt.to_yaml(net)
    assert ".where" not in text
    again = jt.from_yaml(text).graph()
    assert again == net.graph
    assert network_identity(again) == network_identity(net.graph)


def test_the_house_streams_of_such_operators_go_on_being_read() -> None:
    net = network()
    assert net.stream("paid").columns == ("trip", "at", "fare")
    net.stream("paid").where("fare > 20", name="dear").output("alerts")
    assert net.graph.by_name["dear"].inputs == ("paid.where",)
    assert jt.from_yaml(jt.to_yaml(net)).graph() == net.graph


def test_the_house_reports_tell_them_apart() -> None:
    graph = network().graph
    totals = Totals(graph, 900.0)
    plan = Plan({"paid.where>paid": Random(0.5)}, "overload")
    outputs = {"paid": OutputSample(50), "busy": OutputSample(1), "sums": OutputSample(1)}
    arcs = {"trips": (100, 100), "paid.where>paid": (100, 50)}
    totals.add(BatchSample(0, 0.0, 1e3, 5e2, {"trips": 100}, arcs=arcs, outputs=outputs), plan)
    report = totals.report(1.0, plan, None)
    assert [report.outputs[name].account.shed for name in ("paid", "busy")] == [50.0, 0.0]


def test_the_house_other_names_stay_apart() -> None:
    net = network()
    trips = net.stream("trips")
    with pytest.raises(jt.NetworkError, match=r"output 'trips' has the name of its source: .* such as 'trips_out'"):
        trips.output("trips")
    with pytest.raises(jt.NetworkError, match=r"two operators are called 'longer' \(an aggregate and an output\)"):
        trips.output("longer")
    with pytest.raises(jt.NetworkError, match=r"two operators are called 'paid' \(a where and a where\)"):
        trips.where("fare > 1", name="paid")
    with pytest.raises(jt.NetworkError, match=r"where name 'a.where': use letters, digits, _ and -"):
        trips.where("fare > 1", name="a.where")
    assert net.graph == network().graph, "what was refused has changed nothing"
