"""What a query means as a network: the plain content that a YAML file with the same network would have.

Operators of a query name those that come next; a network's name those that they read. A Window and the aggregate behind
it are one operator of a network, with the aggregate's name.
"""

from __future__ import annotations

from typing import Any

from jettison.network.columns.schema import Column, as_ddl
from jettison.network.columns.words import meant
from jettison.network.graph import Graph
from jettison.spec.xml.operator_types import (
    FILE_FORMATS,
    FUNCTIONS,
    IN_YAML,
    INPUT,
    JOIN,
    OUTPUT,
    SINK_PLACE,
    SOURCE_PLACE,
    UNION,
    WINDOW,
)
from jettison.spec.xml.parameters import Parameters, name_in_sql
from jettison.spec.xml.query import Query, QueryOperator

_WHOLE = ("long", "bigint")


def query_content(query: Query) -> dict[str, Any]:
    """A query as the plain content of a specification."""
    return _Content(query).all()


def check_tuples(query: Query, graph: Graph) -> None:
    """Raise for an operator whose `tuple` has a field that does not arrive there."""
    read = _Content(query)
    for operator in query.operators.values():
        columns = None if operator.type == INPUT else read.fields(operator)
        if columns is None:
            continue
        for tail in read.tails(operator):
            arriving = graph.columns[tail]
            missing = [] if arriving is None else [name for name, _ in columns if name not in arriving]
            if arriving is not None and missing:
                raise operator.parameters.fault(
                    "tuple",
                    f"its field {missing[0]!r} does not arrive from {tail!r}, which gives {', '.join(arriving)}",
                )


def section_content(parameters: Parameters | None) -> dict[str, Any]:
    """The parameters of <run> or <profile>, as YAML has them."""
    return {} if parameters is None else {name: parameters.yaml(name) for name in parameters.by_name}


class _Content:
    def __init__(self, query: Query) -> None:
        self._query = query
        self._readers: dict[str, list[QueryOperator]] = {name: [] for name in query.operators}
        for operator in query.operators.values():
            for follower in operator.next:
                self._readers[follower].append(operator)

    def all(self) -> dict[str, Any]:
        sources, operators, outputs, places, sinks = (dict[str, Any]() for _ in range(5))
        for name, operator in self._query.operators.items():
            if operator.type == INPUT:
                sources[name] = self._source(operator)
                places |= {name: place} if (place := self._source_place(operator)) else {}
            elif operator.type == OUTPUT:
                outputs[name] = {"of": self._tail(operator), **_given(operator, ("qos", "quality"))}
                sinks |= {name: place} if (place := _given(operator, SINK_PLACE)) else {}
            elif operator.type == WINDOW:
                self._check_window(operator)
            else:
                operators[name] = self._operator(operator)
        if not sources or not outputs:
            lacks = INPUT if not sources else OUTPUT
            raise self._query.element.fault(f"query {self._query.name!r} has no operator of type {lacks}: add one.")
        return self._sections(
            {"network": self._query.name, "sources": sources, "operators": operators, "outputs": outputs}, places, sinks
        )

    def _sections(self, parts: dict[str, Any], places: dict[str, Any], sinks: dict[str, Any]) -> dict[str, Any]:
        """The network with what is said of a run; without a word of it there is no `run`."""
        run = section_content(self._query.run)
        run |= ({"sources": places} if places else {}) | ({"sinks": sinks} if sinks else {})
        profile = section_content(self._query.profile)
        return {**parts, **({"profile": profile} if profile else {}), **({"run": run} if run else {})}

    # --- inputs -------------------------------------------------------------------------------------------------------

    def _source(self, operator: QueryOperator) -> dict[str, Any]:
        given = operator.parameters
        columns = self._columns(operator)
        source: dict[str, Any] = {}
        if "kafka" in given:
            topic = given.yaml("kafka")
            inside = {} if columns is None else {"schema": as_ddl(columns)}
            source["kafka"] = {**inside, **topic} if isinstance(topic, dict) else topic
        elif columns is None:
            raise operator.fault(
                f'lacks parameter \'tuple\': add <parameter name="tuple" value="..."/> with the name of a schema'
                f"{self._known_schemas()}."
            )
        else:
            source["schema"] = as_ddl(columns)
        if "id" in given:
            source["id"] = given.names("id")
        return {**source, **_given(operator, ("event_time", "payload"))}

    def _columns(self, operator: QueryOperator) -> tuple[Column, ...] | None:
        """The columns of an input. A whole number that is the event time counts seconds since 1970 (POSIX time, as
        DISSP has it): it is read as a timestamp."""
        columns, given = self.fields(operator), operator.parameters
        time = given.text("event_time") if "event_time" in given else None
        if columns is None:
            return None
        return tuple((name, "timestamp" if name == time and kind.lower() in _WHOLE else kind) for name, kind in columns)

    def _source_place(self, operator: QueryOperator) -> dict[str, Any]:
        place = _given(operator, SOURCE_PLACE)
        columns = self._columns(operator)
        if columns is not None and place.get("format") in FILE_FORMATS and "payload" not in operator.parameters:
            place.setdefault("schema", as_ddl(columns))
        return place

    # --- operators ----------------------------------------------------------------------------------------------------

    def _operator(self, operator: QueryOperator) -> dict[str, Any]:
        given = operator.parameters
        if operator.type in FUNCTIONS:
            return self._aggregate(operator)
        self._check_fields(operator, "on")
        if operator.type == UNION:
            return {"union": self._ordered(operator)}
        if operator.type == JOIN:
            return self._join(operator)
        if operator.type == "Project":
            return {"of": self._tail(operator), "select": given.parts("select")}
        return {"of": self._tail(operator), "where": given.text("where")}

    def _join(self, operator: QueryOperator) -> dict[str, Any]:
        given = operator.parameters
        on = {"on": given.names("on"), **_given(operator, ("how",))}
        if "table" in given:
            for word in ("within", "delay"):
                if word in given:
                    raise given.fault(word, f"a table does not stream: remove {word!r}, or 'table'")
            return {"of": self._tail(operator), "join": given.text("table"), **on}
        tails = self._ordered(operator)
        if len(tails) != 2 or "within" not in given:
            what = f"reads {len(tails)} operator{'' if len(tails) == 1 else 's'}" if len(tails) != 2 else "has no band"
            raise operator.fault(
                f"{what}: let two operators name it as their next and say how far apart rows may be (parameter "
                f"'within', such as '1 minute'), or name a table that does not stream (parameter 'table')."
            )
        return {"of": tails[0], "join_stream": tails[1], **on, **_given(operator, ("within", "delay"))}

    def _aggregate(self, operator: QueryOperator) -> dict[str, Any]:
        given = operator.parameters
        (window,) = self._tails(operator, 1)
        if window.type != WINDOW:
            raise operator.fault(
                f"reads {window.name!r}, which is no Window: put an operator of type Window between them, with a size "
                f"such as '10 seconds' or '100 rows'."
            )
        self._check_fields(operator, "field", "groupby")
        shape = _given(window, ("size", "slide", "delay"))
        if "groupby" in given:
            shape["by"] = given.names("groupby")
        fields = given.names("field") if "field" in given else [None]
        if len(fields) != 1:
            raise given.fault("field", "name one column; another one gets an operator of its own")
        (field,) = fields
        column = given.text("as") if "as" in given else field or operator.type.lower()
        call = f"{FUNCTIONS[operator.type]}({'*' if field is None else name_in_sql(field)})"
        return {"of": self._tail(window), "window": shape, "agg": {column: call}}

    def _check_window(self, operator: QueryOperator) -> None:
        for name in operator.next:
            if self._query.operators[name].type not in FUNCTIONS:
                remedy = "give a Join its band by 'within'" if self._query.operators[name].type == JOIN else "remove it"
                raise operator.fault(
                    f"has the next operator {name!r} ({self._query.operators[name].type}): only {', '.join(FUNCTIONS)} "
                    f"read windows; {remedy}."
                )
        self._tail(operator)

    # --- names --------------------------------------------------------------------------------------------------------

    def tails(self, operator: QueryOperator) -> list[str]:
        """Names of the network's operators that this one reads: behind a Window, what the Window reads."""
        found = self._readers[operator.name]
        return [tail for each in found for tail in (self.tails(each) if each.type == WINDOW else [each.name])]

    def _tails(self, operator: QueryOperator, most: int) -> list[QueryOperator]:
        found = self._readers[operator.name]
        if not found:
            raise operator.fault(f'is the next of no operator: let one say <next name="{operator.name}"/>.')
        if len(found) > most:
            names = ", ".join(each.name for each in found)
            raise operator.fault(f"reads {len(found)} operators ({names}): merge them by a Union before it.")
        return found

    def _tail(self, operator: QueryOperator) -> str:
        return self._tails(operator, 1)[0].name

    def _ordered(self, operator: QueryOperator) -> list[str]:
        """The operators that a Union or Join reads: in the order of the file, or that of parameter `inputs`."""
        found = [each.name for each in self._tails(operator, len(self._query.operators))]
        if "inputs" not in operator.parameters:
            return found
        order = operator.parameters.names("inputs")
        if sorted(order) != sorted(found):
            raise operator.parameters.fault("inputs", f"name each operator that it reads once: {', '.join(found)}")
        return order

    # --- schemas ------------------------------------------------------------------------------------------------------

    def fields(self, operator: QueryOperator) -> tuple[Column, ...] | None:
        """The columns of an operator's `tuple`; None where it names none."""
        if "tuple" not in operator.parameters:
            return None
        name, schemas = operator.parameters.text("tuple"), self._query.schemas
        if name not in schemas:
            raise operator.parameters.fault(
                "tuple", f"no schema has this name{meant(name, schemas)}{self._known_schemas()}"
            )
        return schemas[name]

    def _known_schemas(self) -> str:
        return f"; there are: {', '.join(self._query.schemas) or 'none'}"

    def _check_fields(self, operator: QueryOperator, *parameters: str) -> None:
        """Raise for a column that the operator's own `tuple` does not have."""
        columns = self.fields(operator)
        for parameter in parameters:
            if columns is None or parameter not in operator.parameters:
                continue
            known = [name for name, _ in columns]
            for name in operator.parameters.names(parameter):
                if name not in known:
                    schema = operator.parameters.text("tuple")
                    raise operator.parameters.fault(
                        parameter,
                        f"schema {schema!r} has no field {name!r}{meant(name, known)}; it has {', '.join(known)}",
                    )


def _given(operator: QueryOperator, names: tuple[str, ...]) -> dict[str, Any]:
    """The parameters of these names that an operator has."""
    given = operator.parameters
    return {name: given.yaml(name) if name in IN_YAML else given.text(name) for name in names if name in given}
