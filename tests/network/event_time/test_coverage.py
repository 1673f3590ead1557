"""Which windows are whole when operators came in mid-stream: compared with what rows say themselves."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.network import Network
from jettison.network.event_time.coverage import Watch, places_above, whole_after_us, withheld
from jettison.network.windows.time_windows import WindowSpec

pytestmark = pytest.mark.core


@given(
    slide=st.integers(1, 6),
    times=st.integers(1, 3),
    before=st.lists(st.integers(-20, 40), max_size=8),
    first=st.integers(-8, 8),
    count=st.integers(1, 9),
)
def test_trust_2_no_window_is_left_that_an_unseen_row_may_be_in(
    slide: int, times: int, before: list[int], first: int, count: int
) -> None:
    window = WindowSpec(slide * times, slide)
    closing = (slide * first, slide * (first + count - 1))
    watch = Watch(3, {f"s{n}": time for n, time in enumerate(before)})
    out, left = withheld(window, closing, watch.after_us)
    starts = range(closing[0], closing[1] + 1, slide)
    kept = [] if left is None else list(range(left[0], left[1] + 1, slide))
    assert out + len(kept) == len(starts)
    newest = max(before, default=-math.inf)
    assert kept == [start for start in starts if start > newest]


def test_trust_2_what_is_below_inherits_what_is_not_whole() -> None:
    net = Network("shop")
    orders = net.source("orders", "order long, at timestamp", event_time="at")
    paid = net.source("payments", "order long, paid timestamp", event_time="paid")
    both = orders.join(paid, on="order", within="1 second", name="both")
    minutes = both.window("1 minute").agg(n="count(*)", name="minutes")
    minutes.window("1 hour").agg(n="sum(n)", name="hours").output("out")
    orders.window("1 minute").agg(n="count(*)", name="alone").output("other")
    came = Watch(4, {"orders": 50, "payments": 70})
    after = whole_after_us(net.graph, {"both": came})
    assert after["hours"] == after["minutes"] == 70 + 1_000_000
    assert after["alone"] == -math.inf
    late = whole_after_us(net.graph, {"minutes": came, "both": Watch()})
    assert late["minutes"] == 70 + 1_000_000, "of what waits at the join some may have been shed by key"
    assert whole_after_us(net.graph, {"minutes": Watch(4, settled=False)})["hours"] == math.inf
    assert whole_after_us(net.graph, {"alone": Watch(4)})["alone"] == -math.inf, "no row had come before"
    assert places_above(net.graph, "hours") == ("orders", "payments")
