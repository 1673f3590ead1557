"""What the experiment found, and what follows from it: ratios, checks, the table and the picture."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from jettison.experiments.harness import Result
from jettison.experiments.peers.overload import Length, Overloaded
from jettison.experiments.peers.picture import draw

OURS = "jettison"
PEERS = {"spark": "native Structured Streaming", "flink": "Flink SQL"}
BARS = {"vs_spark": 4.0, "vs_flink": 3.0, "worth_vs_spark": 3.0, "worth_vs_flink": 3.0}
_LEAST_SHARE = 0.05
"""A peer's worth in an overload is not taken below this: a ratio to nothing says nothing."""
_COMPLETE = 0.02
_FIELDS = ("engine", "part", "setting", "round", "rows_per_s", "second", "output", "results", "p99_age_s")


@dataclass
class Found:
    """Filled in as the experiment goes on. `rates` and `settings` are by engine and input."""

    with_flink: bool
    rates: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    settings: dict[tuple[str, str], str] = field(default_factory=dict)
    compared: dict[str, int] = field(default_factory=dict)
    overloads: dict[str, Overloaded] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def without(self, engine: str, reason: str) -> None:
        """An engine cannot be measured, or not all of it; the first reason counts."""
        self.missing.setdefault(engine, reason)

    def median_rows_per_s(self, engine: str, kind: str) -> float | None:
        rates = self.rates.get((engine, kind))
        return statistics.median(rates) if rates else None

    def ratio(self, peer: str, kind: str) -> float | None:
        """Our throughput over a peer's; 0 where results differ, None where one of both was not measured."""
        ours, theirs = self.median_rows_per_s(OURS, kind), self.median_rows_per_s(peer, kind)
        if ours is None or theirs is None:
            return None
        return ours / theirs if self.compared.get(kind, 0) > 0 else 0.0

    def worth_ratio(self, peer: str) -> float | None:
        """Our share of worth in an overload over a peer's share of its own."""
        return self._overload_ratio(peer, lambda each: each.worth_share)

    def worth_by_rows_ratio(self, peer: str) -> float | None:
        """The same, outputs weighed by the rows offered to them."""
        return self._overload_ratio(peer, lambda each: each.worth_by_rows_share)

    def _overload_ratio(self, peer: str, share: Callable[[Overloaded], float]) -> float | None:
        ours, theirs = self.overloads.get(OURS), self.overloads.get(peer)
        if ours is None or theirs is None:
            return None
        return share(ours) / max(_LEAST_SHARE, share(theirs))

    def keys(self) -> dict[str, float]:
        """The figures that are claimed, as far as they were measured, and worth by rows beside them.

        Of throughput the worst input counts.
        """
        found: dict[str, float | None] = {}
        for peer in PEERS:
            ratios = [self.ratio(peer, kind) for kind in self.compared]
            known = [each for each in ratios if each is not None]
            found[f"vs_{peer}"] = min(known) if known and len(known) == len(ratios) else None
        for peer in PEERS:
            found[f"worth_vs_{peer}"] = self.worth_ratio(peer)
            found[f"worth_vs_{peer}_by_rows"] = self.worth_by_rows_ratio(peer)
        return {name: round(each, 2) for name, each in found.items() if each is not None}

    def result(self, length: Length) -> Result:
        keys = self.keys()
        return Result(
            "peers",
            {**keys, **dict(self._metrics())},
            dict(self._checks(keys)),
            self._table(),
            lambda figure: draw(figure, self, length),
        )

    def _metrics(self) -> Iterator[tuple[str, float]]:
        for peer in PEERS:
            for kind in self.compared:
                ratio = self.ratio(peer, kind)
                if ratio is not None:
                    yield f"vs_{peer}_{kind}", round(ratio, 2)
        for kind, count in self.compared.items():
            yield f"{kind}_results_compared", count
        for (engine, kind), rates in self.rates.items():
            yield f"{engine}_{kind}_rows_per_s", round(statistics.median(rates))
        for engine, each in self.overloads.items():
            yield f"{engine}_capacity_rows_per_s", round(each.at_capacity.rows_per_s)
            yield f"{engine}_capacity_in_time_share", round(each.at_capacity.worth_share, 3)
            yield f"{engine}_capacity_in_time_share_by_rows", round(each.at_capacity.worth_by_rows_share, 3)
            yield f"{engine}_capacity_age_p99_s", round(each.at_capacity.p99_s, 2)
            yield f"{engine}_overload_worth_share", round(each.worth_share, 3)
            yield f"{engine}_overload_worth_by_rows_share", round(each.worth_by_rows_share, 3)
            yield f"{engine}_overload_age_p50_s", round(each.overload.p50_s, 2)
            yield f"{engine}_overload_age_p99_s", round(each.overload.p99_s, 2)
            yield f"{engine}_windows_complete", round(each.completeness, 4)
            for output, share in each.overload.shares.items():
                yield f"{engine}_overload_{output}_in_time_share", round(share, 3)

    def _checks(self, keys: dict[str, float]) -> Iterator[tuple[str, bool]]:
        for kind, count in self.compared.items():
            yield f"{kind}: all engines have the same results", count > 0
        for engine, each in self.overloads.items():
            yield f"{engine}: live windows have all of their trips", abs(1 - each.completeness) <= _COMPLETE
        for key, bar in BARS.items():
            peer = key.rpartition("_")[2]
            what = "worth in time in an overload" if key.startswith("worth") else "rows per second"
            claim = f"{key}: at least {bar:g} times the {what} of {PEERS[peer]}"
            if key in keys:
                yield claim, keys[key] >= bar
            elif peer != "flink" or self.with_flink:
                yield f"{claim} (not measured: {self.missing.get(peer, 'nothing to compare with')})", False

    def _table(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = [
            {
                "engine": engine,
                "part": kind,
                "setting": self.settings[engine, kind],
                "round": number,
                "rows_per_s": rate,
            }
            for (engine, kind), rates in self.rates.items()
            for number, rate in enumerate(map(round, rates))
        ]
        for each in self.overloads.values():
            rows += [{"part": "overload", **row} for row in each.table]
        return [{name: row.get(name, "") for name in _FIELDS} for row in rows]
