"""The elements of a query file as they are declared: schemas, operators, and the sections <run> and <profile>.

    <query name="average">
      <schema name="simpleSchemaONE"> <field type="long" name="ts"/> ... </schema>
      <operator name="MyAvgCpu" type="Average">
        <next name="MyOutput"/>
        <parameter name="field" value="cpu"/>
      </operator>
      ...
    </query>

Here every name and every parameter is known, and names are there once; `content` says what they mean together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jettison.errors import NetworkError
from jettison.network.columns.schema import Column, as_ddl, parse_schema
from jettison.network.columns.words import meant
from jettison.spec.xml.elements import Element
from jettison.spec.xml.operator_types import INPUT, OUTPUT, PROFILE, RUN, TYPES
from jettison.spec.xml.parameters import Parameters, read_parameters

Schemas = Mapping[str, tuple[Column, ...]]


@dataclass(frozen=True)
class QueryOperator:
    """An operator of a query: its type, its parameters, and the operators that get its rows."""

    name: str
    type: str
    next: tuple[str, ...]
    parameters: Parameters
    element: Element

    def __str__(self) -> str:
        return f"operator {self.name!r} ({self.type})"

    def fault(self, text: str) -> NetworkError:
        return self.element.fault(f"{self} {text}")


@dataclass(frozen=True)
class Query:
    """A query: schemas and operators by name, in the order of the file."""

    name: str
    schemas: Schemas
    operators: Mapping[str, QueryOperator]
    run: Parameters | None
    profile: Parameters | None
    element: Element


def read_query(element: Element, shared: Schemas | None = None) -> Query:
    """A <query>; `shared` has schemas that are declared around it."""
    element.check(("name",), ("schema", "operator", "run", "profile"))
    schemas = read_schemas(element, shared or {})
    operators: dict[str, QueryOperator] = {}
    for each in element.named("operator"):
        operator = _operator(each)
        if operator.name in operators:
            first = operators[operator.name].element.place
            raise operator.fault(f"has the name of another operator ({first}): give one of them another name.")
        operators[operator.name] = operator
    for operator in operators.values():
        _check_next(operator, operators)
    return Query(
        element.attribute("name"),
        schemas,
        operators,
        read_section(element, "run", RUN),
        read_section(element, "profile", PROFILE),
        element,
    )


def read_schemas(element: Element, shared: Schemas) -> Schemas:
    """The <schema> elements in an element (listing 4.1), and those around it."""
    schemas = dict[str, tuple[Column, ...]]()
    for each in element.named("schema"):
        each.check(("name",), ("field",))
        name = each.attribute("name")
        if name in schemas or name in shared:
            raise each.fault(f"schema {name!r} is declared twice: give one of them another name.")
        columns = []
        for field in each.named("field"):
            field.check(("type", "name"))
            column = (field.attribute("name"), field.attribute("type"))
            try:
                parse_schema(as_ddl([column]), f"schema {name!r}")
            except NetworkError as error:
                raise field.fault(str(error)) from error
            columns.append(column)
        if not columns:
            raise each.fault(f'schema {name!r} has no field: add <field type="double" name="cpu"/>.')
        try:
            schemas[name] = parse_schema(as_ddl(columns), f"schema {name!r}")
        except NetworkError as error:
            raise each.fault(str(error)) from error
    return {**shared, **schemas}


def read_section(element: Element, tag: str, known: tuple[str, ...]) -> Parameters | None:
    """The parameters of <run> or <profile>; None where there is no such section."""
    found = element.named(tag)
    if len(found) > 1:
        raise found[1].fault(f"<{tag}> stands twice: put its parameters into one.")
    if not found:
        return None
    found[0].check((), ("parameter",))
    return read_parameters(f"<{tag}>", found[0], (), known)


def _operator(element: Element) -> QueryOperator:
    element.check(("name", "type"), ("next", "parameter"))
    name, given = element.attribute("name"), element.attribute("type")
    kind = next((known for known in TYPES if known.lower() == given.lower()), None)
    if kind is None:
        raise element.fault(
            f"operator {name!r} has the unknown type {given!r}{meant(given, TYPES)}; there are: {', '.join(TYPES)}."
        )
    known = TYPES[kind]
    parameters = read_parameters(f"operator {name!r} ({kind})", element, known.needed, known.known)
    followers = []
    for each in element.named("next"):
        each.check(("name",))
        follower = each.attribute("name")
        if follower in followers:
            raise each.fault(f"operator {name!r} ({kind}) names {follower!r} twice as its next: keep one of them.")
        followers.append(follower)
    return QueryOperator(name, kind, tuple(followers), parameters, element)


def _check_next(operator: QueryOperator, operators: Mapping[str, QueryOperator]) -> None:
    if operator.type == OUTPUT and operator.next:
        raise operator.fault(f"has a next operator ({', '.join(operator.next)}): an output ends. Remove <next>.")
    if operator.type != OUTPUT and not operator.next:
        raise operator.fault('leads to no output: add <next name="..."/>, or remove it.')
    for name in operator.next:
        if name not in operators:
            raise operator.fault(
                f"has the next operator {name!r}, which the query does not have{meant(name, operators)}; there are: "
                f"{', '.join(operators)}."
            )
        if operators[name].type == INPUT:
            raise operator.fault(f"has the next operator {name!r}, an Input, which reads no operator: remove <next>.")
