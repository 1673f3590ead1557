"""The end of a stream: what `stream.output` gives, with an error for everything that is declared behind it."""

from __future__ import annotations

from typing import Any

from jettison.errors import UnknownNameError


class Ended:
    """The end of a stream: an output, behind which nothing can be declared.

    >>> from jettison.network import Network
    >>> ended = Network("n").source("s", "a int").output("o")
    >>> ended.where("a > 0")
    Traceback (most recent call last):
    jettison.errors.UnknownNameError: output 'o' ends its stream: declare 'where' on stream 's', before the output.
    """

    def __init__(self, name: str, stream: str) -> None:
        self.name = name
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "name":  # not there yet, while it is copied
            raise AttributeError(f"'Ended' object has no attribute {name!r}")
        raise UnknownNameError(
            f"output {self.name!r} ends its stream: declare {name!r} on stream {self._stream!r}, before the output."
        )

    def __repr__(self) -> str:
        return f"<output {self.name!r} of stream {self._stream!r}>"
