"""An Avro schema's columns in Spark's words, without Spark."""

from __future__ import annotations

import json
from typing import Any

from jettison.errors import NetworkError
from jettison.network.columns.schema import Column, check_names, quoted

_PRIMITIVES = {
    "string": "string",
    "int": "int",
    "long": "long",
    "float": "float",
    "double": "double",
    "boolean": "boolean",
    "bytes": "binary",
    "enum": "string",
    "fixed": "binary",
}
_LOGICAL = {
    "timestamp-millis": "timestamp",
    "timestamp-micros": "timestamp",
    "local-timestamp-millis": "timestamp_ntz",
    "local-timestamp-micros": "timestamp_ntz",
    "date": "date",
}


def avro_columns(schema: str, element: str) -> tuple[Column, ...]:
    """The fields of an Avro record; `element` is named in errors.

    >>> fare = '{"name": "fare", "type": ["null", "double"]}'
    >>> avro_columns(f'{{"type": "record", "name": "trip", "fields": [{fare}]}}', "source 'trips'")
    (('fare', 'double'),)
    """
    if not isinstance(schema, str):
        raise NetworkError(f"{element}: schema is {schema!r}: give an Avro schema as JSON text.")
    try:
        record = json.loads(schema)
    except json.JSONDecodeError as error:
        raise NetworkError(f"{element}: the Avro schema is not JSON: {error}.") from error
    if not isinstance(record, dict) or record.get("type") != "record" or not record.get("fields"):
        raise NetworkError(f'{element}: the Avro schema is not a record with fields: {{"type": "record", ...}}.')
    try:
        columns = tuple(
            (str(field["name"]), _kind(field["type"], f"{element}, {field['name']}")) for field in record["fields"]
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise NetworkError(
            f"{element}: the Avro schema has a part that cannot be read ({type(error).__name__}: {error}): give every "
            f'field a name and a type, such as {{"name": "fare", "type": "double"}}.'
        ) from error
    check_names(element, [name for name, _ in columns])
    return columns


def _kind(declared: Any, where: str) -> str:
    if isinstance(declared, list):
        rest = [each for each in declared if each != "null"]
        if len(rest) == 1:
            return _kind(rest[0], where)
        raise NetworkError(f"{where}: a union of several types has no one column: use one type and null.")
    if isinstance(declared, str):
        declared = {"type": declared}
    logical, kind = declared.get("logicalType"), declared["type"]
    if logical == "decimal":
        return f"decimal({declared['precision']}, {declared.get('scale', 0)})"
    if logical in _LOGICAL:
        return _LOGICAL[logical]
    if isinstance(kind, dict | list):
        return _kind(kind, where)
    if kind == "array":
        return f"array<{_kind(declared['items'], where)}>"
    if kind == "map":
        return f"map<string, {_kind(declared['values'], where)}>"
    if kind == "record":
        inner = ", ".join(f"{quoted(each['name'])}: {_kind(each['type'], where)}" for each in declared["fields"])
        return f"struct<{inner}>"
    if kind not in _PRIMITIVES:
        raise NetworkError(f"{where}: Avro type {kind!r} is not known: spell a named type out where it is used.")
    return _PRIMITIVES[kind]
