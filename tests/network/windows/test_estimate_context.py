"""How often intervals hold where the own sample says too little, drawn and counted without Spark."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.network.windows.intervals import Floats, avg_interval, context_of, count_interval, sum_interval

from jettison.network.windows.estimate_context import Context, facts_sql, observed_context, remembered

pytestmark = pytest.mark.core

Draw = Callable[[np.random.Generator, tuple[int, int]], Floats]

COLUMNS: dict[str, Draw] = {
    "even": lambda draw, size: 50 * draw.random(size),
    "rare value": lambda draw, size: 1000.0 * (draw.random(size) < 0.004),
    "rare flag": lambda draw, size: 1.0 * (draw.random(size) < 0.02),
    "even flag": lambda draw, size: 1.0 * (draw.random(size) < 0.5),
    "flag that is mostly set": lambda draw, size: 1.0 * (draw.random(size) < 0.95),
    "lognormal 1.5": lambda draw, size: np.exp(2 + 1.5 * draw.standard_normal(size)),
    "both signs": lambda draw, size: 10 * draw.standard_normal(size),
}
GROUPS = 300


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize(("keep", "kept"), [(0.1, 40), (0.4, 20), (0.8, 160)])
def test_trust_4_intervals_hold_for_rare_values_and_long_tails(column: str, keep: float, kept: int) -> None:
    """Of 300 intervals that hold in 95 % fewer than 91 % do once in a thousand times; seeds are fixed."""
    draw = np.random.default_rng([int(100 * keep), kept])
    rows = (GROUPS, round(kept / keep))
    sampled = COLUMNS[column](draw, (250, rows[1]))
    known = context_of(
        [
            (np.full(hit.sum(), 1 / keep), x[hit])
            for x, hit in zip(sampled, draw.random(sampled.shape) < keep, strict=True)
        ]
    )
    values = COLUMNS[column](draw, rows)
    seen = draw.random(rows) < keep
    hits: dict[str, list[bool]] = {"sum": [], "avg": [], "count": []}
    widths: dict[str, list[float]] = {"sum": [], "avg": []}
    for x, hit in zip(values, seen, strict=True):
        w = np.full(hit.sum(), 1 / keep)
        found = {"sum": sum_interval(w, x[hit], known), "avg": avg_interval(w, x[hit], known)}
        for name, ends in found.items():
            assert ends is not None, "known, whatever the sample was"
            assert ends[0] < ends[1]
            true = x.sum() if name == "sum" else x.mean()
            hits[name].append(ends[0] - 1e-9 <= true <= ends[1] + 1e-9)
            widths[name].append(ends[1] - ends[0])
        low, high = count_interval(w[x[hit] > 0], 1 / keep)
        hits["count"].append(low <= (x > 0).sum() <= high)
    assert {name: np.mean(each) for name, each in hits.items() if np.mean(each) < 0.91} == {}
    if column == "even":
        normal = 2 * 1.96 * np.sqrt(values.shape[1] * (1 - keep) / keep * (50**2 / 3))
        assert np.median(widths["sum"]) < 1.25 * normal, "what needs no help stays as it was"


def test_trust_4_a_group_unlike_the_stream_is_not_widened_by_it() -> None:
    """Values of half of the groups are a hundred times as large: the others' intervals stay their own."""
    draw = np.random.default_rng(4)
    slices = [(np.full(60, 10.0), scale * draw.random(60)) for _ in range(50) for scale in (1.0, 100.0)]
    known = context_of(slices)
    for w, x in slices[:10:2]:
        with_help, alone = sum_interval(w, x, known), sum_interval(w, x, None)
        assert with_help is not None
        assert alone is not None
        assert with_help[1] - with_help[0] < 1.3 * (alone[1] - alone[0])


def test_trust_4_nothing_but_zeros_ever_is_not_known() -> None:
    w, zeros, sevens = np.full(40, 5.0), np.zeros(40), np.full(40, 7.0)
    known = context_of([(w, zeros)])
    assert sum_interval(w, zeros, known) is None
    assert avg_interval(w, zeros, known) is None
    found = avg_interval(w, sevens, context_of([(w, sevens)]))
    assert found is not None
    assert found[0] < 7 < found[1], "a value that was missed may be off by as much as the value itself"


def test_what_is_known_is_kept_with_a_memory() -> None:
    first, second = (Context(*map(float, range(at, at + 7)), low=0.0, high=float(at)) for at in (10, 20))
    known = remembered({}, [{"fare": first}])
    assert known == {"fare": first}
    known = remembered(known, [{"fare": second}, {}])
    assert known["fare"].rows == pytest.approx(0.9 * 10 + 20)
    assert (known["fare"].low, known["fare"].high) == (0.0, 20.0)
    assert observed_context(0, {"context0_rows": 0.0}) is None
    assert "CAST(NULL AS double)" in facts_sql(["tip", "fare"], known, "n")
