"""A plan is a value: it refuses what it cannot mean and survives its JSON."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks import steady

from jettison.errors import PlanError
from jettison.plan.drops.by_key import ByKey
from jettison.plan.drops.random import Random
from jettison.plan.plan import Plan

pytestmark = pytest.mark.core

shares = st.floats(0, 1)
drops = st.one_of(
    st.builds(Random, shares),
    st.builds(ByKey, st.lists(st.text(max_size=5), min_size=1, max_size=3).map(tuple), shares, st.text(max_size=5)),
)
plans = st.builds(
    Plan,
    drops=st.dictionaries(st.sampled_from(["s", "a>b", "größe>o-1", "x>y"]), drops),
    reason=st.text(max_size=20),
    row=st.integers(0, 10_000),
    delivered=st.dictionaries(st.sampled_from(["o", "p"]), shares, min_size=1),
    utility=st.floats(0, 1e6),
    saves_us=st.floats(-1e3, 1e9),
)


@steady(60)
@given(plans)
def test_json_round_trip(plan: Plan) -> None:
    assert Plan.from_json(plan.to_json()) == plan
    assert Plan.from_dict(plan.to_dict()) == plan
    assert json.loads(plan.to_json()) == plan.to_dict()


def test_utility_and_savings_survive_without_delivered_shares() -> None:
    plan = Plan({"s": Random(0.5)}, "overload", 1, utility=0.75, saves_us=12.5)
    assert Plan.from_json(plan.to_json()) == plan


def test_a_round_trip_does_not_share_state() -> None:
    content = Plan({"s": Random(0.5)}, delivered={"o": 0.5}).to_dict()
    plan = Plan.from_dict(content)
    content["drops"]["s"]["random"] = 0.1
    assert plan.keep("s") == 0.5


def test_keep_is_one_where_nothing_stands() -> None:
    plan = Plan({"s": Random(0.25), "t": Random(0.0)})
    assert (plan.keep("s"), plan.keep("t"), plan.keep("elsewhere")) == (0.25, 0.0, 1.0)


@pytest.mark.parametrize("keep", [-0.1, 1.0000001, math.nan, math.inf])
def test_random_refuses_what_is_no_share(keep: float) -> None:
    with pytest.raises(PlanError, match="within"):
        Random(keep)


def test_a_drop_by_key_refuses_what_it_cannot_mean() -> None:
    with pytest.raises(PlanError, match=r"drop by zone keeps 1\.5"):
        ByKey(("zone",), 1.5, "joined")
    with pytest.raises(PlanError, match="'joined': name at least one column"):
        ByKey((), 0.5, "joined")


def test_a_drop_by_key_as_it_is_logged() -> None:
    plan = Plan({"s": ByKey(("order", "day"), 0.5, "joined")})
    logged = {"by_key": {"columns": ["order", "day"], "keep": 0.5, "seed": "joined"}}
    assert plan.to_dict()["drops"] == {"s": logged}
    assert plan.keep("s") == 0.5


@pytest.mark.parametrize("kind", [{"sketch": 0.5}, {}, {"random": 0.5, "by_key": 1}])
def test_an_unknown_drop_names_its_arc(kind: dict[str, float]) -> None:
    with pytest.raises(PlanError, match="'a>b'"):
        Plan.from_dict({"drops": {"a>b": kind}})


def test_a_share_out_of_range_is_refused_when_read() -> None:
    with pytest.raises(PlanError, match="within"):
        Plan.from_json('{"drops": {"s": {"random": 1.5}}}')


class Half:
    kind = "half"
    keep = "0.5"


@pytest.mark.parametrize(
    ("given_", "told"),
    [
        ({"drops": ["s"]}, "drops are .'s'.: give a mapping"),
        ({"drops": {"s": 0.5}}, "the drop on arc 's' is 0.5: give one of plan.drops"),
        ({"drops": {"s": Half()}}, "the drop on arc 's' keeps '0.5'"),
        ({"delivered": {"o": 75.0}}, "delivered of output 'o' is 75.0: give a share from 0 to 1"),
        ({"delivered": {"o": math.nan}}, "delivered of output 'o' is nan"),
        ({"delivered": 0.5}, "delivered are 0.5"),
        ({"worth": {"o": -0.5}}, "worth of output 'o' is -0.5"),
        ({"utility": math.inf}, "utility is inf: give a finite number"),
        ({"saves_us": math.nan}, "saves_us is nan"),
        ({"saves_us": "much"}, "saves_us is 'much'"),
        ({"stale": ["s"]}, "stale are .'s'.: give a mapping from names to times in seconds"),
    ],
)
def test_a_plan_refuses_nonsense(given_: dict[str, Any], told: str) -> None:
    with pytest.raises(PlanError, match=told):
        Plan(**given_)
