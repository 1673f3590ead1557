"""Columns to generate, ready made: taxi trips, and the units of the battalion of thesis 3.9, which is attacked."""

from __future__ import annotations

from typing import Any

from jettison.network.columns.words import meant
from jettison.synthetic.distributions import Uniform
from jettison.synthetic.fields import TAXI, TAXI_PAYLOAD, Arrival, Choice, Field, RowNumber, Shift

__all__ = ["ENEMY_UNITS", "FRIENDLY_UNITS", "LINE_X", "TAXI", "TAXI_PAYLOAD", "enemy_units"]

LINE_X = 350.0
"""The battalion's line: friendly units stand on one side of it, those of the enemy on the other, up to 500."""

ATTACK_FROM_ROW, ATTACK_OVER_ROWS = 100_000, 400_000


def enemy_units(from_row: int = ATTACK_FROM_ROW, over_rows: int = ATTACK_OVER_ROWS) -> dict[str, Field]:
    """Positions of the enemy's units: behind the line at first, from this row on more and more of them across it."""
    behind, across = Uniform(LINE_X, 500, type="double"), Uniform(200, 450, type="double")
    return _units(Shift(behind, across, from_row, over_rows), "enemy")


def _units(x: Field, side: str) -> dict[str, Field]:
    return {
        "report": RowNumber(),
        "seen": Arrival(),
        "side": Choice((side,)),
        "kind": Choice(("tank", "aircraft", "infantry"), weights=(4, 2, 4)),
        "x": x,
        "y": Uniform(0, 500, type="double"),
    }


FRIENDLY_UNITS: dict[str, Field] = _units(Uniform(0, LINE_X, type="double"), "friendly")
"""Positions of a battalion's own units (thesis 3.9)."""

ENEMY_UNITS: dict[str, Field] = enemy_units()


def __getattr__(name: str) -> Any:
    hint = meant(name, __all__) or meant(name.upper(), __all__)
    raise AttributeError(f"jt.presets has no preset {name!r}{hint}: it has {', '.join(__all__)}.")
