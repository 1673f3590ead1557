"""A report as people read it: a few lines, a table of outputs, and a line for all that is out of the ordinary."""

from __future__ import annotations

from jettison.statistics.missing_results import MissingResults
from jettison.telemetry.columns import aligned, shown_ms
from jettison.telemetry.report import Report

LATENCIES = ("p50", "p95", "p99", "max")
TITLES = ("output", "rows", "delivered", "utility", "timely", "shed", "sic", *LATENCIES)
_NOTHING_YET = "-"
_LEAST_WIDTHS = (14, 12, 10, 8, 8, 7, 6, 8, 8, 8, 8)


def report_text(report: Report) -> str:
    """The whole report."""
    cells = [TITLES, *(output_cells(report, name) for name in report.outputs)]
    return "\n".join([*summary(report), *aligned(cells, _LEAST_WIDTHS), *remarks(report)])


def summary(report: Report) -> list[str]:
    """What was read, what was shed, how long batches took."""
    skipped = f", {report.rows_skipped:,} skipped unread" if report.rows_skipped else ""
    over = f"{report.over_budget_batches} of {report.batches} batches over it"
    if report.mispredicted_batches:
        over += f" ({report.mispredicted_batches} although they were predicted to fit)"
    return [
        f"network {report.network}: {report.batches} batches in {report.seconds:.0f} s, "
        f"worth delivered in time {_share(report, report.worth_in_time)}",
        f"{report.rows_in:,} rows in; outputs lost {_share(report, report.shed_share)} of them to shedding "
        f"({report.rows_shed:,} drops{skipped}); {report.rows_rejected:,} rejected",
        f"slowest batch {report.slowest_batch_ms:.0f} ms, budget {report.budget_ms:.0f} ms, {over}; "
        f"plan row {report.plan.row:.1f} ({report.plan.reason})",
    ]


def output_cells(report: Report, name: str) -> tuple[str, ...]:
    """The row of one output, in the order of `TITLES`."""
    output = report.outputs[name]
    shed = output.account.lost_to_overload / output.account.read if output.account.read else 0.0
    times = (shown_ms(output.latency_ms[key]) for key in LATENCIES)
    delivered, in_time, lost = (_share(report, each) for each in (output.delivered_share, output.in_time_share, shed))
    utility = f"{output.utility:.3f}" if report.batches else _NOTHING_YET
    sic = f"{output.sic:.3f}" if report.batches else _NOTHING_YET
    return (name, f"{output.rows:,}", delivered, utility, in_time, lost, sic, *times)


def _share(report: Report, share: float) -> str:
    return f"{share:.1%}" if report.batches else _NOTHING_YET


def remarks(report: Report) -> list[str]:
    """A line for everything that is out of the ordinary; none where nothing is."""
    return [*_input_remarks(report), *_operator_remarks(report), *_plan_remarks(report)]


def _input_remarks(report: Report) -> list[str]:
    lines = []
    for name, topic in report.topics.items():
        behind = "for how long is not known: none arrive" if topic.lag_s is None else f"{topic.lag_s:.1f} s"
        lines.append(f"topic {name}: {topic.rows_per_s:,.0f} rows/s arrive, {topic.lag_rows:,} behind ({behind})")
    if report.results_shed:
        lines.append(f"{report.results_shed:,} results of windows were dropped behind their aggregates")
    if report.rows_gone:
        lines.append(f"{report.rows_gone:,} rows were gone from their source before they were read")
    if report.rows_late:
        lines.append(
            f"{report.rows_late:,} rows came late: their windows were closed, or partners at a join may have gone"
        )
    return lines


def _operator_remarks(report: Report) -> list[str]:
    lines = [
        f"aggregate {name}: {each.windows:,} windows failed, their value is null ({each.reason})"
        for name, each in report.failed.items()
    ]
    lines += [
        f"aggregate {name}: {count:,} windows withheld, which it has not seen from the first row on"
        for name, count in report.withheld.items()
    ]
    lines += [_missing(name, each) for name, each in report.missing.items() if each.results >= 0.5]
    lines += [each.line(name) for name, each in report.costs.items()]
    lines += report.notes
    lines += [
        f"operator {name}: its expression failed on {count:,} rows, which are kept with the dead letters"
        for name, count in report.unfit.items()
    ]
    if report.rows_without_time:
        lines.append(f"{report.rows_without_time:,} rows have no event time: they count in no latency")
    return lines


def _missing(name: str, missing: MissingResults) -> str:
    return (
        f"aggregate {name}: results with about {missing.rows:,.0f} rows are missing, of groups that lost every row in "
        f"a window; they are {missing.results:,.0f} or more (both estimated)"
    )


def _plan_remarks(report: Report) -> list[str]:
    lines = []
    name, worst = min(report.outputs.items(), key=lambda each: each[1].lowest_sic, default=("", None))
    if worst is not None and worst.lowest_sic < 1.0:
        lines.append(f"lowest SIC: output {name} had {worst.lowest_sic:.3f} of its sources' information at one time")
    if report.would_deliver:
        share = report.rows_would_shed / report.rows_in if report.rows_in else 0.0
        outputs = ", ".join(f"{name} {kept:.1%}" for name, kept in report.would_deliver.items())
        lines.append(
            f"dry run: nothing was shed; {report.rows_would_shed:,} rows would have been, on arcs ({share:.1%} of "
            f"rows in); outputs would have got: {outputs}"
        )
    if report.listener_failures:
        lines.append(f"listeners failed {report.listener_failures:,} times: see the log")
    if report.infeasible_batches:
        lines.append(f"{report.infeasible_batches} of {report.batches} batches could not be brought within the budget")
    lines += [
        f"output {name}: paused in {count} of {report.batches} batches, so that the minimum accuracies of others fit"
        for name, count in report.paused_batches.items()
    ]
    lines += [
        f"output {name}: below its minimum accuracy in {count} of {report.batches} batches, as not all minima fit"
        for name, count in report.degraded_batches.items()
    ]
    if report.uncertified_plans:
        lines.append(f"{report.uncertified_plans} of {report.batches} plans were not certified: safe ones were obeyed")
    if report.infeasible:
        lines.append(f"cannot keep up: {report.infeasible}")
    return lines
