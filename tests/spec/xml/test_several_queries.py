"""Several queries as one network: in one file, or in a folder of files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.spec.xml.queries import AVERAGE, operator

import jettison as jt
from jettison.errors import NetworkError
from jettison.spec.xml import reader

pytestmark = pytest.mark.core

SCHEMA = '<schema name="s"><field type="timestamp" name="t"/><field type="double" name="cpu"/></schema>'
RUN = '<run><parameter name="trigger" value="2 seconds"/></run>'


def query(name: str, where: str = "cpu &gt; 1", *, inside: str = "", **given: str) -> str:
    """A filter of the readings; its operators are called as in every other query."""
    parts = [
        operator("readings", "Input", ["hot"], tuple="s", generator="{preset: taxi}", **given),
        operator("hot", "Filter", ["out"], where="@"),
        operator("out", "Output", [], console="3"),
    ]
    return f'<query name="{name}">{inside}{"".join(parts)}</query>'.replace("@", where)


def network(*queries: str, around: str = "") -> str:
    return f'<network name="all">{SCHEMA}{"".join(queries)}{around}</network>'


def test_inputs_are_shared_and_all_else_has_its_querys_name() -> None:
    spec = jt.from_xml(network(query("ann"), query("bob", "cpu &gt; 2"), around=RUN))
    graph = spec.graph()
    assert graph.arcs == (
        "readings", "readings>ann-hot", "readings>bob-hot", "ann-hot>ann", "bob-hot>bob",
    )  # fmt: skip
    assert spec.run is not None
    assert (spec.run.trigger, set(spec.run.sinks)) == ("2 seconds", {"ann", "bob"})


def test_a_folder_of_files_is_the_same_network(tmp_path: Path) -> None:
    folder = tmp_path / "all"
    folder.mkdir()
    for name in ("bob", "ann"):
        (folder / f"{name}.xml").write_text(query(name, inside=SCHEMA), encoding="utf-8")
    assert jt.read_spec(folder).graph() == jt.from_xml(network(query("ann"), query("bob"))).graph()
    (folder / "other.yaml").write_text("network: other", encoding="utf-8")
    with pytest.raises(NetworkError, match=r"there is no file .*a folder that has only query files \(.xml\)"):
        jt.read_spec(folder)


def test_a_querys_operators_are_called_the_same_whatever_others_there_are() -> None:
    """So that a query can be added or removed between two runs."""
    one = jt.from_xml(network(query("ann"))).graph()
    two = jt.from_xml(network(query("bob"), query("ann"))).graph()
    assert {each.name for each in one.operators} <= {each.name for each in two.operators}


def test_a_query_with_two_outputs_and_windows(tmp_path: Path) -> None:
    more = AVERAGE.replace('<next name="MyOutput"/>', '<next name="MyOutput"/><next name="Second"/>')
    more = more.replace("</query>", operator("Second", "Output", []) + "</query>").partition("?>")[2]
    graph = jt.from_xml(f'<network name="all">{more}</network>').graph()
    assert [each.name for each in graph.outputs] == ["average-MyOutput", "average-Second"]
    assert graph.by_name["average-MyAvgCpu"].inputs == ("MyInput",)


def test_profiles_are_put_together() -> None:
    def costs(name: str, fixed_ms: int) -> str:
        values = {"fixed_ms": str(fixed_ms), "cost_us": "{hot: 2, out: 1, readings: 0.5}", "selectivity": "{hot: 0.1}"}
        inside = "".join(f'<parameter name="{key}" value="{value}"/>' for key, value in values.items())
        return query(name, inside=f"<profile>{inside}</profile>")

    spec = jt.from_xml(network(costs("ann", 3), costs("bob", 3)))
    assert spec.profile is not None
    assert spec.profile.cost_us == {"ann-hot": 2, "ann": 1, "readings": 0.5, "bob-hot": 2, "bob": 1}
    assert spec.profile.fixed_ms == 3
    with pytest.raises(
        NetworkError, match=r"profile.fixed_ms is 4 here, and 3 in another query: let both say the same"
    ):
        jt.from_xml(network(costs("ann", 3), costs("bob", 4)))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (network(query("ann"), query("ann")), r"another query is called 'ann' \(q.xml, line 1\): rename one of them"),
        (
            network(query("ann"), query("bob", id="cpu")),
            r"input 'readings' is .* here, and .* in another query: let both",
        ),
        (network(query("ann b")), r"query 'ann b' names operators of the network: use letters, digits, _ and -"),
        (network(query("ann", inside=SCHEMA)), r"schema 's' is declared twice"),
        (
            network(query("ann", inside=RUN), around=RUN.replace("2", "3")),
            r"run.trigger is '3 seconds' here, and '2 sec",
        ),
        (network(query("ann"), "<operator/>"), r"<network> has no element 'operator'; there are: schema, query"),
        (network(query("ann", "cqu &gt; 1")), r"where 'hot'.*'cqu'"),
    ],
)
def test_faults_name_the_query(text: str, words: str) -> None:
    with pytest.raises(NetworkError, match=words) as told:
        jt.from_xml(text, "q.xml")
    assert str(told.value).startswith("q.xml, line 1")


def test_a_folder_has_one_query_per_file(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(network(query("ann")), encoding="utf-8")
    with pytest.raises(
        NetworkError, match=r"a.xml, line 1: the file begins with <network>: in a folder each file is one"
    ):
        jt.read_spec(tmp_path)


def test_two_queries_whose_parts_get_one_name_are_refused_even_if_they_are_alike() -> None:
    """Query "ann" with an output "b-c", and query "ann-b" with an output "c", are both called "ann-b-c"."""

    def straight(name: str, *outputs: str) -> str:
        parts = [operator("readings", "Input", list(outputs), tuple="s"), *(operator(o, "Output", []) for o in outputs)]
        return f'<query name="{name}">{"".join(parts)}</query>'

    says = (
        r"line 1: output 'ann-b-c' of query 'ann-b' has the name of one of query 'ann' \(.*, line 1\): "
        r"give one of the queries, or of the outputs, another name"
    )
    with pytest.raises(NetworkError, match=says):
        jt.from_xml(network(straight("ann", "b-c", "x"), straight("ann-b", "c", "y")))
    with pytest.raises(NetworkError, match="output 'ann-b' of query 'ann-b' has the name of one of query 'ann'"):
        jt.from_xml(network(straight("ann", "b", "x"), straight("ann-b", "c")))

    def filtered(name: str, inner: str) -> str:
        parts = [
            operator("readings", "Input", [inner], tuple="s"),
            operator(inner, "Filter", ["out"], where="cpu &gt; 1"),
            operator("out", "Output", []),
        ]
        return f'<query name="{name}">{"".join(parts)}</query>'

    with pytest.raises(NetworkError, match="operator 'ann-b-c' of query 'ann-b' has the name of one of query 'ann'"):
        jt.from_xml(network(filtered("ann", "b-c"), filtered("ann-b", "c")))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are a matter of POSIX")
def test_what_is_no_regular_file_is_refused_and_never_read(tmp_path: Path) -> None:
    """Reading a pipe waits for ever, reading a device never ends."""
    (tmp_path / "ann.xml").write_text(query("ann", inside=SCHEMA), encoding="utf-8")
    for make in (os.mkfifo, lambda path: path.symlink_to("/dev/zero"), Path.mkdir):
        odd = tmp_path / "odd.xml"
        make(odd)
        with pytest.raises(NetworkError, match=r"odd.xml is no regular file: give one, or take it out of the folder"):
            jt.read_spec(tmp_path)
        alone = tmp_path / "alone.yaml"
        if not odd.is_dir():
            with pytest.raises(NetworkError, match=r"odd.xml' is no regular file"):
                jt.read_spec(odd)
            odd.rename(alone)
            with pytest.raises(NetworkError, match=r"alone.yaml' is no regular file"):
                jt.read_spec(alone)
            alone.unlink()


def test_a_file_that_grows_is_read_up_to_its_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    large = tmp_path / "large.xml"
    large.write_text(query("ann", inside=SCHEMA) + " " * 2_000_000, encoding="utf-8")
    monkeypatch.setattr(reader, "getsize", lambda path: 100)
    with pytest.raises(NetworkError, match="1,000,000 are read at most"):
        jt.read_spec(large)
