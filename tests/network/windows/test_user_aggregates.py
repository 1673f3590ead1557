"""Aggregates of the user's own, without Spark: how they are declared, and what is refused."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import yaml

import jettison as jt
from jettison.errors import NetworkError, StartError
from jettison.network.columns.columns_needed import needed_columns
from jettison.network.import_paths import Imported
from jettison.network.render import as_text
from jettison.network.windows.user_aggregates import UserAggregate, WholeWindow, with_functions
from jettison.spec.as_yaml import to_dict, to_yaml
from jettison.spec.network_file import from_yaml, read_spec

pytestmark = pytest.mark.core


def total(value: float, fare: float) -> float:
    return value + fare


GIVEN: dict[str, Any] = {
    "init": float,
    "incr": total,
    "merge": total,
    "final": float,
    "columns": ["fare"],
    "type": "double",
}


def network(**aggregates: Any) -> jt.Network:
    net = jt.Network("taxi")
    trips = net.source("trips", "trip long, at timestamp, zone int, fare double, note string", event_time="at")
    trips.window("1 minute", by="zone").agg(aggregates, name="busy").output("table")
    return net


def test_they_stand_beside_sql() -> None:
    own = jt.whole_window(len, columns="trip", type="long")
    net = network(n="count(*)", sum=jt.aggregate(**GIVEN), rows=own)
    assert net.stream("busy").columns == ("zone", "window_start", "window_end", "n", "sum", "rows")
    assert "busy: aggregate 1 minute by zone: n = count(*), sum = total(fare), rows = len(trip)" in as_text(net.graph)
    assert needed_columns(net.graph, "trips") == ("trip", "zone", "fare")


def test_an_unknown_column_shows_when_it_is_declared() -> None:
    with pytest.raises(NetworkError, match=r"aggregate 'busy'.*'price'.*fare"):
        network(sum=jt.aggregate(**{**GIVEN, "columns": ["price"]}))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"init": 0.0}, r"aggregate\(\): init=0.0 cannot be called: give a function"),
        ({"merge": None}, r"aggregate\(\): merge=None cannot be called"),
        ({"columns": []}, r"aggregate\(\): name at least one column"),
        ({"columns": ["fare", "Fare"]}, r"`columns` names a column twice \(fare, Fare\)"),
        ({"columns": [1]}, r"aggregate\(\): 1 in `columns` is not a column's name"),
        ({"columns": 7}, r"aggregate\(\): columns=7 is not a list of names"),
        ({"type": ""}, r"aggregate\(\): type='' is not a type of Spark, such as 'double'"),
    ],
)
def test_bad_input_is_refused_at_once(given: dict[str, Any], message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        jt.aggregate(**{**GIVEN, **given})


def test_a_bare_function_is_refused_with_what_to_do() -> None:
    with pytest.raises(NetworkError, match=r"aggregate 'busy': .*is not one call.*jettison.whole_window\(...\)"):
        network(sum=total)
    with pytest.raises(NetworkError, match=r"whole_window\(\): function='sum' cannot be called"):
        jt.whole_window("sum", columns="fare", type="double")  # type: ignore[arg-type]


# --- by path, as YAML names them --------------------------------------------------------------------------------------

HERE = "tests.network.windows.test_user_aggregates"
FOUR = {"init": "builtins:float", "incr": f"{HERE}:total", "merge": f"{HERE}:total", "final": "builtins:float"}
OF_FARE: dict[str, Any] = {"columns": ["fare"], "type": "double"}
A_NUMBER = 3.5


def in_yaml(**aggregates: Any) -> str:
    """A network whose windows have these aggregates."""
    content = {
        "network": "taxi",
        "sources": {"trips": {"schema": "trip long, at timestamp, zone int, fare double", "event_time": "at"}},
        "operators": {"busy": {"of": "trips", "window": {"size": "1 minute", "by": ["zone"]}, "agg": aggregates}},
        "outputs": {"table": {"of": "busy"}},
    }
    return yaml.safe_dump(content, sort_keys=False)


def own_of(text: str, column: str) -> UserAggregate | WholeWindow:
    found = dict(from_yaml(text).graph().aggregates[0].aggregates)[column]
    assert not isinstance(found, str)
    return found


def test_yaml_names_them_by_path_and_they_do_what_python_does() -> None:
    text = in_yaml(n="count(*)", sum={**FOUR, **OF_FARE}, rows={"whole_window": "builtins:len", **OF_FARE})
    assert own_of(text, "sum") == jt.aggregate(**FOUR, **OF_FARE)
    sums = with_functions("aggregate 'busy': 'sum'", own_of(text, "sum"))
    assert sums == jt.aggregate(**GIVEN)
    rows = with_functions("aggregate 'busy': 'rows'", own_of(text, "rows"))
    assert rows == jt.whole_window(len, **OF_FARE)
    graph = from_yaml(text).graph()
    assert "sum = total(fare), rows = len(fare)" in as_text(graph)


def test_nothing_is_imported_before_a_run_starts() -> None:
    text = in_yaml(sum={**FOUR, "incr": "no.such.module:added", **OF_FARE})
    assert str(own_of(text, "sum")) == "added(fare)"


def test_they_survive_their_yaml() -> None:
    text = in_yaml(n="count(*)", sum={**FOUR, **OF_FARE}, rows={"whole_window": "my.fares:Fares.trend", **OF_FARE})
    graph = from_yaml(text).graph()
    assert from_yaml(to_yaml(graph)).graph() == graph
    assert to_dict(graph)["operators"]["busy"]["agg"] == yaml.safe_load(text)["operators"]["busy"]["agg"]


def test_functions_of_python_are_written_by_their_paths() -> None:
    net = network(sum=jt.aggregate(**GIVEN), rows=jt.whole_window(len, **OF_FARE))
    assert to_dict(net.graph)["operators"]["busy"]["agg"] == {
        "sum": {**FOUR, **OF_FARE},
        "rows": {"whole_window": "builtins:len", **OF_FARE},
    }


@pytest.mark.parametrize("function", [lambda rows: 1, partial(total, 1.0)], ids=["lambda", "partial"])
def test_what_has_no_path_cannot_be_written_down(function: Any) -> None:
    net = network(n=jt.whole_window(function, **OF_FARE))
    with pytest.raises(NetworkError, match=r"'busy': 'n': whole_window holds .*(lambda|partial).*define it with def"):
        to_yaml(net.graph)


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        (
            {"init": "builtins:float", **OF_FARE},
            r"agg\.n: .*init, .* final, or whole_window.*found: init",
        ),
        ({**FOUR, "whole_window": "builtins:len", **OF_FARE}, r"agg\.n: .*found: init, .*final, whole_window"),
        (OF_FARE, r"agg\.n: .*found: none"),
        ({"whole_window": "builtins:len", "type": "long"}, r"agg\.n\.columns"),
        ({"whole_window": "builtins:len", "columns": "fare", "type": "long"}, r"agg\.n\.columns"),
        ({"whole_windows": "builtins:len", **OF_FARE}, r"agg\.n\.whole_windows"),
        (["count(*)"], r"agg\.n is .*write a text"),
    ],
)
def test_a_fault_of_form_names_its_place(given: Any, fault: str) -> None:
    with pytest.raises(NetworkError, match=rf"the YAML: operators\.busy\.{fault}"):
        from_yaml(in_yaml(n=given))


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"whole_window": "len", **OF_FARE}, r"function='len' cannot be called: .*'module:function'"),
        ({"whole_window": "my fares:len", **OF_FARE}, r"'my fares:len' is not of the form 'module:function'"),
        ({"whole_window": ":len", **OF_FARE}, r"':len' is not of the form"),
        ({"whole_window": "builtins:len", "columns": [], "type": "long"}, "name at least one column"),
    ],
)
def test_a_fault_of_meaning_names_aggregate_and_column(given: Any, fault: str) -> None:
    with pytest.raises(NetworkError, match=rf"aggregate 'busy': 'n': whole_window\(\): {fault}"):
        from_yaml(in_yaml(n=given)).graph()


@pytest.mark.parametrize(
    ("functions", "fault"),
    [
        ({"incr": "no.such:added"}, r"incr: cannot import 'no\.such:added' \(ModuleNotFoundError: .*PYTHONPATH"),
        ({"incr": f"{HERE}:added"}, rf"incr: cannot import '{HERE}:added' \(AttributeError: .*module:function"),
        ({"final": f"{HERE}:A_NUMBER"}, rf"final: '{HERE}:A_NUMBER' is 3\.5, a float, which cannot be called"),
        ({"merge": f"{HERE}:A_WHOLE"}, rf"merge: '{HERE}:A_WHOLE' is WholeWindow.*, a WholeWindow, which cannot"),
        (
            {"final": f"{HERE}:total"},
            rf"final is '{HERE}:total', which takes \(value: .*\) .* 1 values \(the value\)",
        ),
        ({"init": f"{HERE}:total"}, r"init is .* with 0 values \(none\): name a function of that kind"),
    ],
)
def test_what_stands_at_a_path_must_be_a_function_of_that_kind(functions: dict[str, str], fault: str) -> None:
    own = own_of(in_yaml(sum={**FOUR, **functions, **OF_FARE}), "sum")
    with pytest.raises(StartError, match=rf"aggregate 'busy': 'sum': {fault}"):
        with_functions("aggregate 'busy': 'sum'", own)


A_WHOLE = jt.whole_window(len, columns="fare", type="long")


def test_a_path_can_be_called_as_the_function_can() -> None:
    assert Imported(f"{HERE}:total")(1.0, 2.0) == 3.0


def test_the_fares_of_the_examples_are_sound_and_their_functions_are_there() -> None:
    graph = read_spec("examples/fares.yaml").graph()
    calls = dict(graph.aggregates[0].aggregates)
    typical, trend = calls["typical"], calls["trend"]
    assert isinstance(typical, UserAggregate)
    assert isinstance(trend, WholeWindow)
    typical, _ = with_functions("typical", typical), with_functions("trend", trend)
    assert isinstance(typical, UserAggregate)
    first = typical.incr(typical.incr(typical.init(), 2.0), 8.0)
    assert typical.final(typical.merge(first, typical.incr(typical.init(), 4.0))) == pytest.approx(4.0)


def test_trust_17_pickle_is_asked_for_by_name() -> None:
    with pytest.raises(NetworkError, match=r"encoding='yaml' is not known: say one of plain, pickle"):
        jt.aggregate(**GIVEN, encoding="yaml")
    assert jt.aggregate(**GIVEN).encoding == "plain"
    with pytest.raises(StartError, match=r"'a': init\(\) gives a value of type builtins\.object.*encoding='pickle'"):
        with_functions("'a'", jt.aggregate(**{**GIVEN, "init": object}))
    with_functions("'a'", jt.aggregate(**{**GIVEN, "init": object}, encoding="pickle"))


def test_trust_17_pickle_is_written_and_read_as_yaml() -> None:
    path = "tests.network.windows.test_user_aggregates:total"
    net = network(
        sum=jt.aggregate(**{**GIVEN, "init": "builtins:float", "incr": path, "merge": path}, encoding="pickle")
    )
    text = to_yaml(net.graph)
    assert "encoding: pickle" in text
    assert dict(from_yaml(text).graph().aggregates[0].aggregates)["sum"].encoding == "pickle"  # type: ignore[union-attr]
    assert "encoding" not in to_yaml(network(sum=jt.aggregate(**GIVEN)).graph)
    whole = text.replace("encoding: pickle", "encoding: odd")
    with pytest.raises(NetworkError, match="encoding='odd' is not known"):
        from_yaml(whole).graph()
