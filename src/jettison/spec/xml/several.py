"""Several queries as one network.

Inputs are shared: those of one name must be declared alike. All else belongs to its query. In the network an operator
is called QUERY-OPERATOR, and an output as its query, or QUERY-OUTPUT where the query has several. So the name of an
operator does not depend on the other queries: one can be added or removed, and the state of all others is found again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from jettison.errors import NetworkError

Content = dict[str, Any]

_BY_NAME = ("sources", "operators", "outputs")
_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "profile": ("cost_us", "selectivity", "read_us", "rows_per_s", "look_us", "values"),
    "run": ("sources", "sinks", "tables", "on_shed"),
}
"""By section, its parts that have an entry per name."""
_BY_OPERATOR = ("cost_us", "selectivity", "read_us", "rows_per_s", "look_us")
"""Parts of a profile that are by the name of an operator or an input."""


def merged(network: str, contents: Iterable[tuple[str, Content]]) -> Content:
    """Contents of queries, each with its place for errors, as the content of one network."""
    whole: Content = {"network": network, "sources": {}, "operators": {}, "outputs": {}, "profile": {}, "run": {}}
    places: dict[str, str] = {}
    owners: dict[str, str] = {}
    for place, content in contents:
        query = content["network"]
        if not re.fullmatch(r"[\w-]+", query):
            raise NetworkError(
                f"{place}: query {query!r} names operators of the network: use letters, digits, _ and -."
            )
        if query in places:
            raise NetworkError(f"{place}: another query is called {query!r} ({places[query]}): rename one of them.")
        places[query] = place
        part = _renamed(content)
        _check_own_names(part, query, owners, places)
        _add(whole, part, place)
    for section in _SECTIONS:
        if not whole[section]:
            del whole[section]
    return whole


def with_sections(content: Content, sections: Mapping[str, Content], place: str) -> Content:
    """A content with the sections that stand around its queries."""
    for name, section in sections.items():
        if section:
            _add_section(content.setdefault(name, {}), section, place, name)
    return content


def _renamed(content: Content) -> Content:
    query, outputs = content["network"], content["outputs"]
    names = {name: f"{query}-{name}" for name in (*content["operators"], *outputs)}
    if len(outputs) == 1:
        names |= dict.fromkeys(outputs, query)

    def new(name: str) -> str:
        return names.get(name, name)

    def by_name(parts: Mapping[str, Any]) -> Content:
        return {new(name): part for name, part in parts.items()}

    run = dict(content.get("run", {}))
    for section in ("sinks", "on_shed"):
        if section in run:
            run[section] = by_name(run[section])
    profile = dict(content.get("profile", {}))
    for section in _BY_OPERATOR:
        if isinstance(profile.get(section), dict):
            profile[section] = by_name(profile[section])
    if isinstance(profile.get("values"), dict):
        values = {place.partition(".")[::2]: rows for place, rows in profile["values"].items()}
        profile["values"] = {f"{new(name)}.{column}": rows for (name, column), rows in values.items()}
    return {
        "sources": content["sources"],
        "operators": {new(name): _reading(operator, new) for name, operator in content["operators"].items()},
        "outputs": {new(name): _reading(output, new) for name, output in outputs.items()},
        "profile": profile,
        "run": run,
    }


def _reading(operator: Content, new: Callable[[str], str]) -> Content:
    """An operator that reads others by their new names."""
    found = dict(operator)
    for key in ("of", "join_stream"):
        if key in found:
            found[key] = new(found[key])
    if "union" in found:
        found["union"] = [new(name) for name in found["union"]]
    return found


def _check_own_names(part: Content, query: str, owners: dict[str, str], places: Mapping[str, str]) -> None:
    """Raise where an operator or output of a query is called as one of another: only inputs are shared."""
    for section in ("operators", "outputs"):
        for name in part[section]:
            other = owners.setdefault(name, query)
            if other != query:
                raise NetworkError(
                    f"{places[query]}: {section[:-1]} {name!r} of query {query!r} has the name of one of query "
                    f"{other!r} ({places[other]}): give one of the queries, or of the {section}, another name."
                )


def _add(whole: Content, part: Content, place: str) -> None:
    """Add the parts of a query's content; raises where another query says something else."""
    for section in _BY_NAME:
        _add_each(whole[section], part[section], place, section)
    for section in _SECTIONS:
        _add_section(whole[section], part[section], place, section)


def _add_section(whole: Content, part: Content, place: str, section: str) -> None:
    for key, value in part.items():
        if key in _SECTIONS[section] and isinstance(value, dict) and isinstance(whole.get(key, {}), dict):
            _add_each(whole.setdefault(key, {}), value, place, f"{section}.{key}")
        else:
            _add_each(whole, {key: value}, place, section)


def _add_each(whole: Content, part: Mapping[str, Any], place: str, path: str) -> None:
    for name, value in part.items():
        if whole.setdefault(name, value) != value:
            raise NetworkError(
                f"{place}: {f'input {name!r}' if path == 'sources' else f'{path}.{name}'} is {value!r} here, and "
                f"{whole[name]!r} in another query: let both say the same, or use another name."
            )
