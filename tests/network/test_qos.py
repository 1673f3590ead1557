"""Loss-tolerance graphs (thesis 2.1.4): what they give, and the point that a bad one is refused for."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks import interpolated, qos_graphs, steady

from jettison.errors import NetworkError
from jettison.network import QoS

pytestmark = pytest.mark.core


def test_the_default_is_a_straight_line() -> None:
    qos = QoS()
    assert qos.loss == ((100.0, 1.0), (0.0, 0.0))
    assert (qos.priority, qos.utility(0.37)) == (1.0, 0.37)


def test_thesis_3_7_1_graph() -> None:
    qos = QoS(((100, 1), (60, 0.88), (0, 0)))
    assert qos.utility(0.8) == pytest.approx(0.94)
    assert qos.utility(0.3) == pytest.approx(0.44)


@pytest.mark.parametrize(("share", "expected"), [(-1e-9, 0.2), (0.0, 0.2), (0.5, 0.9), (1.0, 1.0), (1 + 1e-9, 1.0)])
def test_a_share_may_be_outside_the_range_by_rounding_alone(share: float, expected: float) -> None:
    assert QoS(((100, 1), (50, 0.9), (0, 0.2))).utility(share) == expected


@pytest.mark.parametrize("share", [75, 1.01, -0.1, float("nan"), float("inf")])
def test_what_is_no_share_has_no_utility(share: float) -> None:
    """75 was taken for 1.0: percents are in the loss graph alone."""
    with pytest.raises(NetworkError, match=r"give a share from 0 to 1, such as 0\.75 for 75 percent"):
        QoS().utility(share)


def test_lists_and_integers_become_points() -> None:
    qos = QoS([[100, 1], [0, 0]], priority=3)  # type: ignore[arg-type]
    assert qos == QoS(((100.0, 1.0), (0.0, 0.0)), 3.0)
    assert hash(qos) == hash(QoS(priority=3.0))
    assert isinstance(qos.priority, float)


def test_flat_and_vertical_ends_are_allowed() -> None:
    assert QoS(((100, 1), (0, 1))).utility(0) == 1.0
    assert QoS(((100, 1), (99.999, 1), (0, 0))).utility(0.99999) == 1.0
    assert QoS(((100, 1), (1e-9, 1), (0, 0))).utility(0) == 0.0


@pytest.mark.parametrize(
    ("loss", "point"),
    [
        ([(100, 1.0), (120, 0.5), (0, 0)], "(120.0, 0.5)"),
        ([(100, 1.0), (50, 0.5), (-1, 0)], "(-1.0, 0.0)"),
        ([(100, 1.0), (50, 1.5), (0, 0)], "(50.0, 1.5)"),
        ([(100, 1.0), (50, 0.5), (0, -0.1)], "(0.0, -0.1)"),
        ([(100, 1.0), (math.nan, 0.5), (0, 0)], "(nan, 0.5)"),
        ([(100, 1.0), (50, math.nan), (0, 0)], "(50.0, nan)"),
        ([(100, 1.0), (50, math.inf), (0, 0)], "(50.0, inf)"),
        ([(100, 0.9), (0, 0)], "(100.0, 0.9)"),
        ([(90, 1.0), (0, 0)], "(90.0, 1.0)"),
        ([(0, 0.0), (100, 1.0)], "(0.0, 0.0)"),
        ([(100, 1.0), (50, 0.5)], "(50.0, 0.5)"),
        ([(100, 1.0), (40, 0.8), (60, 0.5), (0, 0)], "(60.0, 0.5)"),
        ([(100, 1.0), (50, 0.8), (50, 0.5), (0, 0)], "(50.0, 0.5)"),
        ([(100, 1.0), (50, 0.5), (0, 0.6)], "(50.0, 0.5) to (0.0, 0.6)"),
        ([(100, 1.0), (50, 0.4), (0, 0)], "(50.0, 0.4)"),
        ([(100, 1.0), (80, 0.9), (40, 0.8), (0, 0)], "(80.0, 0.9)"),
        ([(100, 1.0), (99, 0.0), (0, 0)], "(99.0, 0.0)"),
    ],
)
def test_a_bad_graph_names_the_point(loss: list[tuple[float, float]], point: str) -> None:
    with pytest.raises(NetworkError, match=re.escape(point)):
        QoS(loss)  # type: ignore[arg-type]


@pytest.mark.parametrize("loss", [[], [(100, 1.0)]])
def test_too_few_points_are_refused(loss: Any) -> None:
    with pytest.raises(NetworkError, match=f"{len(loss)} point"):
        QoS(loss)


@pytest.mark.parametrize("loss", [5, None, "ab", [100, 0], [(100,), (0,)], [(100, 1, 2)], [("a", "b")], {100: 1, 0: 0}])
def test_what_is_no_list_of_points_is_refused_with_an_example(loss: Any) -> None:
    with pytest.raises(NetworkError, match=r"give points .*\(100, 1\.0\)"):
        QoS(loss)


@pytest.mark.parametrize("priority", [0, -1, math.nan, math.inf, "2", None])
def test_a_priority_must_be_a_positive_number(priority: Any) -> None:
    with pytest.raises(NetworkError, match=re.escape(repr(priority))):
        QoS(priority=priority)


@steady(100)
@given(qos_graphs(), st.lists(st.floats(0, 1), min_size=2, max_size=10))
def test_utility_is_monotone_concave_and_interpolates(qos: QoS, shares: list[float]) -> None:
    shares.sort()
    found = [qos.utility(share) for share in shares]
    assert all(low <= high + 1e-12 for low, high in pairwise(found))
    assert qos.priority * np.array(found) == pytest.approx(interpolated(qos, shares))
    middle = qos.utility((shares[0] + shares[-1]) / 2)
    assert middle >= (found[0] + found[-1]) / 2 - 1e-9
    for percent, utility in qos.loss:
        assert qos.utility(percent / 100) == pytest.approx(utility)


@steady(60)
@given(qos_graphs())
def test_a_graph_turned_convex_is_refused(qos: QoS) -> None:
    """Bend a strictly concave graph to the other side of its chord, by a tenth: every kink is on the wrong side."""
    end = qos.loss[-1][1]
    chord = [end + (1 - end) * percent / 100 for percent, _ in qos.loss]
    bulge = [utility - straight for (_, utility), straight in zip(qos.loss, chord, strict=True)]
    bent = [(p, straight - 0.1 * b) for (p, _), straight, b in zip(qos.loss, chord, bulge, strict=True)]
    if max(bulge) > 1e-3:
        with pytest.raises(NetworkError, match="concave"):
            QoS(tuple(bent))


@pytest.mark.parametrize(
    "gaps", [{}, {"a": {"x": 0}, "b": {"x": 1}}, {"zone": 3}, 4, {"zone": {"x": -1}}, {"zone": {"x": True}}]
)
def test_gaps_of_groups_are_refused_with_an_example(gaps: Any) -> None:
    with pytest.raises(NetworkError, match=re.escape('such as {"zone": {"airport": 0}}')):
        QoS(gaps=gaps)


def test_gaps_of_groups_are_by_the_text_of_a_value_and_the_only_rule() -> None:
    assert QoS(gap=4, gaps={"zone": {132: 0}}).gaps == {"zone": {"132": 0}}
    with pytest.raises(NetworkError, match=r"gaps and on_loss=.ignore."):
        QoS(gaps={"zone": {132: 0}}, on_loss="ignore")
