"""Options in groups: defaults, short forms, and errors that say what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest

import jettison as jt
from jettison.options.moved import MOVED_ARGUMENTS
from jettison.spec.network_file import from_yaml
from jettison.spec.run_section import read_places

pytestmark = pytest.mark.core

FREE = jt.Profile({}, {})


class Nothing:
    def plan(self, problem: Any) -> Any: ...


def test_short_forms_are_the_long_ones() -> None:
    assert jt.Shedding.of(True) == jt.Shedding() == jt.Shedding.of("on")
    assert jt.Shedding.of(False) == jt.Shedding("off") == jt.Shedding.of("off")
    assert jt.Shedding.of("dry-run") == jt.Shedding("dry-run")
    assert jt.Costs.of(None) == jt.Costs()
    assert jt.Costs.of(FREE) == jt.Costs(FREE)
    assert jt.Checkpoint.of(None).folder is None
    assert jt.Checkpoint.of("a/b") == jt.Checkpoint("a/b")
    assert jt.Checkpoint.of(Path("a/b")).folder == "a/b"


def test_groups_are_frozen() -> None:
    names = ["paid"]
    costs = jt.Costs(FREE, shared=names)
    names.append("later")
    assert costs.shared == ("paid",)
    with pytest.raises(FrozenInstanceError):
        jt.Shedding().headroom = 0.5  # type: ignore[misc]


def test_a_shedder_is_a_name_or_plans() -> None:
    mine = Nothing()
    assert jt.Shedding(shedder=mine).shedder is mine


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "mode": (lambda: jt.Shedding("dryrun"), r"mode is 'dryrun' \(did you mean 'dry-run'\?\): use 'on', 'off' or"),  # type: ignore[arg-type]
    "bool": (lambda: jt.Shedding(False), r"mode is False: use 'on', 'off' or 'dry-run'"),  # type: ignore[arg-type]
    "headroom": (lambda: jt.Shedding(headroom=2), r"jt.Shedding: headroom is 2: give the share of the trigger"),
    "percent": (lambda: jt.Shedding(headroom="90%"), r"headroom is '90%': give the share"),  # type: ignore[arg-type]
    "nan": (lambda: jt.Shedding(headroom=float("nan")), r"headroom is nan: give the share"),
    "catch up": (lambda: jt.Shedding(catch_up="newst"), r"catch_up is 'newst' \(did you mean 'newest'\?\)"),
    "shedder": (lambda: jt.Shedding(shedder="semantc"), r"'semantc' \(did you mean 'semantic'\?\): use one of"),
    "a class": (
        lambda: jt.Shedding(shedder=Nothing),
        r"give the name of a shedder, .* or an object with a method plan",
    ),
    "stale": (lambda: jt.Shedding(stale="soon"), r"jt.Shedding: stale is 'soon'"),
    "stw": (lambda: jt.Shedding(stw="a while"), r"jt.Shedding: stw is 'a while': write a duration"),
    "no stw": (lambda: jt.Shedding(stw="0 seconds"), r"jt.Shedding: stw is '0 seconds': write a duration above 0"),
    "window": (lambda: jt.Shedding(stw=5), r"jt.Shedding: stw is 5: write a duration"),  # type: ignore[arg-type]
    "age": (lambda: jt.Shedding(stale=5), r"jt.Shedding: stale is 5: write a duration"),  # type: ignore[arg-type]
    "unknown": (lambda: jt.Shedding(headrom=1), r"jt.Shedding has no argument 'headrom' .*'headroom'"),  # type: ignore[call-arg]
    "profile": (lambda: jt.Costs({"a": 1}), r"jt.Costs: profile is {'a': 1}: give a jt.Profile"),  # type: ignore[arg-type]
    "shared": (lambda: jt.Costs(FREE, shared="paid"), r"jt.Costs: shared is 'paid': give names of operators"),
    "path": (lambda: jt.Checkpoint(" "), r"checkpoint is ' ': give the path of a folder"),
    "retention": (lambda: jt.Checkpoint("a", retention="soon"), r"retention is 'soon': write a duration"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_options_end_in_one_line(name: str) -> None:
    make, message = WRONG[name]
    with pytest.raises(jt.StartError, match=message) as caught:
        make()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", MOVED_ARGUMENTS)
def test_what_was_an_argument_says_where_it_is(name: str) -> None:
    given: dict[str, Any] = {name: 1}
    with pytest.raises(jt.StartError, match=rf"^jt.start has no argument '{name}': it is (in|called) \w+"):
        jt.start(jt.Network("n"), {}, {}, **given)


def test_a_file_has_the_same_groups() -> None:
    text = """
network: n
sources: {s: {schema: a int}}
outputs: {o: {of: s}}
profile: {cost_us: {o: 2.5}}
run:
  checkpoint: {path: out/c, retention: 100}
  shedding: {mode: dry-run, shedder: random, headroom: 0.5, catch_up: all, stale: 1 minute, stw: 20 s}
  costs: {profile: true, learn: false, shared: [s]}
  sources: {s: {format: rate}}
  sinks: {o: {memory: 5}}
"""
    spec = from_yaml(text)
    places = read_places(spec, spec.graph())
    assert places.checkpoint == jt.Checkpoint("out/c", retention=100)
    assert places.shedding == jt.Shedding("dry-run", "random", 0.5, "all", "1 minute", "20 s")
    assert places.costs == jt.Costs(jt.Profile({"o": 2.5}, {}), learn=False, shared=["s"])
    short = from_yaml(text.replace("{path: out/c, retention: 100}", "out/c").replace("profile: true, ", ""))
    again = read_places(short, short.graph())
    assert again.checkpoint == jt.Checkpoint("out/c")
    assert again.costs.profile is None


LAS_FILE = "network: n\nsources: {s: {schema: a int}}\noutputs: {o: {of: s}}\nrun: {shedding: %s}\n"


def test_a_file_says_how_las_sheds() -> None:
    run = from_yaml(LAS_FILE % "{las: {order: worth, tau: 2 seconds, least_keep: 0.05, learning: {window: 99}}}").run
    assert run is not None
    shedder = run.shedding.options().shedder
    assert isinstance(shedder, jt.Las)
    assert (shedder.tau_us, shedder.known("any").learner.window) == (2e6, 99)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("{las: {order: cheap}}", "order is 'cheap'"),
        ("{las: {oder: worth}}", "did you mean 'order'"),
        ("{las: {tau: fast}}", "tau is 'fast'"),
        ("{las: {learning: {window: 0}}}", "window is 0"),
        ("{shedder: exact, las: {}}", "its shedder is 'exact'"),
    ],
)
def test_wrong_options_of_las_are_named(written: str, message: str) -> None:
    def options() -> None:
        run = from_yaml(LAS_FILE % written).run
        assert run is not None
        run.shedding.options()

    with pytest.raises(jt.JettisonError, match=message):
        options()


@pytest.mark.parametrize(
    ("written", "mode"), [("true", "on"), ("off", "off"), ("false", "off"), ("dry-run", "dry-run")]
)
def test_shedding_in_one_word(written: str, mode: str) -> None:
    text = f"network: n\nsources: {{s: {{schema: a int}}}}\noutputs: {{o: {{of: s}}}}\nrun: {{shedding: {written}}}\n"
    run = from_yaml(text).run
    assert run is not None
    assert run.shedding.options().mode == mode
