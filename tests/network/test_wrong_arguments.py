"""Wrong things, given to the public API: each ends in one line of ours that names the element and what to do."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import jettison as jt
from jettison.network.soundness import check_imports, check_sql
from jettison.synthetic.rates import Burst
from jettison.testing import ManualClock

pytestmark = pytest.mark.core

SCHEMA = "trip long, at timestamp, zone int, fare double"
FUNCTIONS: dict[str, Any] = {"init": list, "incr": len, "merge": len, "final": len, "type": "int"}


def trips() -> Any:
    return jt.Network("taxi").source("trips", SCHEMA, event_time="at", id=["trip"])


def source(*given: Any, **named: Any) -> Any:
    return jt.Network("taxi").source(*given, **named)


def window(*given: Any, **named: Any) -> Any:
    return trips().window(*given, **named).agg(n="count(*)")


def agg(*given: Any, **named: Any) -> Any:
    return trips().window("1 minute").agg(*given, **named)


def value(**named: Any) -> Any:
    return jt.Value("x", [(0, 1, 0, 1)], **named)


def qos(given: Any) -> Any:
    return trips().output("out", qos=given)


def with_itself() -> Any:
    stream = trips()
    return stream.union(stream)


def banded(within: Any) -> Any:
    stream = trips()
    return stream.where("true").join(stream.select("trip"), "trip", within=within)


def read(content: bytes) -> Callable[[Path], Any]:
    def reading(folder: Path) -> Any:
        (folder / "file.yaml").write_bytes(content)
        return jt.read_spec(folder / "file.yaml")

    return reading


def yaml(operators: str = "{}", outputs: str = "{out: {of: trips}}", more: str = "") -> Any:
    columns = "{schema: 'a int, at timestamp', event_time: at}"
    text = f"network: n\nsources: {{trips: {columns}}}\noperators: {operators}\noutputs: {outputs}\n{more}"
    return jt.from_yaml(text).graph()


def checked(where: str) -> Any:
    stream = trips().where(where, name="paid")
    stream.output("out")
    return check_sql(stream._network.graph)


def checked_function(path: str) -> Any:
    stream = trips().apply(path, name="own")
    stream.output("out")
    return check_imports(stream._network.graph)


def checked_aggregate(call: Any) -> Any:
    stream = agg(n=call, name="busy")
    stream.output("out")
    check_sql(stream._network.graph)
    return check_imports(stream._network.graph)


def avro(schema: Any) -> Any:
    return source("t", jt.kafka("a:1", "t", value="avro", schema=schema))


def deep() -> list[Any]:
    found: list[Any] = []
    for _ in range(5000):
        found = [found]
    return found


def twice_named() -> None:
    net = jt.Network("n")
    one, two = net.source("a", "x int"), net.source("b", "x int")
    one.output("x")
    one.union(two, name="x")


WRONG: dict[str, tuple[Callable[..., Any], str]] = {
    # networks and sources
    "network None": (lambda: jt.Network(None), r"network: name is None: give a text"),  # type: ignore[arg-type]
    "network 5": (lambda: jt.Network(5), r"network: name is 5"),  # type: ignore[arg-type]
    "network empty": (lambda: jt.Network(""), r"network: name is ''"),
    "stream list": (lambda: jt.Network("n").stream([]), r"network 'n': the stream's name is \[\]"),  # type: ignore[arg-type]
    "stream unknown": (lambda: jt.Network("n").stream("x"), r"network 'n' has no stream 'x'"),
    "source name": (lambda: source(None, SCHEMA), r"None"),
    "schema None": (lambda: source("t", None), r"source 't': schema is None: give a text, such as 'trip long"),
    "schema list": (lambda: source("t", ["a"]), r"source 't': schema is \['a'\]"),
    "schema dict": (lambda: source("t", {"a": "int"}), r"source 't': schema is \{'a': 'int'\}"),
    "schema empty": (lambda: source("t", ""), r"source 't': schema is ''"),
    "schema type": (
        lambda: source("t", "trip lng"),
        r"source 't': column 'trip' has the unknown type 'lng' \(did you mean 'long'\?\): use one of Spark's, such as",
    ),
    "schema type inside": (
        lambda: source("t", "a array<struct<x: int, y: map<string, quaternion>>>"),
        r"source 't': column 'a' has the unknown type 'quaternion': use one of Spark's",
    ),
    "topic type": (
        lambda: source("t", jt.kafka("a:1", "t", schema="a numbr")),
        r"source 't': column 'a' has the unknown type 'numbr'",
    ),
    "own unknown type": (
        lambda: jt.whole_window(len, columns="a", type="array<flot>"),
        r"whole_window\(\): type='array<flot>' has the unknown type 'flot' \(did you mean 'float'\?\)",
    ),
    "schema twice": (lambda: source("t", "a int, A long"), r"source 't': column 'A' stands twice"),
    "id 5": (lambda: source("t", SCHEMA, id=5), r"source 't': id is 5: give names of columns"),
    "id [None]": (lambda: source("t", SCHEMA, id=[None]), r"source 't': id has None: give names"),
    "event time": (lambda: source("t", SCHEMA, event_time=["at"]), r"source 't': event_time \['at'\] is not in"),
    "payload": (lambda: source("t", SCHEMA, payload=["json"]), r"source 't': payload \['json'\] is not known"),
    # operators
    "where None": (lambda: trips().where(None), r"where 'where1': None is no expression: give SQL, such as 'fare > 0'"),
    "where True": (lambda: trips().where(True), r"where 'where1': True is no expression"),
    "where function": (lambda: trips().where(lambda row: row), r"where 'where1': function <lambda> is no expression"),
    "where empty": (lambda: trips().where(" "), r"where 'where1': the expression is empty"),
    "where column": (lambda: trips().where("fair > 0"), r"unknown column 'fair'.*Columns here: trip, at, zone, fare"),
    "where name": (lambda: trips().where("fare > 0", name=5), r"5"),
    "select none": (lambda: trips().select(), r"select 'select1': name at least one column"),
    "select list": (lambda: trips().select(["fare"]), r"select 'select1': \['fare'\] is no expression"),
    "select 5": (lambda: trips().select(5), r"select 'select1': 5 is no expression"),
    "columns list": (
        lambda: trips().with_columns(["a"]),
        r"with_columns 'with_columns1': columns is \['a'\]: give a map",
    ),
    "columns None": (lambda: trips().with_columns(None), r"with_columns 'with_columns1': columns is None"),
    "columns key": (lambda: trips().with_columns({5: "fare"}), r"with_columns 'with_columns1': a name in columns is 5"),
    "columns value": (lambda: trips().with_columns({"a": 5}), r"with_columns 'with_columns1': 5 is no expression"),
    "union none": (lambda: trips().union(), r"union 'union1': give at least one other stream"),
    "union text": (lambda: trips().union("trips"), r"union 'union1': 'trips' is no stream: give streams"),
    "union list": (lambda: trips().union([trips()]), r"union 'union1': \[.*\] is no stream"),
    "union itself": (with_itself, r"union 'union1' takes the same stream twice"),
    "join None": (lambda: trips().join(None, "zone"), r"join 'join1': None is nothing to join with: give a stream"),
    "join on None": (lambda: trips().join("zones", None), r"join 'join1': on is None: give names of columns"),
    "join on [5]": (lambda: trips().join("zones", [5]), r"join 'join1': on has 5"),
    "join how": (lambda: trips().join("zones", "zone", how=[]), r"join 'join1'.*\[\]"),
    "join band": (lambda: banded(5), r"join 'join1': within is 5: write a duration"),
    "window None": (lambda: window(None), r"aggregate 'aggregate1'.*None"),
    "window 60": (lambda: window(60), r"aggregate 'aggregate1'.*60"),
    "window by 5": (lambda: window("1 minute", by=5), r"window of 'trips': by is 5: give names of columns"),
    "window by None": (lambda: window("1 minute", by=None), r"window of 'trips': by is None"),
    "window delay": (lambda: window("1 minute", delay=5), r"aggregate 'aggregate1'.*5"),
    "window output": (lambda: trips().window("1 minute").output("o"), r"window of 'trips' has no 'output': say first"),
    "agg none": (lambda: agg(), r"aggregate 'aggregate1': name at least one aggregate"),
    "agg 5": (lambda: agg(5), r"aggregate 'aggregate1': aggregates is 5: give a mapping"),
    "agg key": (lambda: agg({5: "count(*)"}), r"aggregate 'aggregate1': a name in aggregates is 5"),
    "agg value": (lambda: agg(n=None), r"aggregate 'aggregate1': None is not one call of an aggregate function"),
    "agg column": (lambda: agg(n="sum(fair)"), r"aggregate 'aggregate_\w+': unknown column 'fair'"),
    "apply None": (lambda: trips().apply(None), r"apply 'apply1': None cannot be called"),
    "apply path": (lambda: trips().apply(":f"), r"apply 'apply1': ':f' is not of the form 'module:function'"),
    "apply columns": (lambda: trips().apply(len, columns=5), r"apply 'apply1': columns is 5: give names"),
    "output qos": (lambda: qos({"priority": 5}), r"output 'out': qos is \{'priority': 5\}: give jt.QoS"),
    "output quality": (lambda: trips().output("o", quality="yes"), r"output 'o': quality is 'yes': say True or False"),
    "output name": (lambda: trips().output([]), r"output name \[\]: use letters, digits"),  # type: ignore[arg-type]
    "table name": (lambda: trips().join(" ", "zone"), r"join 'join1': the table's name is ' ': give a text"),
    "where object": (lambda: trips().where(object()), r"where 'where1': <object.*> is no expression: give SQL"),
    "where deep": (lambda: trips().where(deep()), r"stream.where: an argument is nested too deeply"),
    # quality of service
    "share": (lambda: jt.QoS().utility("all"), r"QoS.utility: delivered_share is 'all': give a share"),  # type: ignore[arg-type]
    "huge": (lambda: jt.QoS(priority=10**400), r"jt.QoS: an argument is nested too deeply, or a number too large"),
    "loss": (lambda: jt.QoS(loss=5), r"QoS loss is 5: give points"),  # type: ignore[arg-type]
    "priority": (lambda: jt.QoS(priority="high"), r"QoS priority is 'high'"),  # type: ignore[arg-type]
    "value text": (lambda: jt.QoS(value="fare"), r"QoS value is 'fare': give jt.Value"),  # type: ignore[arg-type]
    "latency 5": (lambda: jt.QoS(latency=5), r"QoS latency is 5: give points"),  # type: ignore[arg-type]
    "latency text": (lambda: jt.QoS(latency="1 minute"), r"QoS latency is '1 minute'"),  # type: ignore[arg-type]
    "stale": (lambda: jt.QoS(stale=5), r"QoS stale is 5: write a duration"),  # type: ignore[arg-type]
    "intervals": (lambda: jt.Value("x", None), r"value utility of 'x'"),  # type: ignore[arg-type]
    "otherwise": (lambda: value(otherwise="x"), r"value utility of 'x': otherwise is x: give a utility"),
    "chunk": (lambda: value(chunk="x"), r"value utility of 'x': chunk is x: give the width"),
    "histogram": (lambda: value(histogram=5), r"value utility of 'x'"),
    # costs
    "cost nan": (lambda: jt.Profile({"a": math.nan}, {}), r"profile cost_us of 'a' is nan: give a finite number"),
    "cost inf": (lambda: jt.Profile({"a": math.inf}, {}), r"profile cost_us of 'a' is inf: give a finite number"),
    "cost below 0": (lambda: jt.Profile({"a": -1}, {}), r"profile cost_us of 'a' is -1: give a finite number"),
    "cost text": (lambda: jt.Profile({"a": "x"}, {}), r"profile cost_us of 'a' is 'x'"),  # type: ignore[dict-item]
    "costs None": (lambda: jt.Profile({}, None), r"profile selectivity is None: give numbers by"),  # type: ignore[arg-type]
    "fixed nan": (lambda: jt.Profile({}, {}, fixed_ms=math.nan), r"profile fixed_ms is nan: give a finite number"),
    "cost values": (lambda: jt.Profile({}, {}, values=5), r"profile values is 5: give shares under"),  # type: ignore[arg-type]
    "unknown cost": (lambda: jt.Profile({}, {}, fixed=5), r"jt.Profile has no argument 'fixed' .*'fixed_ms'"),  # type: ignore[call-arg]
    "missing cost": (lambda: jt.Profile({}), r"jt.Profile: argument 'selectivity' is missing"),  # type: ignore[call-arg]
    "shared": (lambda: jt.Costs(shared=[None]), r"jt.Costs: shared is \(None,\): give names"),  # type: ignore[list-item]
    "trace": (lambda: jt.rates.Trace(5, [1]), r"Trace: seconds is 5, give a list of numbers"),  # type: ignore[arg-type]
    "clock": (lambda: ManualClock().advance(None), r"ManualClock: seconds is None, give a number"),  # type: ignore[arg-type]
    # what Spark's DataFrames have
    "behind an output": (lambda: trips().output("o").where("a > 1"), r"output 'o' ends its stream: declare 'where' on"),
    "column": (lambda: trips()["fare"], r"stream 'trips' has no columns to take out: name them in SQL"),
    "groups of windows": (lambda: trips().window("5 seconds").groupBy("a"), r"no 'groupBy' \(say by= in window"),
    "rest of windows": (lambda: trips().window("5 seconds").count(), r"window of 'trips' has no 'count': it has agg"),
    # functions of one's own, topics
    "own type": (lambda: jt.aggregate(**{**FUNCTIONS, "type": 5}, columns="a"), r"aggregate\(\): type=5"),
    "own columns": (lambda: jt.aggregate(**FUNCTIONS, columns=5), r"aggregate\(\): columns=5"),
    "own None": (lambda: jt.whole_window(None, columns="a", type="int"), r"whole_window\(\): .*None"),  # type: ignore[arg-type]
    "servers": (lambda: jt.kafka(None, "t"), r"kafka topic 't': server 'None' is not host:port"),  # type: ignore[arg-type]
    "topic": (lambda: jt.kafka("a:1", 5), r"kafka: topic is 5"),  # type: ignore[arg-type]
    "offsets": (lambda: jt.kafka("a:1", "t", starting_offsets=5), r"starting_offsets is 5"),  # type: ignore[arg-type]
    "avro schema": (lambda: avro(5), r"source 't': schema is 5: give an Avro schema as JSON text"),
    "avro field": (
        lambda: avro('{"type": "record", "fields": [{"type": "int"}]}'),
        r"a part that cannot be read .*'name'",
    ),
    "avro type": (
        lambda: avro('{"type": "record", "fields": [{"name": "a", "type": 5}]}'),
        r"source 't': the Avro sch",
    ),
    "offsets dict": (lambda: jt.kafka("a:1", "t", starting_offsets={}), r"starting_offsets is \{\}"),  # type: ignore[arg-type]
    "no options": (lambda: jt.kafka("a:1", "t", options=0), r"kafka topic 't': options are 0"),  # type: ignore[arg-type]
    "options": (lambda: jt.kafka("a:1", "t", options=5), r"kafka topic 't': options are 5"),  # type: ignore[arg-type]
    "topic schema": (lambda: source("t", jt.kafka("a:1", "t", schema=5)), r"source 't': schema is 5"),  # type: ignore[arg-type]
    # YAML
    "yaml None": (lambda: jt.from_yaml(None), r"the YAML is None: give the text"),  # type: ignore[arg-type]
    "yaml empty": (lambda: jt.from_yaml(""), r"the YAML holds no mapping: begin with `network: name`"),
    "yaml path": (lambda: jt.from_yaml("examples/taxi.yaml"), r"mapping: .* jt.read_spec\(path\) reads a file"),
    "yaml tab": (lambda: jt.from_yaml("network:\tn\n\tx: 1"), r"the YAML is not valid YAML: .*\(line 1, column 9\)"),
    "yaml object": (lambda: jt.from_yaml("network: !!python/object:os.system x"), r"not valid YAML: .*line 1"),
    "yaml nul": (lambda: jt.from_yaml("network: \x00"), r"not valid YAML: "),
    "yaml deep": (lambda: jt.from_yaml("a: " + "[" * 3000 + "]" * 3000), r"the YAML is nested too deeply"),
    "yaml alias": (
        lambda: jt.from_yaml("network: n\nsources: &a {t: *a}\noutputs: {}"),
        r"sources\.t\.t is not known: use",
    ),
    "yaml twice": (lambda: yaml(more="network: m"), r"'network' stands twice \(line 5, column 1\)"),
    "yaml key": (
        lambda: yaml(more="operater: {}"),
        r"operater is not known \(did you mean 'operators'\?\): use network",
    ),
    "yaml operator": (
        lambda: yaml("{x: {wher: a, of: trips}}"),
        r"operators\.x\.wher is not known \(did you mean 'where'",
    ),
    "yaml kinds": (lambda: yaml("{x: {where: a, select: [a], of: trips}}"), r"operators\.x: say exactly one of"),
    "yaml missing": (lambda: jt.from_yaml("network: n\nsources: {}"), r"outputs is missing: add it"),
    "yaml list": (
        lambda: jt.from_yaml("network: n\nsources: [t]\noutputs: {}"),
        r"sources is \['t'\]: write `name: value`",
    ),
    "yaml number": (
        lambda: yaml(outputs="{o: {of: trips, qos: {priority: high}}}"),
        r"priority is 'high': give a number",
    ),
    "yaml qos": (
        lambda: yaml(outputs="{o: {of: trips, qos: {prio: 5}}}"),
        r"qos\.prio is not known.*: use loss, priority",
    ),
    "yaml text": (lambda: yaml("{x: {where: true, of: trips}}"), r"operators\.x\.where is True: write a text"),
    "yaml items": (lambda: yaml("{x: {select: a, of: trips}}"), r"operators\.x\.select is 'a': write a list"),
    "yaml cycle": (
        lambda: yaml("{x: {union: [trips, y]}, y: {union: [trips, x]}}"),
        r"network 'n' has a cycle among x, y",
    ),
    "yaml itself": (lambda: yaml("{x: {where: a > 0, of: x}}"), r"network 'n' has a cycle among x"),
    "yaml cost": (lambda: yaml(more="profile: {drop_us: -1}"), r"profile\.drop_us is -1: give 0"),
    "yaml agg": (
        lambda: yaml("{x: {window: {size: 1 s, slid: 1}, agg: {n: {init: 'a:b'}}, of: trips}}"),
        r"window\.slid is not known \(did you mean 'slide'\?\): use size.*agg\.n\.columns is missing",
    ),
    "file None": (lambda: jt.read_spec(None), r"None is no path"),  # type: ignore[arg-type]
    "file long": (lambda: jt.read_spec("a" * 5000), r"there is no file 'aaa"),
    "file folder": (lambda: jt.read_spec("/"), r"there is no file '/'"),
    "file binary": (read(bytes(range(256))), r"file.yaml cannot be read: .*UTF-8"),
    "file empty": (read(b""), r"file.yaml holds no mapping"),
    "to_yaml": (lambda: jt.to_yaml(None), r"None is no network"),  # type: ignore[arg-type]
    "yaml shedding": (
        lambda: yaml(more="run: {shedding: dryrun}"),
        r"run\.shedding\.mode is 'dryrun' \(did you mean 'dry-run'\?\): use on, off or dry-run\.$",
    ),
    "yaml catch_up": (
        lambda: yaml(more="run: {shedding: {catch_up: newst}}"),
        r"catch_up is 'newst' \(did you mean 'newest'\?\): use shed, newest or all\.$",
    ),
    "yaml several kinds": (
        lambda: yaml(more="run: {checkpoint: {retention: [1]}}"),
        r"run\.checkpoint\.retention is \[1\]: write a text, or give a whole number\.$",
    ),
    # arguments that a function does not have, or lacks
    "unknown where": (
        lambda: trips().where("fare > 0", nam="w"),  # type: ignore[call-arg]
        r"stream\.where has no argument 'nam' \(did you mean 'name'\?\): it takes predicate, name",
    ),
    "unknown qos": (
        lambda: jt.QoS(valu=5),  # type: ignore[call-arg]
        r"jt\.QoS has no argument 'valu' \(did you mean 'value'\?\): it takes loss, priority, value",
    ),
    "unknown value": (lambda: value(chunks=5), r"jt\.Value has no argument 'chunks' \(did you mean 'chunk'"),
    "unknown source": (lambda: source("t", SCHEMA, event="at"), r"net\.source has no argument 'event'"),
    "unknown window": (lambda: window("1 minute", slid="5 s"), r"stream\.window has no argument 'slid' .*'slide'"),
    "unknown kafka": (lambda: jt.kafka("a:1", "t", shema="a int"), r"jt\.kafka has no argument 'shema' .*'schema'"),  # type: ignore[call-arg]
    "unknown own": (lambda: jt.aggregate(ini=len), r"jt\.aggregate has no argument 'ini' .*'init'"),  # type: ignore[call-arg]
    "missing network": (lambda: jt.Network(), r"jt\.Network: argument 'name' is missing: it takes name"),  # type: ignore[call-arg]
    "missing join": (lambda: trips().join("zones"), r"stream\.join: argument 'on' is missing"),  # type: ignore[call-arg]
    "surplus": (lambda: trips().where("fare > 0", "w"), r"stream\.where: too many positional arguments: it takes"),  # type: ignore[misc]
    "rate": (lambda: Burst(1, 2, at=3, length_s=1), r"Burst has no argument 'at' \(did you mean 'at_s'"),  # type: ignore[call-arg]
    # names that a stream does not have
    "filter": (lambda: trips().filter("fare > 0"), r"stream 'trips' has no 'filter' \(use where\): it has apply, col"),
    "groupBy": (lambda: trips().groupBy("zone"), r"has no 'groupBy' \(use window\(size, by=...\).agg\(...\)\)"),
    "typo": (lambda: trips().selct("fare"), r"has no 'selct' \(did you mean 'select'\?\)"),
    "network name": (lambda: jt.Network("n").sorce("t", SCHEMA), r"network 'n' has no 'sorce' \(did you mean 'source'"),
    "article": (lambda: source("t", "a int", event_time="a"), r"event_time 'a' is an int, not a timestamp"),
    "two of a name": (lambda: twice_named(), r"two operators are called 'x' \(an output and a union\)"),
    # filters that are not boolean
    "where sum": (
        lambda: trips().where("fare + 1"),
        r"where 'where1': 'fare \+ 1' is not boolean: say when a row is kept",
    ),
    "where number": (lambda: trips().where("1"), r"where 'where1': '1' is not boolean: .* such as 'fare > 0'"),
    "where text": (lambda: trips().where("'true'"), r"where 'where1': .* is not boolean"),
    "where cast": (lambda: trips().where("(fare::int)"), r"where 'where1': '\(fare::int\)' is not boolean"),
    "where a column": (
        lambda: trips().select("zone", "Fare AS price").where("price"),
        r"where 'where1': 'price' is not boolean \(it is a double\): say when",
    ),
    "yaml where": (
        lambda: yaml("{x: {where: a * 2, of: trips}}", "{o: {of: x}}"),
        r"where 'x': 'a \* 2' is not boolean",
    ),
    # what `jettison check` looks at beyond declaring
    "sql operator": (lambda: checked("fare >> > 0"), r"where 'paid': 'fare >> > 0' cannot be read as SQL: "),
    "sql bracket": (lambda: checked("(fare > 0"), r"where 'paid': '\(fare > 0' cannot be read as SQL: Expecting \)"),
    "sql several": (lambda: checked("fare > 0, zone > 1"), r"cannot be read as SQL: it is more than one expression"),
    "sql statements": (lambda: checked("fare > 0; DROP TABLE x"), r"cannot be read as SQL: it is no expression"),
    "sql quote": (lambda: checked("zone = 'a"), r"cannot be read as SQL: "),
    "sql deep": (lambda: checked("NOT " * 5000 + "fare > 0"), r"cannot be read as SQL: it is nested too deeply"),
    "sql aggregate": (lambda: checked("sum(fare) > 0"), r"where 'paid': 'sum' in 'sum\(fare\) > 0' needs many rows"),
    "sql argument": (lambda: checked_aggregate("sum(fare +)"), r"aggregate 'busy': 'fare \+' cannot be read as SQL"),
    "no module": (lambda: checked_function("no.such:thing"), r"apply 'own': cannot import 'no.such:thing'"),
    "no function": (lambda: checked_function("math:no"), r"apply 'own': cannot import 'math:no'"),
    "not callable": (lambda: checked_function("math:pi"), r"apply 'own': 'math:pi' is 3.14.*cannot be called"),
    "own missing": (
        lambda: checked_aggregate(jt.whole_window("no.such:thing", columns="fare", type="int")),
        r"aggregate 'busy': 'n': whole_window: cannot import",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_trust_25_wrong_things_end_in_one_line_of_ours(name: str, tmp_path: Path) -> None:
    wrong, message = WRONG[name]
    arguments = (tmp_path,) if name.startswith("file") and wrong.__name__ == "reading" else ()
    with pytest.raises(jt.JettisonError, match=message) as caught:
        wrong(*arguments)
    told = str(caught.value)
    assert "\n" not in told
    assert not any(
        word in told for word in ("Input should", "Extra inputs", "Field required", "Value error", "pydantic")
    )
    assert len(told) < 700 or name == "file long"


def test_trust_25_what_is_right_passes_the_checks() -> None:
    stream = trips()
    for text in (
        *("fare > 0", "zone IN (1, 2) AND NOT isnan(fare)", "exists(array(zone), z -> z > 1)", "fare::int = 1", "true"),
        *("fare::boolean", "NULL", "(zone & 1) = 1", "fare BETWEEN 1 + 1 AND 5", "CASE WHEN fare > 0 THEN true END"),
        *("array_contains(array(zone), 1)", "try_cast(fare AS boolean)", "! isnan(fare)", "coalesce(fare > 0, false)"),
    ):
        stream.where(text).output(f"out{len(stream._network.graph.outputs)}")
    flagged = jt.Network("n").source("t", "ok boolean, deep struct<ok: boolean>, x int").with_columns({"x": "x > 1"})
    for text in ("ok", "(OK)", "NOT ok", "deep.ok", "x"):
        flagged.where(text)
    stream.window("1 minute").agg(a="sum(IF(fare > 1, fare, 0))", b="percentile_approx(fare, array(0.5))").output("w")
    check_sql(stream._network.graph)
    check_imports(stream._network.graph)
