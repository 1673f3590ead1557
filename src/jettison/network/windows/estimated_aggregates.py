"""Which aggregates of a network are estimated: those whose results go to outputs with `on_loss="estimate"`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from jettison.errors import NetworkError
from jettison.network.columns.expressions import multiplies
from jettison.network.operators import (
    Aggregate,
    CountAggregate,
    Operator,
    Output,
    Source,
    StreamJoin,
    Union,
    computed,
    kind_of,
)
from jettison.network.windows.aggregates import parse_call
from jettison.network.windows.estimates import ESTIMABLE
from jettison.network.windows.user_aggregates import Own

if TYPE_CHECKING:
    from jettison.network.graph import Graph


def marked(operators: tuple[Operator, ...]) -> tuple[Operator, ...]:
    """The operators, in topological order, with those aggregates marked whose outputs want estimates; checked."""
    wanted: dict[str, dict[str, str]] = {operator.name: {} for operator in operators}
    for operator in reversed(operators):
        if isinstance(operator, Output):
            wanted[operator.name] = {operator.name: operator.qos.on_loss}
        given = wanted[operator.name] if not isinstance(operator, Aggregate | CountAggregate) else {}
        for tail in operator.inputs:
            wanted[tail] |= given
    found: dict[str, Operator] = {}
    for operator in operators:
        if isinstance(operator, Aggregate):
            words = wanted[operator.name]
            asking = next((output for output, word in words.items() if word == "estimate"), None)
            if asking is not None:
                _check(operator, asking, words, found)
            operator = replace(operator, estimated=asking is not None)
            _check_nested(operator, found)
        if isinstance(operator, CountAggregate):
            _check_counted(operator, wanted[operator.name], found)
        found[operator.name] = operator
    return tuple(found.values())


def _check(aggregate: Aggregate, output: str, words: dict[str, str], above: dict[str, Operator]) -> None:
    element = f"output {output!r} wants on_loss='estimate', and aggregate {aggregate.name!r} before it"
    other = next((name for name, word in words.items() if word != "estimate"), None)
    if other is not None:
        raise NetworkError(
            f"{element} also leads to output {other!r}, which wants {words[other]!r}: let both say the same, or "
            f"aggregate once more for one of them."
        )
    for name, call in aggregate.aggregates:
        function = "a function of your own" if isinstance(call, Own) else parse_call(element, call).function
        distinct = isinstance(call, str) and parse_call(element, call).distinct
        if function not in ESTIMABLE or distinct:
            what = repr(call) if isinstance(call, str) else function
            raise NetworkError(
                f"{element} computes {name!r} by {what}, which cannot be estimated from a part of the rows: use "
                f"{', '.join(ESTIMABLE)}, or on_loss='subset', with which the windows that come are right."
            )
    joining = next((each for each in _all_above(aggregate, above) if isinstance(each, StreamJoin)), None)
    if joining is not None:
        raise NetworkError(
            f"{element} is made of the pairs of join {joining.name!r}, which go or stay by key: use on_loss='ignore', "
            f"or estimate what is aggregated before the join."
        )
    for each in _all_above(aggregate, above):
        _check_alone(element, each, above)


def _check_alone(element: str, operator: Operator, above: dict[str, Operator]) -> None:
    """Rows go or stay one by one: intervals are too short where several have one fate."""
    if isinstance(operator, Source) and not operator.id and operator.kafka is None:
        raise NetworkError(
            f"{element} is made of the rows of source {operator.name!r}, which says no id: rows that are equal would "
            f"go or stay together. Name columns that no two rows share, such as id=['trip'], or declare the source "
            f"with its Kafka topic."
        )
    if isinstance(operator, Union):
        sources = [name for tail in operator.inputs for name in _sources_of(above[tail], above)]
        twice = next((name for name in sources if sources.count(name) > 1), None)
        if twice is not None:
            raise NetworkError(
                f"{element} gets the rows of source {twice!r} on several ways, by union {operator.name!r}: what comes "
                f"twice would go or stay together. Say it in one way, as by one .where() with OR, or aggregate each "
                f"way by itself."
            )
    made = next((each for each in computed(operator) if multiplies(each)), None)
    if made is not None:
        raise NetworkError(
            f"{element} is made of rows that {kind_of(operator)} {operator.name!r} makes of one by {made!r}: they "
            f"would go or stay together. Compute with the array itself, as by aggregate() or size(), or use "
            f"on_loss='subset'."
        )


def _sources_of(operator: Operator, above: dict[str, Operator]) -> list[str]:
    """The sources whose rows an operator gives, once each; a source's is itself."""
    return [each.name for each in (operator, *_all_above(operator, above)) if isinstance(each, Source)]


def _check_nested(aggregate: Aggregate, above: dict[str, Operator]) -> None:
    for each in _all_above(aggregate, above):
        estimated = isinstance(each, Aggregate) and each.estimated
        if isinstance(each, Aggregate | CountAggregate) and (estimated or aggregate.estimated):
            raise NetworkError(
                f"aggregate {aggregate.name!r} is made of results of aggregate {each.name!r}, and one of them is "
                f"estimated (on_loss='estimate'): an estimate of estimates has no interval here. Aggregate the rows "
                f"themselves, or use on_loss='subset'."
            )


def _check_counted(aggregate: CountAggregate, words: dict[str, str], above: dict[str, Operator]) -> None:
    """Windows of rows are others when rows are missing, so nothing is estimated of them, or by them."""
    asking = next((output for output, word in words.items() if word == "estimate"), None)
    estimated = [each for each in _all_above(aggregate, above) if isinstance(each, Aggregate) and each.estimated]
    if asking is not None or estimated:
        who = f"output {asking!r}" if asking is not None else f"what aggregate {estimated[0].name!r} above it leads to"
        raise NetworkError(
            f"aggregate {aggregate.name!r} counts rows to tell where a window ends, and {who} wants "
            f"on_loss='estimate': without the rows that go, its windows would be others. Use windows of time, or "
            f"on_loss='subset'."
        )


def _all_above(operator: Operator, found: dict[str, Operator]) -> list[Operator]:
    """Every operator above one, itself left out."""
    seen: dict[str, Operator] = {}
    waiting = list(operator.inputs)
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen[name] = found[name]
            waiting += found[name].inputs
    return list(seen.values())


def weighed(graph: Graph) -> frozenset[str]:
    """The operators, from sources down to estimated aggregates, whose rows carry a weight.

    >>> from jettison.network import Network, QoS
    >>> net = Network("taxi")
    >>> trips = net.source("trips", "trip long, at timestamp, fare double", event_time="at", id=["trip"])
    >>> paid = trips.where("fare > 0", name="paid")
    >>> _ = paid.window("1 minute").agg(n="count(*)", name="busy").output("table", qos=QoS(on_loss="estimate"))
    >>> sorted(weighed(net.graph))
    ['busy', 'paid', 'trips']
    """
    found, waiting = set(), [each.name for each in graph.aggregates if each.estimated]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += graph.by_name[name].inputs
    return frozenset(found)
