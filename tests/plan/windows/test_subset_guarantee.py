"""Every delivered window equals the unshed one, whatever is shed before it: thesis 4.3, theorem 5."""

from __future__ import annotations

import itertools
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks import steady
from tests.plan.windows.window_engine import (
    HIGH,
    LOW,
    Aggregate,
    Filter,
    Row,
    Shedding,
    Stage,
    Values,
    needed_ticks,
    run,
    run_shed,
    windows_of,
)

from jettison.plan.windows.fates import Schedule, Segment, extend, keep, most_drop_share
from jettison.plan.windows.needs import (
    WinDrop,
    before_join,
    common_index,
    composite,
    last_touched,
    needed_intervals,
    through,
    union,
)

pytestmark = pytest.mark.core

HOW = ("exact", "aligned", "thesis")


@st.composite
def windows(draw: st.DrawFn) -> WinDrop:
    slide = draw(st.integers(1, 8))
    return WinDrop(slide + draw(st.sampled_from((0, 0, 1, slide, 2 * slide + 1))), slide)


aggregates = st.builds(Aggregate, windows(), st.sampled_from((sum, len)))


@st.composite
def queries(draw: st.DrawFn) -> list[Stage]:
    stages: list[Stage] = []
    for _ in range(draw(st.integers(1, 3))):
        if draw(st.booleans()):
            stages.append(Filter(draw(st.integers(2, 4))))
        stages.append(draw(aggregates))
    return stages


@st.composite
def batches(draw: st.DrawFn) -> list[list[Row]]:
    """Rows that are a little, or very, late; some twice."""
    found, at = [], -10
    for _ in range(draw(st.integers(1, 8))):
        at += draw(st.integers(0, 12))
        late = st.integers(0, 6) | st.integers(0, 40)
        times = late.map(lambda back, at=at: at - back)
        row = st.tuples(times, st.sampled_from("ab"), st.integers(1, 9))
        rows = draw(st.lists(row, max_size=12))
        found.append(rows + rows[: draw(st.integers(0, 2))])
    return found


@st.composite
def values(draw: st.DrawFn) -> Values:
    gap = draw(st.integers(0, 5))
    return Values(draw(st.sampled_from((0.0, 0.3, 0.8, 1.0))) * most_drop_share(gap), gap, draw(st.sampled_from("st")))


# --- one chain ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", HOW)
@steady(30)
@given(st.data())
def test_what_is_delivered_is_what_would_have_been(how: str, data: st.DataObject) -> None:
    stages, given_batches = data.draw(queries()), data.draw(batches())
    shedding = Shedding(stages, delay=data.draw(st.integers(0, 20)), how=how)
    for batch in given_batches:
        own = {"b": data.draw(values())} if data.draw(st.booleans()) else {}
        shedding.take(batch, data.draw(st.none() | values()), own)

    unshed = run(stages, shedding.in_time)
    delivered = run_shed(stages, shedding.passed, shedding.schedule, how)

    slide = windows_of(stages)[-1].slide
    assert delivered == [row for row in unshed if keep(shedding.schedule, row[0] // slide, row[1])]


@steady(25)
@given(queries(), values())
def test_no_row_that_passes_could_have_gone(stages: list[Stage], new: Values) -> None:
    # Exact means both ways. A sum tells when any row is missing, and without filters all of them count.
    chain = [Aggregate(window) for window in windows_of(stages)]
    schedule = Schedule((Segment(-20, new.drop_share, new.gap, new.seed),))
    rows = [(tick, "a", 1) for tick in range(-30, 70)]
    wanted = needed_ticks(schedule, windows_of(chain), "a", "exact")

    delivered = run_shed(chain, rows, schedule)
    for tick in range(10, 40, 3):
        assert (run_shed(chain, rows[: tick + 30] + rows[tick + 31 :], schedule) != delivered) == (tick in wanted)


def test_a_plan_that_heeds_nothing_is_found_out() -> None:
    # The same run with a segment that begins in a window under way: its first rows are gone, and its sum is wrong.
    stages = [Aggregate(WinDrop(10, 10))]
    all_rows = [(tick, "", 1) for tick in range(40)]
    dropping = Schedule((Segment(0, 0.5, 1, "s"),))
    first = [row for row in all_rows[:15] if row[0] in needed_ticks(dropping, windows_of(stages), "", "exact")]

    changed = extend(dropping, 0, drop_share=0.0, gap=1, seed="s")  # tick 14 was seen: 1 would have been right
    assert run_shed(stages, first + all_rows[15:], changed) != run(stages, all_rows)
    heeding = extend(dropping, last_touched(14, 10), drop_share=0.0, gap=1, seed="s")
    assert run_shed(stages, first + all_rows[15:], heeding) == [row for row in run(stages, all_rows) if row[0] != 10]


def is_dense(stages: list[Stage]) -> bool:
    """Whether, with a row at every tick, every window has something in it."""
    return all(below.size >= above.slide for above, below in itertools.pairwise(windows_of(stages)))


@steady(40)
@given(
    queries().filter(is_dense), st.integers(1, 5), st.lists(st.sampled_from((0.0, 0.5, 1.0)), min_size=8, max_size=8)
)
def test_no_group_misses_more_windows_in_a_row_than_it_may(stages: list[Stage], gap: int, shares: list[float]) -> None:
    chain = [stage for stage in stages if isinstance(stage, Aggregate)]
    shedding = Shedding(chain, delay=0)
    for number, share in enumerate(shares):
        ticks = range(20 * number, 20 * number + 20)
        shedding.take([(tick, group, 1) for tick in ticks for group in "ab"], Values(share * most_drop_share(gap), gap))

    delivered = {row[:2] for row in run_shed(chain, shedding.passed, shedding.schedule)}
    missing: dict[str, list[bool]] = defaultdict(list)
    for start, group, _ in run(chain, shedding.in_time):
        missing[group].append((start, group) not in delivered)
    for fates in missing.values():
        assert max((len(list(same)) for lost, same in itertools.groupby(fates) if lost), default=0) <= gap


@pytest.mark.parametrize(("share", "gap"), [(0.5, 1), (0.3, 2), (0.7, 4)])
def test_in_the_long_run_the_share_is_missing_and_rows_are_saved(share: float, gap: int) -> None:
    stages: list[Stage] = [Aggregate(WinDrop(2, 2)), Filter(5), Aggregate(WinDrop(4, 4))]
    shedding = Shedding(stages, delay=0)
    for low in range(0, 240, 40):
        rows = [(tick, f"g{number}", 1) for tick in range(low, low + 40) for number in range(60)]
        shedding.take(rows, Values(share, gap))

    unshed, delivered = run(stages, shedding.in_time), run_shed(stages, shedding.passed, shedding.schedule)
    assert 1 - len(delivered) / len(unshed) == pytest.approx(share, abs=0.03)
    assert 1 - len(shedding.passed) / len(shedding.in_time) == pytest.approx(share, abs=0.03)


# --- several branches ---------------------------------------------------------------------------------------------


@steady(30)
@given(aggregates, st.lists(aggregates, min_size=2, max_size=3), batches(), st.data())
def test_branches_with_fates_of_their_own_share_what_is_above(
    above: Aggregate, branches: list[Aggregate], given_batches: list[list[Row]], data: st.DataObject
) -> None:
    rows = [row for batch in given_batches for row in batch]
    schedules = [
        Schedule((Segment(-3, new.drop_share, new.gap, new.seed),)) for new in (data.draw(values()) for _ in branches)
    ]
    for group in "ab":
        own = [row for row in rows if row[1] == group]
        needs = union(
            *(
                needed_intervals(schedule, branch.window, LOW, HIGH, group)
                for branch, schedule in zip(branches, schedules, strict=True)
            )
        )
        wanted = {tick for low, high in through(above.window, needs) for tick in range(low, high)}
        starts = {tick for low, high in needs for tick in range(low, high)}
        results = [row for row in above([row for row in own if row[0] in wanted]) if row[0] in starts]
        for branch, schedule in zip(branches, schedules, strict=True):
            unshed = run([above, branch], own)
            kept_ones = [row for row in unshed if keep(schedule, row[0] // branch.window.slide, group)]
            assert run_shed([branch], results, schedule) == kept_ones


@steady(30)
@given(aggregates, st.lists(aggregates, min_size=2, max_size=3), batches(), values())
def test_a_common_decision_delivers_whole_windows_of_all_branches(
    above: Aggregate, branches: list[Aggregate], given_batches: list[list[Row]], new: Values
) -> None:
    rows = [(tick, "", value) for batch in given_batches for tick, _, value in batch]
    common = composite(above.window, *(branch.window for branch in branches))
    schedule = Schedule((Segment(-3, new.drop_share, new.gap, new.seed),))
    wanted = needed_ticks(schedule, [common], "", "exact")
    results = above([row for row in rows if row[0] in wanted])

    for branch in branches:
        slide = branch.window.slide

        def is_kept(row: Row, slide: int = slide) -> bool:
            return keep(schedule, common_index(row[0] // slide, slide, common.slide))

        assert [row for row in branch(results) if is_kept(row)] == [
            row for row in run([above, branch], rows) if is_kept(row)
        ]


@steady(30)
@given(aggregates, batches(), batches(), st.integers(0, 12), st.lists(values(), min_size=8, max_size=8))
def test_below_a_join_too(
    below: Aggregate, left: list[list[Row]], right: list[list[Row]], within: int, plans: list[Values]
) -> None:
    def joined(some: list[Row], others: list[Row]) -> list[Row]:
        pairs = itertools.product(some, others)
        return [(max(a[0], b[0]), a[1], a[2] * b[2]) for a, b in pairs if a[1] == b[1] and abs(a[0] - b[0]) <= within]

    schedule, newest = Schedule(), None
    passed: tuple[list[Row], list[Row]] = ([], [])
    for batch, new in zip(itertools.zip_longest(left, right, fillvalue=[]), plans, strict=False):
        now = None if newest is None else last_touched(newest, below.window.slide, within)
        schedule = extend(schedule, now, drop_share=new.drop_share, gap=new.gap, seed=new.seed)
        wanted = {
            group: {
                tick
                for low, high in before_join(needed_intervals(schedule, below.window, LOW, HIGH, group), within)
                for tick in range(low, high)
            }
            for group in "ab"
        }
        for side, rows in zip(passed, batch, strict=True):
            side += [row for row in rows if row[0] in wanted[row[1]]]
        newest = max([row[0] for rows in batch for row in rows] + ([] if newest is None else [newest]), default=None)

    unshed = below(joined([*itertools.chain(*left)], [*itertools.chain(*right)]))
    kept_ones = [row for row in unshed if keep(schedule, row[0] // below.window.slide, row[1])]
    assert run_shed([below], joined(*passed), schedule) == kept_ones


def test_sparse_groups_may_lose_every_result() -> None:
    # A limit worth knowing: gaps are counted in windows of event time, also where a group has no rows.
    stages = [Aggregate(WinDrop(1, 1))]
    schedule = Schedule((Segment(0, 0.5, 1, "s"),))

    assert run_shed(stages, [(tick, "", 1) for tick in range(1, 20, 2)], schedule) == []
