"""The options of the data source named `jettison`, checked where the source is declared."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jettison.errors import NetworkError
from jettison.synthetic.fields import Field, fields_from_dict
from jettison.synthetic.rates import Rate, rate_from_dict


@dataclass(frozen=True)
class GeneratorOptions:
    """The options of a generated source; `of` reads the strings that Spark passes."""

    fields_json: str
    rate_json: str | None
    seed: int
    partitions: int
    rows_per_batch: int | None
    limit_rows: int | None
    start_us: int | None
    from_row: int
    to_row: int | None

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "GeneratorOptions":
        """Check them all at once, where the reader is declared."""
        if "fields" not in options:
            raise NetworkError(
                'data source jettison: option fields is missing, give JSON such as {"id": {"kind": ...}}'
            )
        _fields_of(options["fields"])
        rate_json = options.get("rate")
        if rate_json is not None:
            _rate_of(rate_json)
        return cls(
            fields_json=options["fields"],
            rate_json=rate_json,
            seed=_integer(options, "seed", least=None) or 0,
            partitions=_integer(options, "partitions", least=1) or 2,
            rows_per_batch=_integer(options, "rows_per_batch", least=1),
            limit_rows=_integer(options, "limit_rows", least=0),
            start_us=_integer(options, "start_us", least=None),
            from_row=_integer(options, "from_row", least=0) or 0,
            to_row=_integer(options, "to_row", least=0),
        )

    @property
    def fields(self) -> dict[str, Field]:
        """The columns, in order."""
        return _fields_of(self.fields_json)

    @property
    def rate(self) -> Rate | None:
        """None means a closed loop."""
        return None if self.rate_json is None else _rate_of(self.rate_json)


def _integer(options: Mapping[str, str], name: str, *, least: int | None) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    try:
        value = int(text)
    except ValueError:
        value = None
    if value is None or (least is not None and value < least):
        wanted = "an integer" if least is None else f"an integer of at least {least}"
        raise NetworkError(f"data source jettison: option {name} is {text!r}, give {wanted}")
    return value


@lru_cache(maxsize=64)
def _fields_of(text: str) -> dict[str, Field]:
    return fields_from_dict(_parsed("fields", text), "data source jettison")


@lru_cache(maxsize=64)
def _rate_of(text: str) -> Rate:
    return rate_from_dict(_parsed("rate", text))


def _parsed(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise NetworkError(f"data source jettison: option {name} is {text!r}, give valid JSON ({error})") from None
