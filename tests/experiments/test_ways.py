"""The demo's measure: late, unread and shed rows are all lost, and what the sentence says is what the table says."""

from __future__ import annotations

from io import StringIO

import pytest
from matplotlib.figure import Figure
from rich.console import Console

from jettison.experiments.support.ways import CAPPED, CHANCE, NONE, VALUE, Overload, Way, compared, draw, verdict
from jettison.network.declare import Network
from jettison.network.qos import QoS
from jettison.statistics.samples import BatchSample, OutputSample
from jettison.synthetic.rates import Constant

pytestmark = pytest.mark.core


def overload() -> Overload:
    """300 rows/s for ten seconds on a machine that bears 100, two outputs; a row is in time for three seconds."""
    net = Network("n")
    rows = net.source("s", "x int")
    rows.output("all", qos=QoS([(100, 1.0), (50, 0.8), (0, 0.0)]))
    rows.where("x > 9", name="high").output("alerts", qos=QoS(priority=5))
    return Overload(net.graph, Constant(300), 10.0, 100.0, 1000.0, {"all": 1.0, "alerts": 0.1}, dear=0.01)


def way(name: str, *, read: int, age_ms: float, worth: float, grows_ms: float = 0.0) -> Way:
    """Ten batches of a second each, in which so many rows are read and this share of their worth is delivered."""
    samples = []
    for batch in range(10):
        ages = (age_ms + batch * grows_ms,) * 8
        outputs = {"all": OutputSample(round(read * worth), ages), "alerts": OutputSample(round(0.1 * read), ages)}
        shares = {"all": worth, "alerts": 1.0}
        samples.append(BatchSample(batch, 1000.0 * batch, 1000.0, 900.0, {"s": read}, outputs=outputs, worth=shares))
    return Way(name, samples, {"all": worth * read / 300, "alerts": read / 300}, dear_share=read / 300)


def ways() -> list[Way]:
    return [
        way(NONE, read=100, age_ms=1000, worth=1.0, grows_ms=1000),
        way(CAPPED, read=100, age_ms=1000, worth=1.0, grows_ms=700),
        way(CHANCE, read=300, age_ms=900, worth=0.3),
        way(VALUE, read=300, age_ms=900, worth=0.5),
    ]


def test_what_comes_too_late_or_is_not_read_is_worth_nothing() -> None:
    over = overload()
    none, capped, chance, value = (each.worth(over) for each in ways())
    # in time: the first three seconds' batches, 300 of 3,000 rows; a tenth of the rows is worth .16 to `all`
    assert none == pytest.approx(300 * (0.16 + 5 * 0.1))
    assert capped == pytest.approx(none), "three batches are in time here too"
    assert chance == pytest.approx(300 * (0.48 + 5))
    assert value == pytest.approx(300 * (0.8 + 5))


def test_every_batch_has_its_worth_and_its_worth_by_rows() -> None:
    rows = ways()[3].timeline(overload())
    assert [row["worth_per_s"] for row in rows] == [300 * (0.8 + 5)] * 10
    assert [row["worth_by_rows_per_s"] for row in rows] == [300 * 0.8 + 5 * 30] * 10


def test_the_sentence_compares_with_the_better_of_the_two_without_shedding() -> None:
    over, gone = overload(), ways()
    text = verdict(gone, over)
    assert f"{(0.8 + 5) / (0.16 + 5 * 0.1):.1f} times the worth" in text
    assert "at most 0.9 s old" in text
    assert "100% of the dearest trips" in text
    assert "instead of 33%" in text


def test_the_table_has_a_line_for_each_way_and_fits_a_terminal() -> None:
    shown = StringIO()
    Console(file=shown, width=80).print(compared(ways(), overload()))
    lines = shown.getvalue().splitlines()
    assert [sum(line.startswith(name) for line in lines) for name in (NONE, CAPPED, CHANCE, VALUE)] == [1, 1, 1, 1]
    # at capacity: 100 rows/s x (1 + 5)
    assert f"{1740 / 600:.0%}" in next(line for line in lines if line.startswith(VALUE))


def test_the_picture_shows_arrivals_ages_and_worth() -> None:
    figure = Figure()
    draw(figure, ways(), overload())
    above, middle, below = figure.axes
    assert middle.get_yscale() == "log"
    assert len(middle.lines) == 5, "four ways and the deadline"
    assert len(below.lines) == 4
    assert above.get_ylabel() == "rows/s"
