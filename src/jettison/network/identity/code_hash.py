"""The identity of the Python code that an operator runs: a line for every function and class that it can reach.

A line is the path of a function and a hash of its bytecode, constants, defaults, closure and the globals that it names.
Line numbers, file names, comments, docstrings and names of local variables make no difference. The functions that it
calls have lines of their own, so a difference names the function that has changed. Code of Python itself and of common
libraries is known by its name only, and of an object whose class is not the user's only the type is known.

>>> __name__ = "fares"
>>> def tax(fare):
...     return 0.2 * fare
>>> def net(fare):
...     "What is left."
...     return fare - tax(fare)
>>> before = code_lines([net])
>>> [line.rpartition(" ")[0] for line in before]
['fares:net', 'fares:tax']
>>> def tax(fare):
...     return 0.3 * fare
>>> changed(before, code_lines([net]))
"function 'fares:tax' has changed (its code, or a value that it holds or names)"
"""

from __future__ import annotations

import dis
import hashlib
import importlib
import importlib.util
import json
import platform
import sys
import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from functools import partial
from pathlib import Path
from types import CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

from jettison.network.identity.function_hash import constant, unknown
from jettison.network.import_paths import Imported, imported

PYTHON = ".".join(platform.python_version_tuple()[:2])
"""The version whose bytecode is hashed: that of another is different for the same source."""

_CHANGED = "has changed (its code, or a value that it holds or names)"
_DIGITS = 16
_MOST_FUNCTIONS = 2_000
_MOST_ELEMENTS = 100_000
_MOST_VALUES = 1_000_000
_LIBRARIES = frozenset(
    {"cloudpickle", "jettison", "numpy", "pandas", "polars", "py4j", "pyarrow", "pyspark", "scipy", "sklearn", "torch"}
)
"""Known by their names only, wherever they are installed."""
_INSTALLED = ("site-packages", "dist-packages")


def code_lines(functions: Iterable[Any]) -> tuple[str, ...]:
    """A line for every function and class of the user's that these functions can reach, in order of their names."""
    walk = _Walk(functions)
    return tuple(sorted(set(walk.lines)))


def changed(before: Sequence[str], now: Sequence[str]) -> str:
    """What is different between two sets of lines, in words.

    >>> changed(["my:rate 01", "my:tax 02"], ["my:rate 01"]), changed([], ["my:rate 01"])
    ("function 'my:tax' is not used any more", "function 'my:rate' is new")
    """
    old, new = _by_path(before), _by_path(now)
    for path in sorted(set(old) | set(new)):
        if old.get(path) != new.get(path):
            fate = "is new" if path not in old else "is not used any more" if path not in new else _CHANGED
            return f"function {path!r} {fate}"
    return "nothing has changed"


def other_python(before: str) -> str:
    """Why functions cannot be compared with those that another version of Python ran.

    >>> other_python("2.7").partition(", and")[0]
    'the checkpoint was written with Python 2.7'
    """
    return (
        f"the checkpoint was written with Python {before or 'of an unknown version'}, and the code of functions cannot "
        f"be compared with that of Python {PYTHON}, so nobody knows whether it has changed (start with the old version "
        f"to go on)"
    )


def _by_path(lines: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in lines:
        found.setdefault(line.rpartition(" ")[0], []).append(line)
    return found


class _Walk:
    """Visits functions and what they hold, each once. `lines` has what was found."""

    def __init__(self, roots: Iterable[Any]) -> None:
        given = [_function_at(each) for each in roots]
        self.lines: list[str] = []
        self._packages = {_package(each) for each in given} - _LIBRARIES
        self._seen: dict[int, Any] = {}  # holds what it has seen, so that no other object gets its id
        self._objects: dict[int, tuple[Any, str]] = {}
        self._values = 0
        self._waiting: list[Any] = list(reversed(given))
        while self._waiting and len(self._seen) < _MOST_FUNCTIONS:
            found = self._waiting.pop()
            if id(found) not in self._seen:
                self._seen[id(found)] = found
                try:
                    self._visit(found)
                except Exception:  # whatever objects of the user's throw when they are looked at, or nest too deeply
                    self.lines.append(f"{_path(found)} unknown")

    def _visit(self, found: Any) -> None:
        if isinstance(found, type):
            if self._is_own(found.__module__):
                self._add(found, self._class(found))
        elif isinstance(found, FunctionType):
            if self._is_own(found.__module__):
                self._add(found, self._function(found))
            else:  # a decorator of a library may hold a function of the user's
                self._within(_held(found))
        elif isinstance(found, partial | MethodType) or not hasattr(found, "__qualname__"):
            self._add(found if isinstance(found, MethodType) else type(found), self._value(found, ()))
        self._within([getattr(found, "__wrapped__", None), getattr(found, "func", None)])

    def _within(self, held: Iterable[Any]) -> None:
        self._waiting += [each for each in held if isinstance(each, FunctionType | MethodType | partial | type)]

    def _add(self, found: Any, content: object) -> None:
        text = json.dumps(content, separators=(",", ":"))
        digest = hashlib.blake2b(text.encode(), digest_size=_DIGITS // 2).hexdigest()
        self.lines.append(f"{_path(found)} {digest}")

    def _function(self, function: FunctionType) -> object:
        code = function.__code__
        held = dict(zip(code.co_freevars, _held(function), strict=True))
        defaults = [self._value(function.__defaults__, ()), self._value(function.__kwdefaults__, ())]
        closure = {name: self._value(each, ()) for name, each in sorted(held.items())}
        named = {name: self._value(each, ()) for name, each in sorted(_named(code, function.__globals__).items())}
        for module in [*_named(code, function.__globals__).values(), *held.values()]:
            if isinstance(module, ModuleType) and self._is_own(module.__name__):
                named |= self._inside(module, set(_attributes(code)), set())
        return [self._code(code, function.__doc__), defaults, closure, named]

    def _inside(self, module: ModuleType, names: set[str], above: set[str]) -> dict[str, object]:
        """What code names of a module, and of the user's modules inside of it (`package.rules.rate`)."""
        found: dict[str, object] = {}
        for name in sorted(names & set(vars(module))):
            value = vars(module)[name]
            if isinstance(value, ModuleType) and self._is_own(value.__name__) and value.__name__ not in above:
                found |= self._inside(value, names, above | {module.__name__})
            else:
                found[f"{module.__name__}.{name}"] = self._value(value, ())
        return found

    def _class(self, found: type) -> object:
        self._waiting += [each for each in found.__bases__ if each is not object]
        members: dict[str, object] = {}
        for name, each in sorted(vars(found).items()):
            inner = getattr(each, "__func__", None) or getattr(each, "fget", None) or each
            if isinstance(inner, FunctionType) or not name.startswith("__"):
                members[name] = self._value(inner, (id(found),))
        return members

    def _code(self, code: CodeType, doc: str | None = None) -> list[object]:
        constants = list(code.co_consts)
        if constants and isinstance(doc, str) and constants[0] == doc:
            constants[0] = None
        given = [code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags]
        kept = [self._value(each, ()) for each in constants]
        return [code.co_code.hex(), code.co_exceptiontable.hex(), list(code.co_names), given, kept]

    def _value(self, value: Any, above: tuple[int, ...]) -> object:
        """A value as JSON has it. Functions and classes in it are visited, and stand here by their path."""
        self._values += 1
        if id(value) in above or self._values > _MOST_VALUES:
            return "what holds it" if id(value) in above else "more"
        kind, inner = type(value).__qualname__, (*above, id(value))
        if isinstance(value, CodeType):
            return self._code(value)
        if isinstance(value, Imported):
            return self._value(_function_at(value), above)
        if isinstance(value, FunctionType | type):
            self._waiting.append(value)
            return f"{'class' if isinstance(value, type) else 'function'} {_path(value)}"
        if isinstance(value, MethodType):
            self._waiting.append(value.__func__)
            return ["method", _path(value.__func__), self._value(value.__self__, inner)]
        if isinstance(value, partial):
            return ["partial", *(self._value(each, inner) for each in (value.func, value.args, value.keywords))]
        if isinstance(value, Enum):
            return [kind, value.name, self._value(value.value, inner)]
        if isinstance(value, tuple | list | set | frozenset | Mapping) and len(value) > _MOST_ELEMENTS:
            return [kind, len(value)]
        if isinstance(value, Mapping) and not isinstance(value, dict | MappingProxyType):
            return unknown(kind)  # such as the environment, which is another in every process
        if isinstance(value, Mapping):
            pairs = [[self._value(key, inner), self._value(each, inner)] for key, each in value.items()]
            return [kind, *sorted(pairs, key=json.dumps)]
        if isinstance(value, tuple | list):
            return [kind, *(self._value(each, inner) for each in value)]
        if isinstance(value, set | frozenset):
            # objects of the user's come in another order in every process, and may hold each other
            plain = [self._value(each, inner) for each in value if not self._is_object(each)]
            others = [type(each).__qualname__ for each in value if self._is_object(each)]
            return [kind, *sorted(plain, key=json.dumps), *sorted(others)]
        if self._is_object(value):
            self._waiting.append(type(value))
            return self._object(value, inner)
        self._within([getattr(value, "__wrapped__", None), getattr(value, "func", None)])
        return constant(value)

    def _is_object(self, value: Any) -> bool:
        """Whether a value is an object of the user's, known by what it holds."""
        own = self._is_own(type(value).__module__) and (hasattr(value, "__dict__") or bool(_slots(value)))
        return own and not isinstance(value, ModuleType | FunctionType | type)

    def _object(self, value: Any, inner: tuple[int, ...]) -> str:
        """The hash of what an object holds, worked out once: objects that hold each other have very many ways."""
        if id(value) not in self._objects:
            held = {**getattr(value, "__dict__", {}), **_slots(value)}
            text = json.dumps(self._value(held, inner), separators=(",", ":"))
            digest = hashlib.blake2b(text.encode(), digest_size=_DIGITS // 2).hexdigest()
            self._objects[id(value)] = (value, f"{type(value).__qualname__} {digest}")
        return self._objects[id(value)][1]

    def _is_own(self, name: str | None) -> bool:
        """Whether a module is the user's: not of Python, and of a library only if a given function is from there."""
        package = (name or "__main__").partition(".")[0]
        if package in _LIBRARIES or package in sys.stdlib_module_names:
            return False
        return package in self._packages or not _is_installed(package)


def _slots(value: Any) -> dict[str, Any]:
    """What an object holds in slots."""
    names = [name for each in type(value).__mro__ for name in _listed(vars(each).get("__slots__", ()))]
    return {name: getattr(value, name) for name in names if name != "__dict__" and hasattr(value, name)}


def _listed(slots: Any) -> list[str]:
    return [slots] if isinstance(slots, str) else list(slots)


def _function_at(given: Any) -> Any:
    """A function that was given by its path, imported."""
    path = given.path if isinstance(given, Imported) else given
    return imported(f"function {path!r}", path) if isinstance(path, str) else given


def _package(found: Any) -> str:
    """The first part of a module's name, for what was given; of Python itself nothing is taken to be the user's."""
    module = getattr(found, "__module__", None) or type(found).__module__
    package = str(module).partition(".")[0]
    return "__main__" if package in sys.stdlib_module_names else package


def _is_installed(package: str) -> bool:
    """Whether a package came with Python, or was installed beside it."""
    if package == "__main__":
        return False
    module = sys.modules.get(package)
    if module is None:
        return False
    places = [module.__file__] if getattr(module, "__file__", None) else list(getattr(module, "__path__", []))
    if not places:
        return True  # built in
    place = Path(str(places[0]))
    return any(part in _INSTALLED for part in place.parts) or place.is_relative_to(sysconfig.get_path("stdlib"))


def _path(found: Any) -> str:
    name = getattr(found, "__qualname__", None) or type(found).__qualname__
    return f"{getattr(found, '__module__', None)}:{name}"


def _held(function: FunctionType) -> list[Any]:
    held = []
    for cell in function.__closure__ or ():
        try:
            held.append(cell.cell_contents)
        except ValueError:  # a variable that has no value yet
            held.append(None)
    return held


def _codes(code: CodeType) -> Iterable[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


def _named(code: CodeType, known: Mapping[str, Any]) -> dict[str, Any]:
    """The globals that code names, and the modules that it imports when it runs."""
    found = {}
    for each in _codes(code):
        for step in dis.get_instructions(each):
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME") and step.argval in known:
                found[step.argval] = known[step.argval]
            elif step.opname == "IMPORT_NAME" and (module := _module(step.argval)) is not None:
                found[f"import {step.argval}"] = module
    return found


def _module(name: str) -> ModuleType | None:
    """A module that code imports when it runs; one of the user's own that nobody has imported yet is imported here."""
    if name in sys.modules:
        return sys.modules[name]
    try:
        spec = importlib.util.find_spec(name)
        place = None if spec is None or spec.origin is None else Path(spec.origin)
        if place is None or not place.suffix or any(part in _INSTALLED for part in place.parts):
            return None
        if place.is_relative_to(sysconfig.get_path("stdlib")):
            return None
        return importlib.import_module(name)
    except Exception:  # whatever a module of the user's throws: its function will say so when it runs
        return None


def _attributes(code: CodeType) -> Iterable[str]:
    for each in _codes(code):
        yield from each.co_names
