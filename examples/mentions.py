"""The functions that examples/mentions.yaml names: what a trip costs depends on its zone."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

_BLOCK = b"x" * 4096
_ROUNDS = {"airport": 4000, "centre": 1000, "elsewhere": 100}


def kind_of(zone: int) -> str:
    """One zone in seven is an airport, one in seven is in the centre."""
    return {3: "airport", 5: "centre"}.get(zone % 7, "elsewhere")


def score(row: Mapping[str, Any]) -> dict[str, Any]:
    """A score that takes long for airports: as many rounds of hashing as the zone asks for."""
    made, kind = hashlib.sha256(), kind_of(row["zone"])
    for _ in range(_ROUNDS[kind]):
        made.update(_BLOCK)
    return {"kind": kind, "score": int(made.hexdigest()[:6], 16) / 0xFFFFFF * row["fare"]}
