"""The code that an operator runs belongs to its identity: any other result of any function changes it, nothing else."""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from os import environ
from pathlib import Path
from typing import Any

import pytest

from jettison.network.identity.code_hash import changed, code_lines
from jettison.network.import_paths import Imported

pytestmark = pytest.mark.core

RATES = """
import functools
import other_rates
from enum import Enum

LIMIT = 3
TABLE = {"a": {1, 2}, "b": [lambda x: x, len]}

class Kind(Enum):
    LOW = 1

class Scaled:
    factor = 2
    def __init__(self, by): self.by = by
    def __call__(self, x): return self.times(x)
    def times(self, x): return x * self.by * self.factor

def called(x):
    return x + 1

def counted(function):
    @functools.wraps(function)
    def inner(*given):
        return function(*given)
    return inner

@counted
def decorated(x):
    return x

def rate(x, by=2, *, low=5):
    def inner(y):
        return y if y > LIMIT else called(y)
    return inner(x) * by + other_rates.BASE + len(TABLE) + Kind.LOW.value

scaled = Scaled(3)
"""

CHANGES = {
    "its body": ("inner(x) * by", "inner(x) + by"),
    "a nested function": ("y > LIMIT", "y >= LIMIT"),
    "a constant": ("x + 1", "x + 2"),
    "a default": ("by=2", "by=3"),
    "a default of a keyword": ("low=5", "low=6"),
    "a global": ("LIMIT = 3", "LIMIT = 4"),
    "a value in a table": ("{1, 2}", "{1, 3}"),
    "a function in a table": ("lambda x: x", "lambda x: -x"),
    "what an enum stands for": ("LOW = 1", "LOW = 2"),
    "a value of another module": ("BASE = 1", "BASE = 2"),
    "a function of another module": ("return 7", "return 8"),
    "a method": ("x * self.by", "x + self.by"),
    "a value of a class": ("factor = 2", "factor = 3"),
    "what an object holds": ("Scaled(3)", "Scaled(4)"),
    "what is decorated": ("return x\n", "return -x\n"),
    "a decorator": ("return function(*given)", "return -function(*given)"),
}
OTHER = "BASE = 1\ndef more(x):\n    return 7\n"
NO_CHANGES = {
    "as it is": ("", ""),
    "lines and comments": ("def called(x):\n", "# more\n\n\ndef called(x):\n    # and more\n"),
    "a docstring": ("def called(x):\n", "def called(x):\n    'Called.'\n"),
    "the name of a variable": (
        "def inner(y):\n        return y if y > LIMIT else called(y)",
        "def inner(z):\n        return z if z > LIMIT else called(z)",
    ),
    "a function that nobody calls": ("def called(x):", "def unused(x): return 1\ndef called(x):"),
}


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], tuple[str, ...]]]:
    """The lines of everything in a module of the user's, after one text in it was replaced by another."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def found(old: str, new: str) -> tuple[str, ...]:
        rates, other = RATES, OTHER
        assert not old or old in rates + other, old
        (tmp_path / "my_rates.py").write_text(rates.replace(old, new) if old else rates)
        (tmp_path / "other_rates.py").write_text(other.replace(old, new) if old else other)
        for name in ("my_rates", "other_rates"):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        mine: Any = importlib.import_module("my_rates")
        more: Any = importlib.import_module("other_rates").more
        return code_lines([Imported("my_rates:rate"), mine.scaled, mine.decorated, partial(more, 1)])

    yield found
    for name in ("my_rates", "other_rates"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_trust_1_code_that_computes_something_else_has_another_identity(
    lines: Callable[[str, str], tuple[str, ...]], change: tuple[str, str]
) -> None:
    before = lines("", "")
    after = lines(*change)
    assert after != before
    assert "has changed" in changed(before, after)


@pytest.mark.parametrize("change", NO_CHANGES.values(), ids=NO_CHANGES)
def test_trust_1_code_that_computes_the_same_has_the_same_identity(
    lines: Callable[[str, str], tuple[str, ...]], change: tuple[str, str]
) -> None:
    before = lines("", "")
    assert len(before) > 8
    assert lines(*change) == before


def test_trust_1_closures_and_lambdas_are_told_apart() -> None:
    def adding(n: Any) -> Callable[[Any], Any]:
        return lambda x: (x, n)

    def around(function: Any) -> Callable[[Any], Any]:
        return lambda x: function(x)

    assert code_lines([adding(1)]) == code_lines([adding(1)]) != code_lines([adding(2)])
    assert code_lines([around(adding(1))]) != code_lines([around(adding(2))]), "through what it holds"
    assert code_lines([partial(adding(1), x=1)]) != code_lines([partial(adding(1), x=2)])
    assert code_lines([len]) == ()


def test_trust_1_functions_that_hold_themselves_come_to_an_end() -> None:
    def again(n: int) -> int:
        return again(n - 1) if n else 0

    held: dict[str, Any] = {"f": again}
    held["me"] = held
    first, second = (code_lines([again, lambda: held]) for _ in range(2))
    assert first == second
    assert len(first) == 2
    assert len(code_lines([again])) == 1


def test_trust_1_the_identity_is_the_same_in_every_process(
    lines: Callable[[str, str], tuple[str, ...]], tmp_path: Path
) -> None:
    mine = lines("", "")
    # as a UDF in a Column is found: what Spark has pickled for its workers, by value where it is of the main program
    program = """
import pickle
from functools import partial
import my_rates, other_rates
from pyspark import cloudpickle
from jettison.network.identity.code_hash import code_lines

LOW = {"a", "b", "c"}
def low(x): return x in LOW or x in {"d", "e", "f"}
near = (lambda names: lambda x: low(x) and x in names)({"g", "h", "i"})
print("\\n".join(code_lines([my_rates.rate, my_rates.scaled, my_rates.decorated, partial(other_rates.more, 1)])))
print(*code_lines([pickle.loads(cloudpickle.dumps(near))]), *code_lines([near]), sep=";")
"""
    pickled = set()
    paths = os.pathsep.join([str(tmp_path), *sys.path])
    for seed in ("0", "1", "4711"):
        settings = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": paths}
        done = subprocess.run([sys.executable, "-c", program], env=settings, capture_output=True, text=True, check=True)
        *found, udf = done.stdout.splitlines()
        assert tuple(found) == mine
        assert len(udf.split(";")) == 4
        pickled.add(udf)
    assert len(pickled) == 1


def test_trust_1_objects_that_cannot_be_looked_at_are_known_by_their_type() -> None:
    class Odd:
        @property
        def func(self) -> Any:
            raise RuntimeError("not now")

    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    odd = Odd()
    assert code_lines([lambda: odd]) == code_lines([lambda: odd]) != ()
    (line,) = code_lines([lambda: deep])
    assert line.endswith(" unknown")


def test_trust_1_the_environment_is_no_part_of_the_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    def level() -> str:
        return environ["JT_TEST_LEVEL"]

    monkeypatch.setenv("JT_TEST_LEVEL", "1")
    before = code_lines([level])
    monkeypatch.setenv("JT_TEST_LEVEL", "2")
    assert code_lines([level]) == before


class Zone:
    """A zone that knows its neighbours, and they it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.near: list[Zone] = []


def linked(count: int) -> list[Zone]:
    zones = [Zone(f"zone {number}") for number in range(count)]
    for zone in zones:
        zone.near = [other for other in zones if other is not zone]
    return zones


def test_trust_1_objects_that_hold_each_other_are_looked_at_once() -> None:
    def first(zones: list[Zone]) -> Callable[[int], str]:
        return lambda x: zones[x].name

    began = time.monotonic()
    many = code_lines([first(linked(60))])
    assert time.monotonic() - began < 20
    assert code_lines([first(linked(60))]) == many
    other = linked(60)
    other[30].name = "elsewhere"
    assert code_lines([first(other)]) != many


def test_trust_1_modules_imported_late_dotted_names_and_slots_belong_to_it(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))

    def lines(factor: int) -> list[tuple[str, ...]]:
        for name in [each for each in sys.modules if each.startswith(("lazy_rates", "nested_rates", "used_rates"))]:
            del sys.modules[name]
        (tmp_path / "nested_rates").mkdir(exist_ok=True)
        (tmp_path / "nested_rates" / "__init__.py").write_text("")
        for path in ("lazy_rates.py", "nested_rates/rules.py"):
            (tmp_path / path).write_text(f"def rate(x):\n    return {factor} * x\n")
        (tmp_path / "used_rates.py").write_text(
            "import nested_rates.rules\n"
            "class Slim:\n"
            "    __slots__ = ('by',)\n"
            "    def __init__(self, by): self.by = by\n"
            f"SLIM = Slim({factor})\n"
            "def lazy(x):\n    import lazy_rates\n    return lazy_rates.rate(x)\n"
            "def dotted(x): return nested_rates.rules.rate(x)\n"
            "def slim(x): return SLIM.by * x\n"
        )
        shutil.rmtree(tmp_path / "__pycache__", ignore_errors=True)
        shutil.rmtree(tmp_path / "nested_rates" / "__pycache__", ignore_errors=True)
        importlib.invalidate_caches()
        used = importlib.import_module("used_rates")
        return [tuple(code_lines([getattr(used, name)])) for name in ("lazy", "dotted", "slim")]

    first, again, other = lines(1), lines(1), lines(10)
    assert first == again
    assert all(one != ten for one, ten in zip(first, other, strict=True))
