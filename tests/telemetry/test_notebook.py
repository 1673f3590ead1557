"""Reports as text and in notebooks: aligned at any size, escaped, complete."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

import jettison as jt
from jettison.plan.plan import Plan
from jettison.statistics.samples import BatchSample, OutputSample
from jettison.telemetry.notebook import run_html
from jettison.telemetry.report import Report, Totals

pytestmark = pytest.mark.core

YEARS_MS = 55 * 365.25 * 86_400_000


def report(age_ms: float = 850.0, names: tuple[str, ...] = ("fares", "alerts"), reason: str = "none") -> Report:
    net = jt.Network("taxi")
    trips = net.source("trips", "fare double")
    for name in names:
        trips.output(name)
    totals = Totals(net.graph, 900.0)
    outputs = {name: OutputSample(1_234_567, (age_ms,) * 8) for name in names}
    totals.add(BatchSample(0, 0.0, 1e3, 5e2, {"trips": 10**12}, outputs=outputs), Plan(reason=reason))
    return totals.report(12.0, Plan(reason=reason), "no plan <fits> & none will")


def table(text: str, outputs: int) -> list[str]:
    lines = text.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("output "))
    return lines[first : first + 1 + outputs]


@pytest.mark.parametrize(
    ("age_ms", "shown"),
    [(0.4, "0ms"), (850.0, "850ms"), (1020.0, "1.02s"), (3e5, "5.0min"), (9e6, "2.5h"), (YEARS_MS, "20,089d")],
)
def test_the_house_columns_stay_aligned_when_event_times_are_years_ago(age_ms: float, shown: str) -> None:
    """Latencies of 10^10 ms and more ran together: 1735689600.00s1735689600.00s."""
    lines = table(str(report(age_ms)), 2)
    assert len({len(line) for line in lines}) == 1, "every column ends where its title ends"
    for line in lines[1:]:
        cells = line.split()
        assert len(cells) == 11
        unit = re.sub(r"[\d.,]+", "", shown)
        assert all(cell.endswith(unit) and cell[-len(unit) - 1].isdigit() for cell in cells[7:]), line
    ends = [match.end() for match in re.finditer(r"\S+", lines[0])]
    for line in lines[1:]:
        assert [match.end() for match in re.finditer(r"\S+", line)][1:] == ends[1:]


def test_the_house_long_names_do_not_run_into_numbers() -> None:
    name = "alerts_of_all_zones_in_the_outskirts"
    lines = table(str(report(names=("fares", name))), 2)
    assert len({len(line) for line in lines}) == 1
    assert lines[2].split()[:2] == [name, "1,234,567"]


class Tags(HTMLParser):
    """Whether tags close in order, and what they are."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.cells: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert {name for name, _ in attrs} <= {"style"}
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] in (["td"], ["th"]):
            self.cells.append(data)


def test_the_house_a_report_in_a_notebook_is_a_table_and_loads_nothing() -> None:
    html = report(reason="<script>alert('x')</script>")._repr_html_()
    tags = Tags()
    tags.feed(html)
    assert tags.open == []
    assert tags.seen == {"div", "table", "tr", "th", "td"}
    shown = ["output", "rows", "delivered", "utility", "timely", "shed", "sic", "p50", "p95", "p99", "max"]
    assert tags.cells[:11] == shown
    assert tags.cells[11:13] == ["fares", "1,234,567"]
    assert "&lt;script&gt;" in html
    assert "cannot keep up: no plan &lt;fits&gt; &amp; none will" in html
    assert not re.search(r"https?:|src=|url\(", html)


def test_the_house_a_run_in_a_notebook_says_whether_it_runs() -> None:
    html = run_html(report(), state="runs", checkpoint="out/<c>")
    assert "Run of network taxi: runs" in html
    assert "checkpoint out/&lt;c&gt;" in html


def test_before_the_first_batch_no_share_is_shown() -> None:
    """It said "delivered 100.0%, utility 1.000" of outputs that had got nothing."""
    net = jt.Network("taxi")
    net.source("trips", "fare double").output("fares")
    found = Totals(net.graph, 900.0).report(0.0, Plan(), None)
    assert table(str(found), 1)[1].split() == ["fares", "0", *"---------"]
    assert "%" not in str(found)
    assert ">-</td>" in run_html(found, state="running", checkpoint="c")
    assert "100.0%" not in run_html(found, state="running", checkpoint="c")
    assert found.outputs["fares"].delivered_share == 1.0
