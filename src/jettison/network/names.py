"""Names of operators: one for each, though an output may be called as the operator before it.

An operator is known by its name: arcs, costs, state and the ledger use it. An output is known by its name to sinks,
reports and metrics. Where both have the same one, the output keeps it, and the operator gets its kind behind its name:

    paid.where     trips>paid.where, paid.where>paid

What users say of a stream still means the operator, because nothing reads an output: `net.stream("paid")`, `of: paid`.
"""

from __future__ import annotations

from dataclasses import replace

from jettison.errors import NetworkError
from jettison.network.columns.words import an
from jettison.network.operators import Operator, Output, Source, kind_of


def declared_name(name: str) -> str:
    """The name that the user gave.

    >>> declared_name("paid.where"), declared_name("paid")
    ('paid', 'paid')
    """
    return name.partition(".")[0]


def named_apart(network: str, operators: tuple[Operator, ...]) -> tuple[Operator, ...]:
    """The operators, each under a name of its own; raises for names that cannot be, and for two that are the same.

    >>> from jettison.network.operators import Where
    >>> trips, paid = Source("trips", (("fare", "double"),)), Where("paid", ("trips",), "fare > 0")
    >>> [(each.name, each.inputs) for each in named_apart("taxi", (trips, paid, Output("paid", ("paid",))))]
    [('trips', ()), ('paid.where', ('trips',)), ('paid', ('paid.where',))]
    """
    outputs = {each.name: each for each in operators if isinstance(each, Output) and isinstance(each.name, str)}
    apart: dict[str, str] = {}
    for operator in operators:
        _check_name(operator, outputs)
        name = declared_name(operator.name)
        output = outputs.get(name)
        if output is not None and not isinstance(operator, Output) and declared_name(output.inputs[0]) == name:
            if isinstance(operator, Source):
                raise NetworkError(
                    f"output {name!r} has the name of its source: sinks, reports and the ledger could not tell them "
                    f"apart. Call it otherwise, such as {name + '_out'!r}."
                )
            apart[name] = f"{name}.{kind_of(operator)}"
    found = tuple(_apart(operator, apart) for operator in operators) if apart else operators
    seen: dict[str, Operator] = {}
    for operator in found:
        if operator.name in seen:
            raise NetworkError(
                f"network {network!r}: two operators are called {declared_name(operator.name)!r} "
                f"({an(kind_of(seen[operator.name]))} and {an(kind_of(operator))}): give one another name."
            )
        seen[operator.name] = operator
    return found


def _apart(operator: Operator, apart: dict[str, str]) -> Operator:
    inputs = tuple(apart.get(name, name) for name in operator.inputs)
    name = operator.name if isinstance(operator, Output) else apart.get(declared_name(operator.name), operator.name)
    if (name, inputs) == (operator.name, operator.inputs):
        return operator
    return replace(operator, name=name, inputs=inputs)


def _check_name(operator: Operator, outputs: dict[str, Output]) -> None:
    name = operator.name
    if isinstance(name, str) and name.endswith(f".{kind_of(operator)}") and declared_name(name) in outputs:
        name = declared_name(name)  # it was named apart already
    if not isinstance(name, str) or not name or not all(char.isalnum() or char in "_-" for char in name):
        raise NetworkError(f"{kind_of(operator)} name {name!r}: use letters, digits, _ and -.")
