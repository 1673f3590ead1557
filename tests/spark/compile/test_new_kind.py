"""A kind of drop that only this file knows: it is logged, obeyed on Spark, simulated and explained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pyspark.sql import SparkSession
from tests.spark.windowing import Hand, source, trips_of

import jettison as jt
from jettison.app.screen import kept
from jettison.errors import PlanError
from jettison.plan.certify import certify
from jettison.plan.drops.kind import Judges, PassShare, register
from jettison.plan.plan import Plan
from jettison.plan.problem import Problem
from jettison.sim.cells import CellGrid
from jettison.spark.compile.drops import filters, keeps
from jettison.statistics.profile import Profile


@register
@dataclass(frozen=True)
class EveryNth:
    """Keep the tuples whose number is a multiple of n."""

    kind: ClassVar[str] = "every_nth"
    judges: ClassVar[Judges] = "key"
    column: str
    n: int

    @property
    def keep(self) -> float:
        return 1 / self.n

    @property
    def passes(self) -> PassShare:
        return self.keep

    @property
    def reads(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def named(self) -> str:
        return f", one {self.column} of {self.n}"

    def content(self) -> Any:
        return {"column": self.column, "n": self.n}

    @classmethod
    def from_content(cls, content: Any) -> EveryNth:
        return cls(content["column"], content["n"])


@filters(EveryNth)
def _every_nth(arc: str, drop: EveryNth, column: Callable[[str], str]) -> str:
    return f"coalesce({column(drop.column)} % {drop.n} = 0, false)"


def test_a_new_kind_of_drop_takes_one_file(spark: SparkSession, tmp_path: Path) -> None:
    net = jt.Network("n")
    source(net).output("all")
    graph, drop = net.graph, EveryNth("trip", 4)

    planned = Plan({"trips": drop}, reason="overload", delivered={"all": 0.25}, utility=0.25)
    logged = Plan.from_json(planned.to_json())
    assert logged == planned

    certify(Problem(graph, Profile({"all": 10.0}, {}), {"trips": 100.0}, 500.0), Plan(logged.drops))
    assert CellGrid(graph, Profile({}, {})).keeps(drop, "trips").tolist() == [0.25]
    assert kept(logged) == {"trips": "25 %, one trip of 4"}

    (rows,) = trips_of(1, 200, 60, 30)
    hand = Hand(spark, tmp_path, net)
    measured = hand.run(0, rows, logged)
    hand.close()
    assert sorted(row[0] for row in hand.rows("all")) == list(range(0, 200, 4))
    assert measured.arcs["trips"] == (200, 50)


def test_a_kind_without_a_filter_is_refused() -> None:
    @dataclass(frozen=True)
    class Odd(EveryNth):
        pass

    with pytest.raises(PlanError, match=r"kind 'every_nth', for which Spark has no filter: register one for .*Odd"):
        keeps("trips", Odd("trip", 2))
    with pytest.raises(PlanError, match="EveryNth has this name already"):
        register(Odd)
    with pytest.raises(
        PlanError, match=r"arc 'trips' is of an unknown kind: .*Kinds: buckets, by_key, cost_bound, every_nth, random"
    ):
        Plan.from_json('{"drops": {"trips": {"magic": 1}}}')
