"""Wrong arguments of what needs PySpark, but no session: one line of ours each."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

import jettison as jt
from jettison.spark.run.arguments import check_seconds
from jettison.testing import memory_source, run_rows

pytestmark = pytest.mark.spark


def net() -> jt.Network:
    network = jt.Network("taxi")
    network.source("trips", "trip long").output("out")
    return network


def start(*given: Any, **named: Any) -> Any:
    return jt.start(*given, **named)


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "network": (lambda: start("taxi.yaml"), r"jt.start: network is 'taxi.yaml': give a jt.Network"),
    "sources": (lambda: start(net(), ["trips"]), r"jt.start: sources is \['trips'\]: give a stream for every source"),
    "source": (
        lambda: start(net(), {"trips": "in/trips"}),
        r"jt.start: source 'trips' is 'in/trips': give a DataFrame",
    ),
    "sinks": (lambda: start(net(), {}, "out"), r"jt.start: sinks is 'out': give a sink for every output"),
    "trigger": (lambda: start(net(), {}, {}, trigger=5), r"jt.start: trigger is 5: write a duration"),
    "headroom": (
        lambda: start(net(), {}, {}, headroom=0.8),
        r"'headroom': it is in shedding=jt.Shedding\(headroom=...\)",
    ),
    "checkpoint": (lambda: start(net(), {}, {}, checkpoint=5), r"checkpoint is 5: give the path"),
    "shedding": (
        lambda: start(net(), {}, {}, shedding="of"),
        r"shedding is 'of' \(did you mean 'off'\?\): say True, False",
    ),
    "costs": (lambda: start(net(), {}, {}, costs={}), r"costs is \{\}: give jt.Costs"),
    "listener": (lambda: start(net(), {}, {}, listeners=print), r"jt.start: listeners is .*: give functions"),
    "tables": (
        lambda: start(net(), {}, {}, tables={"zones": 5}),
        r"jt.start: table 'zones' is 5: give a DataFrame that does not stream",
    ),
    "on_shed": (lambda: start(net(), {}, {}, on_shed=[]), r"jt.start: on_shed is \[\]"),
    "port": (lambda: start(net(), {}, {}, metrics_port=9100), r"'metrics_port': it is called metrics, such as"),
    "spark": (lambda: start(net(), {}, {}, spark="local"), r"jt.start: spark is 'local': give a SparkSession"),
    "unknown": (
        lambda: start(net(), {}, {}, foo=1),
        r"jt\.start has no argument 'foo': it takes network, sources, sinks, trigger",
    ),
    "near": (lambda: start(net(), {}, {}, triger="1 s"), r"has no argument 'triger' \(did you mean 'trigger'\?\)"),
    "missing": (lambda: start(), r"jt\.start: argument 'network' is missing"),
    "unknown session": (lambda: jt.local_session(core=2), r"jt\.local_session has no argument 'core' .*'cores'"),  # type: ignore[call-arg]
    "unknown sink": (lambda: jt.parquet("a", mode="x"), r"jt\.parquet has no argument 'mode'"),  # type: ignore[call-arg]
    "parquet": (lambda: jt.parquet(None), r"jt.parquet: the path is None"),  # type: ignore[arg-type]
    "console": (lambda: jt.console(0), r"jt.console: rows is 0: give a number of rows of at least 1"),
    "memory": (lambda: jt.memory("x"), r"jt.memory: limit is 'x'"),  # type: ignore[arg-type]
    "format": (lambda: jt.spark_format(""), r"jt.spark_format: the name is ''"),
    "cores": (lambda: jt.local_session(cores=0), r"local_session: cores is 0"),
    "settings": (lambda: jt.local_session(extra=["a=b"]), r"local_session: extra is \['a=b'\]"),  # type: ignore[arg-type]
    "rows of a network": (lambda: run_rows("taxi", {}), r"run_rows: network is 'taxi': give a jt.Network"),  # type: ignore[arg-type]
    "rows": (lambda: run_rows(net(), 5), r"run_rows: rows is 5: give rows by source"),  # type: ignore[arg-type]
    "memory source": (lambda: memory_source(None, "a int"), r"memory_source: spark is None: give a SparkSession"),
    "patience": (
        lambda: check_seconds("run.stop: patience_s", "soon"),
        r"run.stop: patience_s is 'soon': give",
    ),
    "patience nan": (lambda: check_seconds("run.stop: patience_s", math.nan), r"run.stop: patience_s is nan"),
    "generate": (lambda: jt.generate(None, {}), r"generated rows: spark is None"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", WRONG)
def test_trust_25_wrong_arguments_end_in_one_line_of_ours(name: str) -> None:
    wrong, message = WRONG[name]
    with pytest.raises(jt.JettisonError, match=message) as caught:
        wrong()
    assert "\n" not in str(caught.value)
