"""Query files: what they mean, and what is wrong with them, by file, line, element and what exists."""

from __future__ import annotations

import pytest
from tests.spec.xml.queries import AVERAGE, average, operator

import jettison as jt
from jettison.errors import NetworkError
from jettison.network.operators import Aggregate, CountAggregate, StreamJoin, Union
from jettison.spec.run_section import Generated, OwnSink, Stored, read_places
from jettison.spec.xml.reader import from_xml

pytestmark = pytest.mark.core

FIELD = '<parameter name="field" value="cpu"/>'
TUPLE = '<parameter name="tuple" value="simpleSchemaONE" />'
TIME = '<parameter name="event_time" value="ts"/>'
CPU = '<field type="double" name="cpu" />'
NEXT = '<next name="MyOutput"/>'
OUT = '<operator name="MyOutput" type="Output"/>'
LAUGHS = "[&a0 [ha], " + ", ".join(f"&a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)) + "]"
"""A thousand million words in YAML."""
WINDOW_NEXT = '<next name="MyAvgCpu"/>'


def output(**parameters: str) -> str:
    return operator("MyOutput", "Output", [], **parameters)


def test_a_whole_number_is_the_time_in_seconds_where_an_input_says_so() -> None:
    (source,) = from_xml(AVERAGE).graph().sources
    assert source.schema == (("ts", "timestamp"), ("idx", "double"), ("cpu", "double"))
    rows = average('value="10 seconds"', 'value="100 rows"').replace('<parameter name="event_time" value="ts"/>', "")
    (source,) = from_xml(rows).graph().sources
    assert source.schema[0] == ("ts", "long")


@pytest.mark.parametrize(
    ("kind", "parameters", "expected"),
    [
        ("average", FIELD, ("cpu", "avg(cpu)")),
        ("Sum", FIELD, ("cpu", "sum(cpu)")),
        ("MAX", FIELD, ("cpu", "max(cpu)")),
        ("Min", f'{FIELD}<parameter name="as" value="least"/>', ("least", "min(cpu)")),
        ("Count", "", ("count", "count(*)")),
        ("Count", FIELD, ("cpu", "count(cpu)")),
    ],
)
def test_aggregates(kind: str, parameters: str, expected: tuple[str, str]) -> None:
    graph = from_xml(average('type="Average"', f'type="{kind}"').replace(FIELD, parameters)).graph()
    (aggregate,) = graph.aggregates
    assert aggregate.aggregates == (expected,)
    assert aggregate.window.by == ("idx",)


def test_windows_of_rows_and_a_window_that_two_aggregates_read() -> None:
    text = average('value="10 seconds"/>', 'value="100 rows"/><parameter name="slide" value="10 rows"/>')
    text = text.replace(WINDOW_NEXT, f'{WINDOW_NEXT}<next name="N"/>')
    text = text.replace("</query>", operator("N", "Count", ["Counts"]) + operator("Counts", "Output", []) + "</query>")
    graph = from_xml(text).graph()
    assert {each.name: (each.window.size_rows, each.window.slide_rows) for each in graph.count_aggregates} == {
        "MyAvgCpu": (100, 10),
        "N": (100, 10),
    }


def test_joins_and_unions_read_in_the_order_of_the_file_or_as_they_say() -> None:
    schema = '<schema name="s"><field type="timestamp" name="t"/><field type="int" name="k"/></schema>'

    def query(kind: str, **parameters: str) -> str:
        inputs = [operator(name, "Input", ["both"], tuple="s", event_time="t") for name in ("b", "a")]
        both = operator("both", kind, ["o"], **parameters)
        return f'<query name="q">{schema}{both}{"".join(inputs)}{operator("o", "Output", [])}</query>'

    union = from_xml(query("Union")).graph().by_name["both"]
    assert isinstance(union, Union)
    assert union.inputs == ("b", "a")
    assert from_xml(query("Union", inputs="a, b")).graph().by_name["both"].inputs == ("a", "b")
    join = from_xml(query("Join", on="k, t", within="1 minute", inputs="a, b")).graph().by_name["both"]
    assert isinstance(join, StreamJoin)
    assert (join.inputs, join.on, join.within_ms) == (("a", "b"), ("k", "t"), 60_000.0)
    with pytest.raises(
        NetworkError, match=r"parameter 'inputs' is 'a, c': name each operator that it reads once: b, a"
    ):
        from_xml(query("Union", inputs="a, c"))
    with pytest.raises(NetworkError, match=r"'both' \(Join\) has no band: .*'within'.*'table'"):
        from_xml(query("Join", on="k"))
    with pytest.raises(NetworkError, match=r"'both' \(Join\) reads 2 operators \(b, a\): merge them by a Union"):
        from_xml(query("Join", on="k", table="hosts"))


def test_places_of_inputs_and_outputs_are_those_of_a_run() -> None:
    text = AVERAGE.replace(
        '<operator name="MyOutput" type="Output"/>', operator("MyOutput", "Output", [], parquet="out/x")
    )
    files = text.replace(
        'value="ts"/>', 'value="ts"/><parameter name="format" value="json"/><parameter name="path" value="in"/>'
    )
    spec = from_xml(files)
    places = read_places(spec, spec.graph())
    assert places.sources["MyInput"] == Stored("json", {"path": "in"}, "ts timestamp, idx double, cpu double")
    assert places.sinks["MyOutput"] == OwnSink("parquet", "out/x")
    generated = text.replace(
        'value="ts"/>', 'value="ts"/><parameter name="generator" value="{preset: taxi, seed: 3}"/>'
    )
    spec = from_xml(generated)
    place = read_places(spec, spec.graph()).sources["MyInput"]
    assert isinstance(place, Generated)
    assert place.seed == 3


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        # what is not known, with what is
        (
            'type="Average"',
            'type="Avrage"',
            r"line 17: operator 'MyAvgCpu' has the unknown type 'Avrage' \(did you mean 'Average'\?\); there are: "
            r"Input, Output, Filter, Project, Union, Join, Window, Average, Sum, Max, Min, Count",
        ),
        (
            FIELD,
            FIELD.replace("field", "feild"),
            r"line 20: operator 'MyAvgCpu' \(Average\) has no parameter 'feild' \(did you mean 'field'\?\); "
            r"there are: field, groupby, as, tuple",
        ),
        (
            NEXT,
            '<next name="MyOutputs"/>',
            r"line 17: operator 'MyAvgCpu' \(Average\) has the next operator 'MyOutputs', which the query does not "
            r"have \(did you mean 'MyOutput'\?\); there are: MyInput, MyWindow",
        ),
        (
            TUPLE,
            TUPLE.replace("ONE", "TWO"),
            r"no schema has this name \(did you mean 'simpleSchemaONE'\?\); there are: simpleS",
        ),
        (
            FIELD,
            FIELD.replace("cpu", "tmp"),
            r"'field' is 'tmp': schema 'simpleSchemaONE' has no field 'tmp'; it has ts, idx",
        ),
        (f"{TUPLE}\n    {FIELD}", FIELD.replace("cpu", "tmp"), r"line 2: aggregate 'MyAvgCpu': .*'tmp'"),
        ('value="idx"', 'value="idx, id"', r"schema 'simpleSchemaONE' has no field 'id' \(did you mean 'idx'\?\)"),
        (
            "</query>",
            "<shema/></query>",
            r"<query> has no element 'shema' \(did you mean 'schema'\?\); there are: schema, ope",
        ),
        (
            CPU,
            CPU.replace("double", "duble"),
            r"line 6: .*'cpu' has the unknown type 'duble' \(did you mean 'double'\?\)",
        ),
        (
            CPU,
            CPU.replace("name", "names"),
            r"<field> has no attribute 'names' \(did you mean 'name'\?\); there are: type, name",
        ),
        (CPU, '<field type="double"/>', r"line 6: <field>: the attribute 'name' is missing"),
        (CPU, '<field type="double" name=" "/>', r"line 6: <field>: the attribute 'name' is empty"),
        (CPU, CPU.replace("cpu", "idx"), r"line 3: schema 'simpleSchemaONE': column 'idx' stands twice"),
        (' name="average"', "", r"<query>: the attribute 'name' is missing"),
        (' name="average"', ' name="average" xmlns="http://x"', r"<query> has no attribute 'xmlns'; there are: name"),
        # what is there twice, or not at all
        (
            'name="MyWindow" type',
            'name="MyInput" type',
            r"line 13: .* has the name of another operator \(q.xml, line 8\)",
        ),
        (FIELD, FIELD + FIELD, r"says parameter 'field' twice"),
        (NEXT, NEXT + NEXT, r"names 'MyOutput' twice as its next"),
        (FIELD, "", r"line 17: operator 'MyAvgCpu' \(Average\) lacks parameter 'field': add <parameter"),
        (FIELD, FIELD.replace("cpu", "cpu, idx"), r"parameter 'field' is 'cpu, idx': name one column"),
        ('value="idx"', 'value="idx,,cpu"', r"a part between commas is empty"),
        (TUPLE.replace(" /", "/"), "", r"line 8: .* \(Input\) lacks parameter 'tuple': .*; there are: simpleSchemaONE"),
        ("</query>", "<run/><run/></query>", r"<run> stands twice"),
        # shapes that cannot be
        (NEXT, "", r"'MyAvgCpu' \(Average\) leads to no output: add <next"),
        (OUT, OUT.replace("/>", f">{WINDOW_NEXT}</operator>"), r"has a next operator \(MyAvgCpu\): an output ends"),
        (NEXT, '<next name="MyInput"/>', r"has the next operator 'MyInput', an Input, which reads no operator"),
        ('<next name="MyWindow"/>', WINDOW_NEXT, r"'MyWindow' \(Window\) is the next of no operator"),
        (
            WINDOW_NEXT,
            NEXT,
            r"'MyOutput' \(Output\): only Average, Sum, Count, Max, Min read windows|reads 2 operators",
        ),
        ('type="Window"', 'type="Union"', r"has no parameter 'size'; there are: inputs, tuple"),
        ('value="10 seconds"', 'value="soon"', r"line 2: .*'soon'"),
        (TIME, "", r"line 2: aggregate 'MyAvgCpu': windows are by event time.*'MyInput'"),
        # values that are written as in YAML
        (OUT, output(quality="maybe"), r"outputs.MyOutput.quality is 'maybe': use true or false"),
        (OUT, output(qos="{priority: [}"), r"parameter 'qos' is '\{priority: \[\}': it is not valid YAML: .*line 1"),
        (OUT, output(qos="{prio: 2}"), r"outputs.MyOutput.qos.prio is not known"),
        (
            OUT,
            output(qos=LAUGHS),
            r"parameter 'qos' is .*: it has an alias \(\*\): write out what the alias stands for",
        ),
        (OUT, output(qos="[" * 5000), r"nested too deeply|not valid YAML"),
        (
            "</query>",
            '<run><parameter name="triger" value="1"/></run></query>',
            r"\(did you mean 'trigger'\?\); there are: tri",
        ),
    ],
)
def test_faults_name_the_line_and_what_exists(before: str, after: str, words: str) -> None:
    with pytest.raises(NetworkError, match=words) as told:
        from_xml(average(before, after), "q.xml").graph()
    assert str(told.value).startswith("q.xml")
    assert "\n" not in str(told.value)
    assert len(str(told.value)) < 400


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<queries/>", r"the file begins with <queries>: begin with <query name=\"...\">, or <network>"),
        ('<query name="a"/>', r"query 'a' has no operator of type Input: add one"),
        ('<network name="a"/>', r"<network> has no <query>"),
    ],
)
def test_files_that_have_no_query(text: str, words: str) -> None:
    with pytest.raises(NetworkError, match=words):
        from_xml(text)


def test_an_aggregate_needs_a_window() -> None:
    text = AVERAGE.replace('<next name="MyWindow"/>', '<next name="MyAvgCpu"/>')
    start, end = text.index('  <operator name="MyWindow"'), text.index('  <operator name="MyAvgCpu"')
    with pytest.raises(
        NetworkError, match=r"\(Average\) reads 'MyInput', which is no Window: .*'10 seconds' or '100 rows'"
    ):
        from_xml(text[:start] + text[end:])


def test_the_tuple_of_an_operator_must_arrive_there() -> None:
    text = average('<next name="MyWindow"/>', '<next name="Slim"/>')
    slim = operator("Slim", "Project", ["MyWindow"], select="ts, cpu AS load")
    with pytest.raises(
        NetworkError,
        match=r"parameter 'tuple' is 'simpleSchemaONE': its field 'idx' does not arrive from 'Slim', which gives ts",
    ):
        from_xml(
            text.replace("</query>", slim + "</query>")
            .replace(FIELD, FIELD.replace("cpu", "ts"))
            .replace('"groupby" value="idx"', '"as" value="x"')
        )


def test_a_cycle_is_refused() -> None:
    loop = (
        operator("a", "Union", ["b"]) + operator("b", "Filter", ["a", "o"], where="true") + operator("o", "Output", [])
    )
    text = average('<next name="MyWindow"/>', '<next name="MyWindow"/><next name="a"/>').replace(
        "</query>", loop + "</query>"
    )
    with pytest.raises(NetworkError, match="cycle"):
        from_xml(text)
    nested = average(WINDOW_NEXT, '<next name="MyWindow"/>')
    with pytest.raises(NetworkError, match=r"'MyWindow' \(Window\) has the next operator 'MyWindow' \(Window\)"):
        from_xml(nested)


def test_kinds_of_aggregates_are_told_apart() -> None:
    graph = jt.from_xml(AVERAGE).graph()
    assert isinstance(graph.by_name["MyAvgCpu"], Aggregate)
    assert not any(isinstance(each, CountAggregate) for each in graph.operators)
