"""The identity of an operator is its lineage: the same whatever stands around it, another for any other computation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from itertools import combinations, permutations
from typing import Any, ClassVar

import numpy as np
import pytest

from jettison.errors import NetworkError
from jettison.network import Network, QoS, Stream
from jettison.network.identity.function_hash import function_identity
from jettison.network.identity.lineage_hash import column_text, identity, is_derived, lineage, network_identity
from jettison.network.windows.slice_groups import slice_groups
from jettison.network.windows.user_aggregates import aggregate, whole_window
from jettison.spec.as_yaml import to_yaml
from jettison.spec.network_file import from_yaml

pytestmark = pytest.mark.core

SCHEMA = "trip long, at timestamp, zone int, fare double"


def trips(net: Network, name: str = "trips", schema: str = SCHEMA, **others: Any) -> Stream:
    return net.source(name, schema, **{"event_time": "at", "id": ["trip"], **others})


def busy(stream: Stream, size: str = "1 minute", **others: Any) -> Stream:
    given = {"by": "zone", "slide": None, "delay": None, **others}
    calls = given.pop("calls", {"n": "count(*)"})
    return stream.window(size, **given).agg(calls)


def other_stream(net: Network) -> Stream:
    return trips(net, "others").select("zone", "trip AS other")


OTHERS: dict[str, Callable[[Network], Stream]] = {
    "as it is": lambda net: busy(trips(net)),
    "another source": lambda net: busy(trips(net, "rides")),
    "another type": lambda net: busy(trips(net, schema=SCHEMA.replace("int", "long"))),
    "another event time": lambda net: busy(trips(net, schema=f"{SCHEMA}, paid timestamp", event_time="paid")),
    "another id": lambda net: busy(trips(net, id=["trip", "zone"])),
    "a filter": lambda net: busy(trips(net).where("fare > 5")),
    "another filter": lambda net: busy(trips(net).where("fare >  5")),
    "columns": lambda net: busy(trips(net).select("zone", "fare")),
    "columns from others": lambda net: busy(trips(net).select("trip AS zone", "fare")),
    "a new column": lambda net: busy(trips(net).with_columns({"zone": "zone + 1"})),
    "a union": lambda net: busy(trips(net).union(trips(net, "more"))),
    "a table": lambda net: busy(trips(net).join("zones", on="zone")),
    "another table": lambda net: busy(trips(net).join("areas", on="zone")),
    "a table, left": lambda net: busy(trips(net).join("zones", on="zone", how="left")),
    "pairs": lambda net: busy(trips(net).join(other_stream(net), on="zone", within="1 second")),
    "pairs in a wider band": lambda net: busy(trips(net).join(other_stream(net), on="zone", within="2 seconds")),
    "later pairs": lambda net: busy(trips(net).join(other_stream(net), on="zone", within="1 second", delay="1 second")),
    "a function": lambda net: busy(trips(net).apply("my.fares:doubled", columns=["zone", "fare"])),
    "another function": lambda net: busy(trips(net).apply("my.fares:halved", columns=["zone", "fare"])),
    "a lambda": lambda net: busy(trips(net).apply(lambda rows: rows)),
    "another lambda": lambda net: busy(trips(net).apply(lambda rows: rows.where("fare > 5"))),
    "another size": lambda net: busy(trips(net), "2 minutes"),
    "sliding": lambda net: busy(trips(net), slide="10 seconds"),
    "late rows": lambda net: busy(trips(net), delay="10 seconds"),
    "by nothing": lambda net: busy(trips(net), by=()),
    "by two": lambda net: busy(trips(net), by=["zone", "fare"]),
    "one more": lambda net: busy(trips(net), calls={"n": "count(*)", "m": "max(fare)"}),
    "rows": lambda net: busy(trips(net), "60 rows"),
    "more rows": lambda net: busy(trips(net), "90 rows"),
    "results": lambda net: busy(busy(trips(net)), "1 hour"),
    "results by another name": lambda net: busy(busy(trips(net), calls={"m": "count(*)"}), "1 hour"),
    "own": lambda net: busy(trips(net), calls={"n": whole_window(len, columns="fare", type="long")}),
    "another's own": lambda net: busy(trips(net), calls={"n": whole_window(len, columns="trip", type="long")}),
    "another function of one's own": lambda net: busy(
        trips(net), calls={"n": whole_window("my.fares:trend", columns="fare", type="long")}
    ),
}


def test_trust_1_whatever_is_computed_otherwise_has_another_identity() -> None:
    found = {}
    for name, build in OTHERS.items():
        net = Network("taxi")
        made = build(net)
        found[name] = identity(net.graph, made.name)
    alike = [(one, two) for one, two in combinations(found, 2) if found[one] == found[two]]
    assert not alike


@pytest.mark.parametrize("build", OTHERS.values(), ids=OTHERS)
def test_trust_1_a_name_by_what_is_computed_does_not_depend_on_what_stands_around(
    build: Callable[[Network], Stream],
) -> None:
    net = Network("taxi")
    alone = build(net)
    assert is_derived(net.graph, alone.name)
    other = Network("another")
    first = other.source("first", SCHEMA, event_time="at", id=["trip"])
    first.where("fare > 1").window("1 minute").agg(n="count(*)").output("beside")
    among = build(other)
    among.where("true").output("out", qos=QoS(loss=[(100, 1.0), (0, 0.5)], priority=3))
    assert among.name == alone.name
    assert lineage(other.graph, among.name) == lineage(net.graph, alone.name)


def test_trust_1_order_names_of_results_and_of_operators_make_no_difference_to_what_is_kept() -> None:
    calls = {"n": "count(*)", "m": "max(fare)", "x": "avg(fare)"}
    found = set()
    for order in permutations(calls):
        net = Network("taxi")
        paid = trips(net).where("fare > 5", name="-".join(order))
        named = paid.window("1 minute").agg({f"{name}s": calls[name] for name in order}, name="named")
        found |= {identity(net.graph, named.name)}
    assert len(found) == 1


def test_trust_1_two_that_compute_the_same_are_told_apart_and_found_in_yaml_again() -> None:
    net = Network("taxi")
    stream = trips(net)
    one, two = busy(stream), busy(stream)
    one.output("a")
    two.output("b")
    assert two.name == f"{one.name}_2"
    again = from_yaml(to_yaml(net.graph)).graph()
    assert all(is_derived(again, name) for name in (one.name, two.name))
    assert network_identity(again) == network_identity(net.graph)
    given = Network("taxi")
    trips(given).window("1 minute").agg(n="count(*)", name="aggregate_1").output("c")
    assert not is_derived(given.graph, "aggregate_1")


def test_functions_are_told_apart_by_path_or_code() -> None:
    def local(x: int) -> int:
        return x + limit

    limit = 3
    before = function_identity(local)
    assert before == function_identity(local)
    limit = 4
    assert function_identity(local) != before, "by what it holds"
    assert function_identity(partial(max, 3)) != function_identity(partial(max, 4))
    assert function_identity(lambda x: x in {"a", "b"}) != function_identity(lambda x: x in {"a", "c"})
    assert function_identity(test_functions_are_told_apart_by_path_or_code).endswith(
        ":test_functions_are_told_apart_by_path_or_code"
    )

    class Called:
        def __call__(self, x: int) -> int:
            return x

    assert function_identity(Called()).endswith(" <unknown Called>")
    mean = aggregate(
        init=lambda: 0,
        incr=lambda v, x: v + x,
        merge=lambda v, w: v + w,
        final=lambda v: v,
        columns="fare",
        type="long",
    )
    most = aggregate(
        init=lambda: 0,
        incr=lambda v, x: v + x,
        merge=lambda v, w: max(v, w),
        final=lambda v: v,
        columns="fare",
        type="long",
    )
    nets = [Network("taxi"), Network("taxi")]
    names = [busy(trips(net), calls={"n": own}).name for net, own in zip(nets, (mean, most), strict=True)]
    assert names[0] != names[1]


def test_trust_1_slices_stay_together_where_they_are_kept() -> None:
    def graph(*names: str, **together: str) -> Any:
        net = Network("taxi")
        stream = trips(net)
        sizes = {"a": "10 seconds", "b": "7 seconds", "c": "5 seconds", "d": "1 second"}
        for name in names:
            stream.window(sizes[name], by="zone").agg(n="count(*)", name=name).output(f"{name}_out")
        return type(net.graph)(net.name, net.graph.operators, together)

    def groups(*names: str, **together: str) -> set[tuple[str, ...]]:
        return {tuple(each.name for each in group.members) for group in slice_groups(graph(*names, **together))}

    assert groups("a", "b", "c") == {("a", "c"), ("b",)}
    assert groups("c", "b", a="x", b="y", c="x") == {("c",), ("b",)}
    assert groups("d", "b", "a") == {("d", "b", "a")}
    assert groups("b", "a", a="x", b="x", d="x") == {("b", "a")}, "of slices of 1 s still, for they have them"
    assert groups("d", "b", "a", a="x", b="y") == {("d", "b"), ("a",)}, "a new one joins those that it fits"


@dataclass(frozen=True)
class Limits:
    low: float


class Opaque:
    def __init__(self, low: float) -> None:
        self.low = low

    def over(self, rows: Any) -> Any:
        return rows


HELD: dict[str, tuple[Any, Any, Any]] = {
    "a mapping": ({"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1, "b": 3}),
    "a decimal": (Decimal("1.0"), Decimal("1.0"), Decimal("1.5")),
    "a day": (date(2026, 1, 1), date(2026, 1, 1), date(2026, 1, 2)),
    "a time": (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)),
    "a duration": (timedelta(1), timedelta(hours=24), timedelta(2)),
    "a set": ({"eu", "us"}, {"us", "eu"}, {"eu", "as"}),
    "a set of tuples": ({("eu", 1)}, {("eu", 1)}, {("eu", 2)}),
    "bytes": (b"ab", b"ab", b"ac"),
    "nested": ({"a": [{"b": {1, 2}}]}, {"a": [{"b": {2, 1}}]}, {"a": [{"b": {1, 3}}]}),
    "an array": (np.array([1.0, 2.0]), np.array([1.0, 2.0]), np.array([1.0, 3.0])),
    "a data class": (Limits(1.0), Limits(1.0), Limits(2.0)),
    "a function": (partial(max, 1), partial(max, 1), partial(max, 2)),
    "a closure": ((lambda n: lambda x: x + n)(1), (lambda n: lambda x: x + n)(1), (lambda n: lambda x: x + n)(2)),
}


@pytest.mark.parametrize("values", HELD.values(), ids=HELD)
def test_trust_1_what_a_function_holds_tells_functions_apart(values: tuple[Any, Any, Any]) -> None:
    def holding(held: Any) -> Callable[..., Any]:
        return lambda rows: (rows, held)

    def by_default(held: Any) -> Callable[..., Any]:
        return lambda rows, *, given=held: (rows, given)

    for build in (holding, by_default, lambda held: partial(max, held), lambda held: partial(max, key=held)):
        one, same, other = map(function_identity, map(build, values))
        assert one == same != other
        assert "<unknown" not in one


def test_a_function_that_holds_itself_has_an_identity() -> None:
    def again(n: int) -> int:
        return again(n - 1) if n else 0

    held: dict[str, Any] = {}
    held["me"] = held
    assert function_identity(again) == function_identity(again)
    assert function_identity(lambda: held).startswith(__name__)


class Frame:
    columns: ClassVar = ["zone", "area"]
    dtypes: ClassVar = [("zone", "int"), ("area", "string")]


@pytest.mark.parametrize(
    "between",
    [
        lambda stream, n: stream.join(Frame(), on="zone"),
        lambda stream, n: stream.apply(Opaque(n).over, columns=["zone", "fare"]),
        lambda stream, n: stream.apply(partial(len, Opaque(n)), columns=["zone", "fare"]),
    ],
    ids=["a table", "a method", "a partial"],
)
def test_trust_1_two_that_only_their_place_tells_apart_need_names(between: Callable[[Stream, int], Stream]) -> None:
    net = Network("taxi")
    stream = trips(net)
    one = busy(between(stream, 1))
    assert any("<unknown " in line for line in lineage(net.graph, one.name))
    with pytest.raises(NetworkError, match=rf"this aggregate and '{one.name}' look the same, .* Give each aggregate a"):
        busy(between(stream, 2))
    between(stream, 2).window("1 minute", by="zone").agg(n="count(*)", name="us").output("us_out")


def test_trust_1_variables_of_lambdas_in_columns_make_no_difference() -> None:
    shown = "Column<'aggregate(xs, 0, (x_{0}, y_{1}) -> +(x_{0}, y_{1}), x_{2} -> *(x_{2}, x_1))'>"
    assert column_text(shown.format(2, 3, 4)) == column_text(shown.format(8, 9, 10))
    assert column_text("Column<'+(x_1, 1)'>") != column_text("Column<'+(x_2, 1)'>"), "these are columns"
    nested = "Column<'transform(xs, x_5 -> transform(x_5, x_6 -> +({}, x_6)))'>"
    assert column_text(nested.format("x_5")) != column_text(nested.format("x_6"))
    udf = "Column<'f(columnnodeexpression(UnresolvedAttribute(List(a),Some([Ljava.lang.StackTraceElement;@{}))))'>"
    assert column_text(udf.format("5875b9a7")) == column_text(udf.format("1875b9a7"))
    assert "<unknown " in column_text(udf)
