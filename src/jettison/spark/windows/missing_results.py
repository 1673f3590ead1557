"""Results that are missing because all rows of a group were dropped in a window: counted by those that came."""

from __future__ import annotations

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from jettison.spark.compile.observations import observed_if_at_all
from jettison.spark.windows.slices import MORE_ROWS, ROWS
from jettison.statistics.missing_results import MissingResults

_METRICS = (
    f"sum(IF({ROWS} = 1, {MORE_ROWS}, 0D)) AS rows",
    f"sum(IF({ROWS} = 2, pow({MORE_ROWS} / 2, 2), 0D)) AS pairs",
)


class Missing:
    """What is missing of one batch, by aggregate."""

    def __init__(self) -> None:
        self._seen: dict[str, Observation] = {}

    def watched(self, name: str, grouped: DataFrame) -> DataFrame:
        """Windows by group, with their rows and what those stand for, of which some are observed."""
        seen = self._seen[name] = Observation()
        return grouped.observe(seen, *map(F.expr, _METRICS))

    def counted(self) -> dict[str, MissingResults]:
        """What is missing, when all results have been looked at; nothing where nobody did."""
        seen = {name: observed_if_at_all(observation) for name, observation in self._seen.items()}
        found = {name: MissingResults(each.get("rows") or 0.0, each.get("pairs") or 0.0) for name, each in seen.items()}
        return {name: each for name, each in found.items() if each.rows > 0}
