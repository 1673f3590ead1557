"""The declaration of a timed operator: checked, rendered, written as YAML, known by its function."""

from __future__ import annotations

from typing import Any

import pytest

import jettison as jt
from jettison.errors import JettisonError, NetworkError
from jettison.network import Map
from jettison.network.columns.lineage import origins
from jettison.network.identity.lineage_hash import lineage
from jettison.spec.as_yaml import to_yaml

pytestmark = pytest.mark.core


def score(row: Any) -> dict[str, float]:
    return {"score": 1.0}


def _network(function: Any = score, **other: Any) -> jt.Network:
    net = jt.Network("mentions")
    tweets = net.source("tweets", "id long, entity string, fare double", id=["id"])
    given = {"key": "entity", "schema": "score double", "name": "score", **other}
    tweets.map(function, **given).output("scored", qos=jt.QoS(latency_goal="2 seconds"))
    return net


def test_it_adds_columns_and_the_others_pass() -> None:
    graph = _network(schema="score double, FARE double").graph
    assert graph.columns["score"] == ("id", "entity", "FARE", "score")
    assert origins(graph, "scored", "entity") == {"scored": "entity", "score": "entity", "tweets": "entity"}
    assert origins(graph, "scored", "fare") == {"scored": "fare", "score": "fare"}


def test_it_is_shown_with_its_key() -> None:
    assert "score: map" in str(_network())
    assert "by entity: score double" in str(_network())


def test_yaml_names_its_function_by_import_path() -> None:
    text = to_yaml(_network("my.models:score", key=["entity", "id"], rows=True).graph)
    again = jt.from_yaml(text).graph()
    operator = again.by_name["score"]
    assert isinstance(operator, Map)
    assert (operator.function, operator.key, operator.rows) == ("my.models:score", ("entity", "id"), True)
    assert again.outputs[0].qos.latency_goal_us == 2e6
    assert to_yaml(again) == text


def test_another_function_is_another_operator() -> None:
    first, second = (_network(each).graph for each in ("my.models:score", "my.models:other"))
    assert lineage(first, "score") != lineage(second, "score")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"function": 3}, "3 cannot be called"),
        ({"function": lambda row, model: row}, r"takes \(row, model\): it is called with one argument, a row"),
        ({"function": "score"}, "not of the form 'module:function'"),
        ({"key": ()}, "at least one column in `key`"),
        ({"key": "entty"}, "entty"),
        ({"key": ["entity", "ENTITY"]}, "a column twice"),
        ({"schema": ""}, "schema is ''"),
        ({"rows": 1}, "rows is 1"),
    ],
)
def test_what_is_wrong_is_named(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(JettisonError, match=message):
        _ = _network(**wrong).graph.columns


def test_a_key_that_is_no_column_is_refused_where_it_is_declared() -> None:
    with pytest.raises(JettisonError, match=r"map 'score': key.*entty.*did you mean 'entity'.*id, entity, fare"):
        _ = _network(key=["id", "entty"]).graph


def test_map_key_and_schema_go_together_in_yaml() -> None:
    text = to_yaml(_network("my.models:score").graph).replace("schema: score double", "columns: [score]")
    with pytest.raises(NetworkError, match="go together"):
        jt.from_yaml(text)
