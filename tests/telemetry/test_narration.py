"""Which lines a run logs: one when something changes, few when it goes back and forth."""

from __future__ import annotations

import logging

import pytest

from jettison.plan.drops.random import Random
from jettison.plan.plan import Plan
from jettison.statistics.samples import BatchSample, FailedWindows
from jettison.telemetry.narration import QUIET_MS, Line, Narrator

pytestmark = pytest.mark.core


def sample(batch: int, at_s: float | None = None, **others: object) -> BatchSample:
    started_ms = 1000.0 * (batch if at_s is None else at_s)
    return BatchSample(batch, started_ms, 1000.0, 500.0, {"trips": 1000}, **others)  # type: ignore[arg-type]


def keeping(share: float) -> Plan:
    delivered = {"fares": share, "alerts": 1.0}
    return (
        Plan({}, "within budget", 0.0, delivered)
        if share == 1
        else Plan({"trips": Random(share)}, "overload", 3, delivered)
    )


def said(narrator: Narrator, batch: BatchSample, plan: Plan, infeasible: str | None = None) -> list[Line]:
    return [line for line in narrator.after(batch, plan, infeasible) if line.level > logging.DEBUG]


def test_trust_22_shedding_begins_changes_and_ends_in_one_line_each() -> None:
    narrator, lines = Narrator(900.0), []
    shares = [1.0] * 20 + [0.4] * 20 + [0.42, 0.38] * 10 + [0.1] * 20 + [1.0] * 40
    for batch, share in enumerate(shares):
        lines += said(narrator, sample(batch), keeping(share))
    assert [line.text for line in lines] == [
        "batch 20: shedding begins (overload): outputs get 40 % to 100 % by the plan, 1,000 rows came",
        "batch 60: shedding changes (overload): outputs get 10 % to 100 % by the plan, 1,000 rows came",
        "batch 80: shedding ends: all rows are processed again",
    ]
    assert {line.level for line in lines} == {logging.INFO}


def test_trust_22_what_goes_back_and_forth_is_said_seldom_and_as_it_then_is() -> None:
    narrator, lines = Narrator(900.0), []
    for batch in range(200):
        lines += said(narrator, sample(batch), keeping(0.4 if batch % 2 else 1.0))
    for batch in range(200, 230):
        lines += said(narrator, sample(batch), keeping(1.0))
    assert 2 <= len(lines) <= 1 + 230 * 1000 / QUIET_MS
    assert "ends" in lines[-1].text
    # a clock that was set back by an hour does not keep it silent
    assert said(narrator, sample(230, at_s=-3600.0), keeping(0.4))


def test_trust_22_a_run_that_cannot_keep_up_warns_once_and_says_when_it_is_over() -> None:
    narrator, lines = Narrator(900.0), []
    for batch in range(60):
        why = "the fixed cost alone is 1.2 s" if 5 <= batch < 40 else None
        lines += said(narrator, sample(batch), keeping(1.0), why)
    assert lines == [
        Line(logging.WARNING, "batch 5: cannot keep up: the fixed cost alone is 1.2 s"),
        Line(logging.INFO, "batch 40: batches can fit into their budget again"),
    ]


def test_trust_22_bad_rows_are_added_up() -> None:
    narrator, lines = Narrator(900.0), []
    for batch in range(25):
        others = {"rejected": {"trips": 2}, "unfit": {"ratio": 1}, "failed": {"busy": FailedWindows(1, "log of 0")}}
        lines += said(narrator, sample(batch, **(others if batch < 15 else {})), keeping(1.0))
    assert [line.text for line in lines] == [
        "up to batch 0: 2 rows do not parse, 1 rows make an expression fail, 1 windows could not be computed",
        "up to batch 10: 20 rows do not parse, 10 rows make an expression fail, 10 windows could not be computed",
        "up to batch 20: 8 rows do not parse, 4 rows make an expression fail, 4 windows could not be computed",
    ]


def test_trust_22_every_batch_has_a_line_for_who_asks() -> None:
    (line,) = Narrator(900.0).after(sample(7), keeping(1.0), None)
    assert line == Line(logging.DEBUG, "batch 7: 1,000 rows in 500 of 900 ms, plan row 0.0 (within budget)")
