"""Aggregates of the user's own in YAML: their functions by import path, beside SQL.

agg:
  n: count(*)
  typical: {init: fares:nothing, incr: fares:added, merge: fares:joined, final: fares:mean,
            columns: [fare], type: double}
  trend: {whole_window: fares:trend, columns: [fare], type: double}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Tag, model_validator

from jettison.errors import NetworkError
from jettison.network.import_paths import import_path
from jettison.network.windows.user_aggregates import FUNCTIONS, Own, UserAggregate, aggregate, whole_window


class OwnSpec(BaseModel):
    """One aggregate: four functions whose partial results merge, or one of a whole window; see `user_aggregates`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    init: str | None = None
    incr: str | None = None
    merge: str | None = None
    final: str | None = None
    whole_window: str | None = None
    columns: tuple[str, ...]
    type: str
    encoding: str | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> OwnSpec:
        given = [word for word in FUNCTIONS if getattr(self, word) is not None]
        if (self.whole_window is None) != (given == list(FUNCTIONS)) or (given and self.whole_window is not None):
            found = ", ".join([*given, *(["whole_window"] if self.whole_window is not None else [])])
            raise ValueError(
                f"say either {', '.join(FUNCTIONS)}, or whole_window, each as 'module:function' "
                f"(found: {found or 'none'})"
            )
        return self

    def own(self) -> Own:
        """The aggregate. Nothing is imported yet."""
        if self.whole_window is not None:
            if self.encoding is not None:
                raise NetworkError("whole_window keeps rows and no values: leave `encoding` out.")
            return whole_window(self.whole_window, columns=self.columns, type=self.type)
        return aggregate(
            init=self.init or "",
            incr=self.incr or "",
            merge=self.merge or "",
            final=self.final or "",
            columns=self.columns,
            type=self.type,
            encoding=self.encoding or "plain",
        )


def _kind(given: Any) -> str:
    return "own" if isinstance(given, dict | OwnSpec) else "SQL"


CallSpec = Annotated[Annotated[str, Tag("SQL")] | Annotated[OwnSpec, Tag("own")], Discriminator(_kind)]
"""One aggregate of a window: SQL, or of the user's own. Faults of form are told for the one that is meant."""


def calls_of(element: str, spec: Mapping[str, str | OwnSpec]) -> tuple[tuple[str, str | Own], ...]:
    """The aggregates of a window by name."""
    found: list[tuple[str, str | Own]] = []
    for name, call in spec.items():
        try:
            found.append((name, call if isinstance(call, str) else call.own()))
        except NetworkError as error:
            raise NetworkError(f"{element}: {name!r}: {error}") from error
    return tuple(found)


def call_dict(element: str, call: str | Own) -> str | dict[str, Any]:
    """An aggregate as plain data; raises where a function cannot be imported, such as a lambda.

    >>> call_dict("aggregate 'busy': 'n'", whole_window(len, columns="fare", type="long"))
    {'whole_window': 'builtins:len', 'columns': ['fare'], 'type': 'long'}
    """
    if isinstance(call, str):
        return call
    named: dict[str, object] = (
        {word: getattr(call, word) for word in FUNCTIONS}
        if isinstance(call, UserAggregate)
        else {"whole_window": call.function}
    )
    paths = {word: import_path(f"{element}: {word}", function) for word, function in named.items()}
    kept = {"encoding": call.encoding} if isinstance(call, UserAggregate) and call.encoding != "plain" else {}
    return {**paths, "columns": list(call.columns), "type": call.type, **kept}
