"""Records of what aggregates keep: what is known of values goes with them, and what does not fit is refused."""

from __future__ import annotations

import json

import pytest

from jettison.errors import CheckpointError
from jettison.network.windows.estimate_context import Context
from jettison.plan.refine.thinning import GroupShares, Thinned
from jettison.spark.state.slice_log import SliceRecord, check_shape, still_wanted

pytestmark = pytest.mark.core


def test_what_is_known_of_values_is_kept_to_the_last_bit() -> None:
    known = {"fare": Context(0.1 + 0.2, 1e300, 5e-324, 1.0, 0.0, 2.0, 3.0, -1e-17, 1 / 3)}
    thinned = {"busy": (Thinned(GroupShares(("zone",), ((-(2**63), 1 / 3),), 0.1), None, 7),)}
    record = SliceRecord(7, {"busy": "windows"}, context=known, thinned=thinned)
    assert SliceRecord.from_json(record.to_json()) == record
    before = {name: value for name, value in json.loads(record.to_json()).items() if name not in ("context", "thinned")}
    old = SliceRecord.from_json(json.dumps(before))
    assert (old.context, old.thinned) == ({}, {}), "a record from before there was any"
    assert still_wanted(record, ["other"]) == SliceRecord(7, {"busy": "windows"}, context=known)


def test_trust_4_slices_without_what_intervals_need_are_refused_by_name() -> None:
    old = SliceRecord(7, {"busy": "windows of 1 us by () with count(1) bigint, sum(fare) double"})
    with pytest.raises(CheckpointError, match=r"aggregate 'busy': the checkpoint keeps .*start with a new checkpoint"):
        check_shape(
            old, {"busy": "windows of 1 us by () with count(1) bigint, sum(fare) double, max(double(fare)) double"}
        )


def test_trust_17_pickled_values_are_refused_by_name() -> None:
    old = SliceRecord(7, {"busy": "windows with busy.mean of (fare) binary"})
    now = {"busy": "windows with busy.mean of (fare) as plain values binary"}
    with pytest.raises(CheckpointError, match=r"aggregate 'busy'.*values that pickle wrote.*encoding='pickle'"):
        check_shape(old, now)
    check_shape(old, dict(old.shape))
    check_shape(SliceRecord(7, now), now)
