"""The command line: what it prints, where it prints it, and how it ends."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.app.commands import TAXI, changed, jettison
from typer.testing import Result

from jettison.app.plan import chosen_rows
from jettison.errors import StartError
from jettison.experiments import harness
from jettison.spec.network_file import read_spec

core = pytest.mark.core


def assert_refused(result: Result, code: int, *words: str) -> None:
    """One line on stderr with these words, nothing on stdout, no traceback."""
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1, result.stderr
    for word in words:
        assert word in result.stderr


# --- check --------------------------------------------------------------------------------------------------------


@core
def test_version() -> None:
    result = jettison("--version")
    assert result.exit_code == 0
    assert re.fullmatch(r"jettison \d+\.\d+\.\d+\n", result.stdout)


@core
def test_bare_command_shows_all_commands() -> None:
    result = jettison()
    assert result.exit_code == 0
    for command in ("check", "plan", "explain", "simulate", "run", "top", "demo", "kafka", "experiment"):
        assert re.search(rf"^\W+{command}\b", result.stdout, re.MULTILINE), command


@core
def test_check_shows_the_network() -> None:
    result = jettison("check", TAXI)
    assert result.exit_code == 0
    assert "\n  paid: where fare > 0\n" in result.stdout
    assert result.stdout.endswith("ok: 1 source, 5 operators, 3 outputs\n")
    assert result.stderr == ""


@core
@pytest.mark.parametrize(
    ("path", "to", "words"),
    [
        (("operators", "paid", "where"), "fair > 0", ["'paid'", "'fair'", "trip, pickup, zone, fare"]),
        (("outputs", "busy", "of"), "centre", ["'busy'", "'centre'"]),
        (("profile", "cost_us"), {"nobody": 1.0}, ["cost_us", "'nobody'"]),
        (("profile", "cost_us", "paid"), float("inf"), ["'paid'", "inf"]),
        (("profile", "rows_per_s"), {"nobody": 1.0}, ["rows_per_s", "'nobody'", "trips"]),
        (("run", "trigger"), "soon", ["run.trigger", "'soon'"]),
        (("run", "shedding"), {"headroom": 1.5}, ["run.shedding.headroom", "1.5"]),
        (("run", "sources", "trips"), None, ["run.sources", "'trips'"]),
        (("run", "sources", "trip"), {"format": "rate"}, ["run.sources.trip", "trips"]),
        (("run", "sources", "trips"), {"path": "x"}, ["run.sources.trips", "generator", "format"]),
        (("run", "sources", "trips", "format"), "rate", ["run.sources.trips", "both"]),
        (("run", "sources", "trips", "path"), "x", ["run.sources.trips.path"]),
        (("run", "sources", "trips", "generator", "preset"), "taxy", ["generator.preset", "'taxy'", "taxi_payload"]),
        (("run", "sources", "trips", "generator", "preset"), None, ["trips.generator", "neither preset nor fields"]),
        (("run", "sources", "trips", "generator", "fields"), "taxi", ["generator.fields", "preset: taxi"]),
        (("run", "sources", "trips", "generator", "fields"), {}, ["trips.generator", "both preset and fields"]),
        (("run", "sources", "trips", "generator", "seed"), "x", ["trips.generator.seed", "'x'"]),
        (("run", "sources", "trips", "generator", "sed"), 7, ["trips.generator.sed", "seed"]),
        (("run", "sources", "trips", "generator", "rate", "kind"), "bust", ["generator.rate", "'bust'", "burst"]),
        (("run", "sinks", "alarms"), None, ["run.sinks", "'alarms'"]),
        (("run", "sinks", "alarm"), {"console": None}, ["run.sinks.alarm", "alarms"]),
        (("run", "sinks", "busy"), {"parket": "x"}, ["run.sinks.busy", "parket", "parquet"]),
        (("run", "sinks", "busy"), {"parquet": "x", "console": 1}, ["run.sinks.busy", "exactly one"]),
        (
            ("run", "sinks", "busy"),
            {"parquet": "x", "on_other_run": "add"},
            ["run.sinks.busy.on_other_run", "'add'", "replace"],
        ),
        (("run", "sinks", "busy"), {"parquet": 7}, ["run.sinks.busy.parquet", "7"]),
        (("run", "sinks", "busy"), {"parquet": "x", "mode": "append"}, ["run.sinks.busy.mode"]),
        (("run", "sinks", "busy"), {"console": 0}, ["run.sinks.busy.console", "0"]),
        (("run", "sinks", "busy"), {"format": "csv", "options": {"a": [1]}}, ["run.sinks.busy.options.a", "[1]"]),
        (("run", "sinks", "busy"), {"format": "csv", "schema": "a int"}, ["run.sinks.busy.schema"]),
        (("run", "tables"), {"zones": {"format": "csv"}}, ["run.tables.zones", "none"]),
    ],
)
def test_check_names_the_fault(tmp_path: Path, path: tuple[str, ...], to: Any, words: list[str]) -> None:
    assert_refused(jettison("check", changed(tmp_path, *path, to=to)), 1, *words)


@core
def test_check_notes_functions_that_spark_does_not_have(tmp_path: Path) -> None:
    result = jettison("check", changed(tmp_path, "operators", "signed", "with_columns", "signature", to="shaa2(zone)"))
    assert result.exit_code == 0
    assert "note: with_columns 'signed' calls 'shaa2'" in result.stdout
    assert "(did you mean 'sha2'?)" in " ".join(result.stdout.split())
    assert "note" not in jettison("check", TAXI).stdout


@core
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a: b: c", ["not valid YAML", "line 1"]),
        (b"\xff\xfe", ["UTF-8"]),
        (b"- 1", ["network: name"]),
        (b"", ["network"]),
    ],
)
def test_check_refuses_what_is_no_specification(tmp_path: Path, content: bytes, words: list[str]) -> None:
    file = tmp_path / "odd.yaml"
    file.write_bytes(content)
    assert_refused(jettison("check", file), 1, "odd.yaml", *words)


@core
@pytest.mark.parametrize(
    ("arguments", "code", "word"),
    [
        (["check"], 2, "SPEC"),
        (["check", "nowhere.yaml"], 2, "nowhere.yaml"),
        (["chek", "x"], 2, "'chek'"),
        (["--bogus"], 2, "--bogus"),
        (["plan", TAXI, "--most", "1"], 2, "--most"),
        (["plan", TAXI, "--headroom", "much"], 2, "--headroom"),
        (["plan", TAXI, "--headroom", "0"], 2, "headroom is 0"),
        (["plan", TAXI, "--rows-per-s", "trips"], 2, "SOURCE=N"),
        (["plan", TAXI, "--rows-per-s", "trips=many"], 2, "SOURCE=N"),
        (["plan", TAXI, "--rows-per-s", "trips=-1"], 2, "-1"),
        (["explain", TAXI, "--rows-per-s", "rides=1"], 2, "sources: trips"),
        (["simulate", TAXI, "--for", "0"], 2, "--for"),
        (["simulate", TAXI, "--for", "inf"], 2, "--for"),
        (["simulate", TAXI, "--rate", "trips"], 2, "--rate 'trips' is not of the form SOURCE=N"),
        (["simulate", TAXI, "--rate", "trips=-1"], 2, "-1"),
        (["simulate", TAXI, "--rate", "rides=1"], 2, "sources: trips"),
        (["simulate", TAXI, "--scheduler", "fifo"], 2, "round-robin"),
        (["simulate", TAXI, "--seed", "-1"], 2, "--seed"),
        (["simulate", TAXI, "--headroom", "0"], 2, "headroom is 0"),
        (["simulate", TAXI, "--shedder", "nobody"], 2, "input-uniform"),
        (["simulate", TAXI, "--out", TAXI], 2, "taxi.yaml"),
        (["run", TAXI, "--for", "0"], 2, "--for"),
        (["run", TAXI, "--cores", "0"], 2, "--cores"),
        (["run", TAXI, "--metrics-port", "70000"], 2, "--metrics"),
        (["run", TAXI, "--shedder", "nobody"], 2, "input-uniform"),
        (["run", TAXI, "--metrics", "here"], 2, "metrics is 'here'"),
        (["run", "nowhere.yaml"], 2, "nowhere.yaml"),
        (["plan", TAXI, "--rows-per-s", "rides=1"], 2, "'rides' is not a source of network 'taxi'; sources: trips"),
        (["plan", TAXI.parent], 2, "a folder without query files"),
        (["run", TAXI, "--dry-run", "--no-shedding"], 2, "exclude each other"),
        (["top", TAXI.parent], 1, "is no checkpoint, as it has no network.json"),
        (["demo", "--seconds", "-1"], 2, "--seconds"),
        (["demo", "--seconds", "inf"], 2, "--seconds"),
        (["demo", "--out", TAXI], 2, "taxi.yaml"),
        (["experiment"], 2, "command"),
        (["experiment", "run"], 2, "--all"),
        (["experiment", "run", "planning", "--all"], 2, "--all"),
        (["experiment", "run", "nothing"], 2, "planning"),
        (["experiment", "run", "planning", "--out", TAXI], 2, "taxi.yaml"),
    ],
)
def test_wrong_commands_are_refused_in_one_line(arguments: list[object], code: int, word: str) -> None:
    assert_refused(jettison(*arguments), code, word)


# --- plan and explain ---------------------------------------------------------------------------------------------


@core
def test_plan_shows_first_last_and_needed_row() -> None:
    result = jettison("plan", TAXI, "--most", "6")
    assert result.exit_code == 0
    count = int(re.search(r"(\d+) rows, for trips", result.stdout)[1])  # type: ignore[index]
    needed = math.ceil(float(re.search(r"row ([\d.]+) of \d+ is needed", result.stdout)[1]))  # type: ignore[index]
    shown = [int(row) for row in re.findall(r"^ *(?:> )?(\d+) +[\d,]+ +[\d.]+ %", result.stdout, re.MULTILINE)]
    assert len(shown) == 6
    assert shown[0] == 0
    assert shown[-1] == count - 1
    assert needed in shown[1:-1]
    assert re.search(rf"^ *> {needed} ", result.stdout, re.MULTILINE)
    assert max(map(len, result.stdout.partition("The load is")[0].splitlines()[1:])) <= 80


@core
def test_plan_says_when_nothing_is_shed() -> None:
    result = jettison("plan", TAXI, "--rows-per-s", "trips=1000")
    assert "row 0 suffices, nothing is shed" in result.stdout
    assert re.search(r"^ *> 0 ", result.stdout, re.MULTILINE)


@core
def test_plan_says_why_no_row_suffices(tmp_path: Path) -> None:
    result = jettison("plan", changed(tmp_path, "profile", "fixed_ms", to=2000.0))
    assert result.exit_code == 0
    assert "no row suffices" in result.stdout
    assert "reading and fixed work take 2000 ms" in result.stdout
    assert not re.search(r"^ *> ", result.stdout, re.MULTILINE)


@core
def test_less_headroom_needs_a_later_row() -> None:
    def row(headroom: str) -> float:
        shown = jettison("plan", TAXI, "--headroom", headroom).stdout
        return float(re.search(r"row ([\d.]+) of \d+ is needed", shown)[1])  # type: ignore[index]

    assert row("0.5") > row("0.9")


@core
def test_a_longer_trigger_spreads_the_fixed_part(tmp_path: Path) -> None:
    longer = changed(tmp_path, "run", "trigger", to="2 seconds")
    fixed = [re.search(r"fixed, per batch +([\d.]+) %", jettison("explain", each).stdout) for each in (TAXI, longer)]
    assert float(fixed[0][1]) == pytest.approx(2 * float(fixed[1][1]), abs=0.2)  # type: ignore[index]


@core
@pytest.mark.parametrize("command", ["plan", "explain"])
def test_planning_needs_a_profile_and_rates(tmp_path: Path, command: str) -> None:
    bare = changed(tmp_path, "profile", to=None)
    assert_refused(jettison(command, bare), 1, "profile", "cost_us", "profile.json")
    rateless = changed(tmp_path, "profile", "rows_per_s", to=None)
    assert_refused(jettison(command, rateless), 1, "'trips'", "--rows-per-s trips=")
    assert jettison(command, rateless, "--rows-per-s", "trips=1_000").exit_code == 0


@core
def test_many_outputs_share_a_column(tmp_path: Path) -> None:
    outputs = {f"copy{each}": {"of": "paid"} for each in range(7)}
    many = changed(tmp_path, "outputs", to={**yaml.safe_load(TAXI.read_text())["outputs"], **outputs})
    content = yaml.safe_load(many.read_text())
    del content["run"]
    many.write_text(yaml.safe_dump(content))
    shown = jettison("plan", many, "--most", "3").stdout
    assert "delivered" in shown
    assert "copy6 100 %" in shown
    assert max(map(len, shown.partition("The load is")[0].splitlines()[1:])) <= 80


@core
@pytest.mark.parametrize("command", ["plan", "explain"])
def test_closed_outputs_are_told_with_the_reason_and_drops_that_keep_all_are_not(command: str) -> None:
    stocks = TAXI.parent / "stocks.yaml"
    shown = jettison(command, stocks, "--rows-per-s", "quotes=30_000_000").stdout
    reason = "overload: dropping as many windows as may go is not enough, extremes closed"
    assert f"closed, so that nothing is delivered: extremes ({reason})\n" in shown
    assert "100 % by window" not in shown
    assert re.search(r"[1-9][\d.]* % by window", jettison(command, stocks, "--rows-per-s", "quotes=1_200_000").stdout)
    assert "closed" not in jettison(command, stocks).stdout


@core
def test_simulate_says_why_an_output_is_closed() -> None:
    shown = jettison("simulate", TAXI, "--rate", "trips=20_000_000", "--for", "3").stdout
    assert "closed, so that nothing is delivered: prices, busy (overload: any part of it costs more utility" in shown
    assert "closed" not in jettison("simulate", TAXI, "--rate", "trips=1_000_000", "--for", "3").stdout


@core
def test_explain_adds_up() -> None:
    profile = read_spec(TAXI).profile
    assert profile is not None
    shown = jettison("explain", TAXI, "--rows-per-s", "trips=1000000").stdout
    parts = [float(share) for share in re.findall(r"^ +\w+ +[\d.]+ +[\d.]+ % +[\d.]+ +[\d,]+ +([\d.]+) %", shown, re.M)]
    whole = float(re.search(r"^ all +([\d.]+) %", shown, re.MULTILINE)[1])  # type: ignore[index]
    assert len(parts) == 9
    assert sum(parts) + profile.fixed_ms / 10 == pytest.approx(whole, abs=0.5)
    assert f"The load is {whole:g} % of capacity" in shown
    assert re.search(r"^ +signed .* [\d.]+ %$", shown, re.MULTILINE)  # the drop before the costly part


@core
def test_trust_9_check_and_explain_show_floors(tmp_path: Path) -> None:
    spec = changed(tmp_path, "outputs", "busy", "qos", to={"min_accuracy": 0.7})
    assert "output min_accuracy 0.7" in jettison("check", spec).stdout
    shown = jettison("explain", spec, "--rows-per-s", "trips=1000000").stdout
    said = re.search(r"output busy: min_accuracy 0.7, ([\d.]+) % of its source rows are", shown)
    assert said is not None, shown
    assert 70.0 <= float(said[1]) <= 100.0
    faulty = changed(tmp_path, "outputs", "busy", "qos", to={"min_accuracy": 7})
    assert_refused(jettison("check", faulty), 1, "'busy'", "min_accuracy is 7")


@core
def test_explain_says_what_each_refinement_changes() -> None:
    shown = jettison("explain", TAXI.parent / "stocks.yaml", "--rows-per-s", "quotes=3000000").stdout
    listed = shown.partition("refinements of the plan, in a run:\n")[2]
    assert listed.startswith("  schedules: quotes keeps the same share by window, chosen anew"), shown
    calm = jettison("explain", TAXI.parent / "stocks.yaml").stdout
    assert "refinements" not in calm


@core
def test_explain_as_mermaid_is_mermaid_alone() -> None:
    lines = jettison("explain", TAXI, "--mermaid").stdout.splitlines()
    assert lines[0].startswith("%% The load is")
    assert lines[1] == "flowchart LR"
    assert any(re.fullmatch(r"  paid -->\|keep [\d.]+ %\| signed", line) for line in lines)
    assert any("cost 1." in line and "signed" in line for line in lines)


@core
@pytest.mark.parametrize("count", [1, 2, 3, 19, 20, 21, 500])
@pytest.mark.parametrize("most", [2, 3, 20])
def test_chosen_rows(count: int, most: int) -> None:
    for needed in {0, count // 3, count - 1}:
        rows = chosen_rows(count, most, needed)
        assert rows == sorted(set(rows))
        assert (rows[0], rows[-1]) == (0, count - 1)
        assert len(rows) == min(most, count)
        assert needed in rows or most == 2


# --- simulate -----------------------------------------------------------------------------------------------------


def simulated(*arguments: object) -> dict[str, Any]:
    result = jettison("simulate", *arguments, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@core
def test_simulate_shows_outputs_and_says_what_it_is() -> None:
    result = jettison("simulate", TAXI, "--rate", "trips=1_200_000", "--for", "10")
    assert result.exit_code == 0
    assert result.stdout.startswith("simulation of network taxi, 10 s: trips 1,200,000 rows/s\n")
    rows = re.findall(r"^ (\w+) +[\d,]+ +([\d.]+) % +[\d.]+ +([\d.]+ s *){4}$", result.stdout, re.MULTILINE)
    assert {name: float(share) < 100 for name, share, _ in rows} == {"alarms": False, "prices": True, "busy": True}
    assert "10 batches, 12,000,000 rows in" in result.stdout
    assert "nothing was run or measured" in result.stdout
    assert max(map(len, result.stdout.splitlines()[1:-2])) <= 80


@core
@pytest.mark.parametrize("scheduler", ["batch", "round-robin"])
def test_simulate_takes_the_rate_of_the_generator(scheduler: str) -> None:
    found = simulated(TAXI, "--for", "20", "--scheduler", scheduler)
    assert found["simulation"] is True
    assert found["arrived"] == {"trips": 15 * 50_000 + 5 * 1_500_000}
    assert found["shed"]
    assert not simulated(TAXI, "--for", "20", "--scheduler", scheduler, "--no-shedding")["shed"]


@core
def test_simulate_takes_a_shedder() -> None:
    found = simulated(TAXI, "--rate", "trips=1_200_000", "--for", "5", "--shedder", "input-uniform")
    assert list(found["shed"]) == ["trips"]
    shares = [output["delivered_share"] for output in found["outputs"].values()]
    assert shares == pytest.approx([shares[0]] * len(shares), abs=0.01) != [1.0] * len(shares)


@core
def test_simulate_falls_back_to_the_profile_and_asks_for_a_rate(tmp_path: Path) -> None:
    without = changed(tmp_path, "run", "sources", "trips", "generator", "rate", to=None)
    assert simulated(without, "--for", "2")["arrived"] == {"trips": 3_000_000}
    content = yaml.safe_load(without.read_text())
    del content["profile"]["rows_per_s"]
    del content["run"]
    without.write_text(yaml.safe_dump(content))
    assert_refused(jettison("simulate", without), 1, "'trips'", "--rate trips=")
    assert simulated(without, "--for", "2", "--rate", "trips=10")["arrived"] == {"trips": 20}
    del content["profile"]
    without.write_text(yaml.safe_dump(content))
    assert_refused(jettison("simulate", without), 1, "profile.cost_us")


@core
def test_simulate_names_a_rate_that_cannot_be(tmp_path: Path) -> None:
    odd = changed(tmp_path, "run", "sources", "trips", "generator", "rate", "kind", to="bust")
    assert_refused(jettison("simulate", odd), 1, "run.sources.trips.generator.rate", "'bust'", "burst")


@core
def test_simulate_is_the_same_for_the_same_seed() -> None:
    first, again, other = (simulated(TAXI, "--for", "5", "--seed", seed) for seed in (3, 3, 4))
    assert first == again
    assert first["outputs"] != other["outputs"]


@core
def test_simulate_says_why_it_cannot_keep_up(tmp_path: Path) -> None:
    slow = changed(tmp_path, "profile", "fixed_ms", to=2000.0)
    result = jettison("simulate", slow, "--for", "10")
    assert result.exit_code == 0
    assert "cannot keep up" in result.stdout


@core
def test_simulate_draws(tmp_path: Path) -> None:
    result = jettison("simulate", TAXI, "--for", "3", "--json", "--out", tmp_path / "deep" / "er")
    assert (tmp_path / "deep" / "er" / "simulation.png").read_bytes().startswith(b"\x89PNG")
    assert "wrote" in result.stderr
    json.loads(result.stdout)


# --- experiments --------------------------------------------------------------------------------------------------


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three experiments: one that holds, one that does not, one that breaks off."""

    def module(name: str, run: Any) -> None:
        made = types.ModuleType(f"jettison.experiments.{name}")
        made.run = run  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, made.__name__, made)

    def good(quick: bool, say: harness.Say) -> harness.Result:
        say("half way")
        rows = [{"second": 1, "rate": 2.0}]
        return harness.Result("good", {"ratio": 1.25, "quick": float(quick)}, {"it holds": True}, rows, lambda f: None)

    def bad(quick: bool, say: harness.Say) -> harness.Result:
        return harness.Result("bad", {"ratio": 123456.7}, {"it holds": True, "so does this": False})

    def broken(quick: bool, say: harness.Say) -> harness.Result:
        raise StartError("no Java here")

    for name, run in (("good", good), ("bad", bad), ("broken", broken)):
        module(name, run)
    names = ("good", "bad", "broken")
    entries = tuple(harness.Experiment(name, name, f"thesis {k}", f"what {name} shows") for k, name in enumerate(names))
    monkeypatch.setattr(harness, "EXPERIMENTS", entries)


@core
@pytest.mark.usefixtures("fake")
def test_experiment_list() -> None:
    shown = jettison("experiment", "list").stdout
    assert re.search(r"^ good +thesis 0 +what good shows *$", shown, re.MULTILINE)
    assert "broken" in shown


@core
@pytest.mark.usefixtures("fake")
def test_experiment_that_holds(tmp_path: Path) -> None:
    result = jettison("experiment", "run", "good", "--quick", "--json", "--out", tmp_path / "deep" / "er")
    assert result.exit_code == 0
    found = json.loads(result.stdout)  # one object, and nothing else
    assert found == {
        "name": "good",
        "metrics": {"ratio": 1.25, "quick": 1.0},
        "checks": {"it holds": True},
        "passed": True,
    }
    assert "half way" in result.stderr
    assert "half way" not in result.stdout
    assert re.search(r"it holds +pass", result.stderr)
    for name in ("good.csv", "good.png"):
        assert f"wrote {tmp_path / 'deep' / 'er' / name}" in result.stderr
        assert (tmp_path / "deep" / "er" / name).stat().st_size > 0


@core
@pytest.mark.usefixtures("fake")
def test_experiment_that_does_not_hold(tmp_path: Path) -> None:
    result = jettison("experiment", "run", "bad", "--out", tmp_path)
    assert result.exit_code == 1
    assert re.search(r"so does this +FAIL", result.stdout)
    assert re.search(r"ratio +123,457", result.stdout)
    assert '"name"' not in result.stdout


@core
@pytest.mark.usefixtures("fake")
def test_experiment_that_breaks_off(tmp_path: Path) -> None:
    assert_refused(jettison("experiment", "run", "broken", "--out", tmp_path), 1, "no Java here")


@core
@pytest.mark.usefixtures("fake")
def test_all_experiments(tmp_path: Path) -> None:
    result = jettison("experiment", "run", "--all", "--json", "--out", tmp_path)
    assert result.exit_code == 1
    assert "1 of 3 experiments passed" in result.stderr
    assert [json.loads(line)["name"] for line in result.stdout.splitlines()] == ["good", "bad"]
    assert "broken broke off: StartError: no Java here" in result.stderr


@core
def test_demo_is_handed_its_options(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given: list[Any] = []
    made = types.ModuleType("jettison.experiments.overloads.demo")

    def run_demo(*arguments: Any, kafka: bool) -> int:
        given.extend([*arguments[:3], kafka])
        return 3

    made.run_demo = run_demo  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, made.__name__, made)
    result = jettison("demo", "--seconds", "7", "--quick", "--kafka", "--out", tmp_path)
    assert result.exit_code == 3
    assert given == [7.0, True, tmp_path, True]


@core
def test_commands_without_spark_load_no_engine() -> None:
    script = (
        "import sys\nfrom jettison.app.cli import app\nfrom typer.testing import CliRunner\n"
        f"for each in (['check', {str(TAXI)!r}], ['plan', {str(TAXI)!r}], ['explain', {str(TAXI)!r}], "
        "['experiment', 'list']):\n    assert CliRunner().invoke(app, each).exit_code == 0, each\n"
        "print(*(name for name in ('pyspark', 'py4j') if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


# --- Trust 25: words of ours ---------------------------------------------------------------------------------------


WRONG_TYPE = "trip long, pickup timestamp, zone int, fare doubel"


@core
def test_trust_25_plan_names_its_column_for_what_it_shows() -> None:
    result = jettison("plan", TAXI)
    assert re.search(r"of load +keeps +alarms", result.stdout), result.stdout
    assert "keeps: the share that the drop on an arc lets through" in " ".join(result.stdout.split())


@core
@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (("plan", TAXI, "--headroom", "x"), 2, "Invalid value for '--headroom': give a number. See"),
        (("plan", TAXI, "--most", "0"), 2, "Invalid value for '--most': give 2 or more. See"),
        (("kafka", "--port", "99999"), 2, "Invalid value for '--port': give 65535 or less. See"),
        (("chek", TAXI), 2, "No such command 'chek'. Did you mean 'check'? See `"),
        (("experiment", "run", "planing"), 2, "there is no experiment 'planing' (did you mean 'planning'?): choose"),
    ],
)
def test_trust_25_commands_are_refused_in_our_tone(command: tuple[object, ...], code: int, words: str) -> None:
    assert_refused(jettison(*command), code, words)


@core
@pytest.mark.parametrize(
    ("path", "to", "words"),
    [
        (("run", "shedding"), "dryrun", "run.shedding.mode is 'dryrun' (did you mean 'dry-run'?): use on, off"),
        (
            ("run", "shedding"),
            {"shedder": "sematic"},
            "run.shedding.shedder is 'sematic' (did you mean 'semantic'?)",
        ),
        (("network",), "", "network: name is ''"),
        (("sources", "trips", "schema"), WRONG_TYPE, "column 'fare' has the unknown type 'doubel' (did you mean"),
        (("operators", "paid", "where"), "fare >> > 0", "cannot be read as SQL: an operand is missing."),
        (("run", "sinks", "busy"), {"parket": "out"}, "run.sinks.busy says parket (did you mean 'parquet'?): say"),
        (("profile", "cost_us", "payd"), 5.0, "'payd' is not an operator of network 'taxi' (did you mean 'paid'?)"),
    ],
)
def test_trust_25_check_finds_what_a_run_would_refuse(
    path: tuple[str, ...], to: object, words: str, tmp_path: Path
) -> None:
    assert_refused(jettison("check", changed(tmp_path, *path, to=to)), 1, words)


# --- top ----------------------------------------------------------------------------------------------------------


@core
def test_top_of_what_is_no_checkpoint_or_has_no_batch(tmp_path: Path) -> None:
    assert_refused(jettison("top", str(tmp_path / "gone")), 1, "gone", "is no folder on this machine")
    assert_refused(jettison("top", str(tmp_path), "--watch", "0"), 2, "--watch is 0", "above 0")
    assert_refused(jettison("top", str(tmp_path)), 1, "is no checkpoint, as it has no network.json")
    (tmp_path / "network.json").write_text("{}")
    assert jettison("top", str(tmp_path)).stdout == "no batch is in its ledger yet\n"
    assert json.loads(jettison("top", str(tmp_path), "--json").stdout) == {"batch": None, "queries": []}
