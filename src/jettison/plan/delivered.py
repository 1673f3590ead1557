"""What a plan delivered, by what was counted on its arcs: the counterpart of what it claimed (`claims`).

The share of an output that is delivered is what comes to it over what would have come without any drop. Tuples follow
the same arithmetic as in a plan (`statistics.load.flows`), with the share that was counted on each arc in place of the
share that was planned. Selectivities matter only where streams merge.

Below drops by value (`counted_shares`) the shares of cells are in the plan, and how the tuples of the batch were spread
over the cells is known from a sample before the drop; both together are scaled to the rows that were counted behind it.
What filters below pass of every cell is known from earlier batches; where rows were counted at the output, what they
passed of the cells that were open is taken from there.

Windows count as windows: of those that closed in a batch, the share that was kept (`plan.windows.closed_windows`). A
tuple that goes early because no kept window needs it is not counted a second time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from jettison.network.arc import Arc, arc_head
from jettison.network.graph import Graph
from jettison.network.operators import Apply, Join, Source, Where
from jettison.network.windows.slice_groups import results_above, waits_above
from jettison.plan.drops.kind import PassShare, pass_shares
from jettison.plan.drops.semantic import Semantic
from jettison.plan.drops.window import Window
from jettison.plan.plan import Plan
from jettison.plan.windows.decisions import decisions_of
from jettison.statistics.load import flows
from jettison.statistics.passing import contradicts
from jettison.statistics.profile import Profile
from jettison.statistics.samples import BatchSample
from jettison.statistics.spread import Spread, flows_by_value
from jettison.statistics.values import counted_spread

Vector = npt.NDArray[np.float64]

_LEAST_ROWS = 1e-9
"""A source without rows in a batch weighs next to nothing, but not nothing: windows may close all the same."""
_LEAST_MISSED_ROWS = 0.5


@dataclass(frozen=True)
class Delivered:
    """Of one output in one batch: the share of its tuples, the share of their worth, and how much this batch weighs:
    the rows that would have come to the output; where it gets windows that may be dropped whole, windows that closed;
    of other results, and of pairs, the source tuples that arrived. A row that was dropped because it was too old is
    lost, as is one that is delivered too late (`statistics.worth.timely_share`). `expected` are the rows that would
    have come by the profile, results where there are windows."""

    share: float
    worth: float
    weight: float
    expected: float = 0.0


def delivered(graph: Graph, plan: Plan, sample: BatchSample, profile: Profile | None = None) -> dict[str, Delivered]:
    """What every output got in one batch.

    The plan meant to keep 50 %, and 48 of 100 tuples passed:

    >>> from jettison.network import Network
    >>> from jettison.plan.drops.random import Random
    >>> net = Network("one"); _ = net.source("s", "x int").where("x > 0", name="w").output("o")
    >>> sample = BatchSample(0, 0.0, 1000.0, 900.0, {"s": 100}, arcs={"s": (100, 48)})
    >>> delivered(net.graph, Plan({"s": Random(0.5)}, delivered={"o": 0.5}), sample)
    {'o': Delivered(share=0.48, worth=0.48, weight=100.0, expected=100.0)}
    """
    known = profile or Profile({}, {})
    arrived = {
        each.name: float(sample.rows_in.get(each.name, 0) + sample.skipped.get(each.name, 0)) for each in graph.sources
    }
    rows = {name: max(count, _LEAST_ROWS) for name, count in arrived.items()}
    whole = flows(graph, known, rows)
    all_kept = flows(graph, known, rows, _keeps(plan, sample, arrived))
    wanted_kept = flows(graph, known, rows, _keeps(plan, sample, arrived, wanted_only=True))
    by_value = counted_shares(graph, known, plan, sample) if _by_value(plan) and not sample.delivered else ({}, {})
    counted, counted_worth = {**by_value[0], **sample.delivered}, {**by_value[1], **sample.worth}
    windows = _windows_closed(graph, sample)
    below = {source.name: graph.outputs_below(source.name) for source in graph.sources}
    found = {}
    for output in graph.outputs:
        (arc,) = graph.arcs_into(output.name)
        share = worth = _ratio(all_kept[arc], whole[arc])
        if output.name in plan.worth and output.qos.value is not None:
            planned = plan.delivered.get(output.name, 1.0)
            wanted = min(1.0, plan.worth[output.name] * _ratio(share, planned, otherwise=1.0))
            worth = wanted * min(1.0, _ratio(all_kept[arc], wanted_kept[arc]))  # what was too old is lost too
        if output.name not in windows:
            worth = counted_worth.get(output.name, worth if output.qos.value else counted.get(output.name, worth))
            share = counted.get(output.name, share)
        tuples = sum(count for name, count in arrived.items() if output.name in below[name])
        if output.name not in windows and not waits_above(graph, output.name):
            tuples = _possible(sample, output.name, share, whole[arc] if tuples else 0.0)
        expected = _expected(graph, known, sample, output.name, whole[arc] if any(arrived.values()) else 0.0)
        found[output.name] = Delivered(share, worth, windows.get(output.name, tuples), expected)
    return found


def _expected(graph: Graph, profile: Profile, sample: BatchSample, output: str, by_profile: float) -> float:
    """Rows that would have come to an output by the profile; one for each window that closed, where that does not know
    how many results an aggregate has."""
    unknown = [
        each.name
        for each in graph.aggregates
        if each.name not in profile.selectivity and output in graph.outputs_below(each.name)
    ]
    return sum(sample.windows.get(name, (0.0, 0.0))[0] for name in unknown) if unknown else by_profile


def _possible(sample: BatchSample, output: str, share: float, expected: float) -> float:
    """The rows that would have come to an output: those that came over the share that was let through.

    >>> from jettison.statistics.samples import OutputSample
    >>> seen = BatchSample(0, 0.0, 1000.0, 900.0, {"s": 100}, outputs={"o": OutputSample(12)})
    >>> _possible(seen, "o", 0.25, 30.0), _possible(seen, "o", 0.0, 30.0)
    (48.0, 30.0)
    """
    seen = sample.outputs.get(output)
    return seen.rows / share if seen is not None and share > 0 else expected


def _ratio(part: float, whole: float, otherwise: float = 1.0) -> float:
    return part / whole if whole > 0 else otherwise


def _by_value(plan: Plan) -> bool:
    return any(drop.judges == "value" for drop in plan.drops.values())


def _keeps(
    plan: Plan, sample: BatchSample, arrived: Mapping[str, float], *, wanted_only: bool = False
) -> dict[str, float]:
    """The share that was counted to pass each arc; with `wanted_only`, of tuples that were not stale."""
    keeps: dict[str, float] = {}
    for arc in dict.fromkeys((*plan.arcs, *sample.arcs)):
        drop = plan.drops.get(arc)
        if isinstance(drop, Window):
            if drop.of is not None:
                keeps[arc] = _kept_windows(sample.windows.get(drop.of), sample.arcs.get(arc))
            continue
        counted, kept = sample.arcs.get(arc, (0, 0))
        if wanted_only and arc in plan.stale:
            keeps[arc] = plan.keep(arc)
        elif counted:
            keeps[arc] = min(1.0, kept / counted)
        elif plan.closes(arc) if arc in plan.drops else False:
            keeps[arc] = 0.0
    for name, count in arrived.items():
        unread, stale = sample.skipped.get(name, 0), sample.stale.get(name, 0) if wanted_only else 0
        if unread and count > stale:
            keeps[name] = keeps.get(name, 1.0) * (count - unread) / (count - stale)
    return keeps


def _kept_windows(windows: tuple[float, float] | None, results: tuple[int, int] | None) -> float:
    """The share of windows that was kept; where windows are not numbered by time, of results."""
    for found in (windows, results):
        if found is not None and found[0]:
            return min(1.0, found[1] / found[0])
    return 1.0


def _windows_closed(graph: Graph, sample: BatchSample) -> dict[str, float]:
    """By output that gets windows of time of which some may go: how many closed in this batch."""
    decisions = decisions_of(graph)
    found: dict[str, float] = {}
    for aggregate in graph.aggregates:
        for output in decisions.outputs(aggregate.name) if aggregate.name in decisions.guarded else ():
            found[output] = found.get(output, 0.0) + sample.windows.get(aggregate.name, (0.0, 0.0))[0]
    return found


def counted_shares(
    graph: Graph,
    profile: Profile,
    plan: Plan,
    sample: BatchSample,
    passes: Mapping[str, Vector] | None = None,
) -> tuple[dict[str, float], dict[str, float]]:
    """By output, the share of tuples that a batch delivered and of what they are worth; nothing where all passed.

    `passes` is what filters pass of every cell, where that is known better than from the spreads of the profile.

    >>> from jettison.network import Network, QoS, Value
    >>> from jettison.statistics.samples import ValueSample
    >>> net, value = Network("n"), Value("x", [(0, 50, 0.5), (50, 100, 1)])
    >>> _ = net.source("s", "x int").output("o", qos=QoS(value=value))
    >>> bounds = net.graph.tracks.by_output["o"].bounds
    >>> upper = Semantic("x", bounds, tuple(float(low >= 50) for low in bounds[:-1]) + (0.0,), keep=0.5)
    >>> low = ValueSample(100, (10.0,) * 80 + (60.0,) * 20)  # the plan counted on 50, there are 20
    >>> sample = BatchSample(0, 0.0, 1000.0, 900.0, {"s": 1000}, arcs={"s": (1000, 210)}, before={"s": low})
    >>> delivered, worth = counted_shares(net.graph, Profile({}, {}), Plan({"s": upper}), sample)
    >>> round(delivered["o"], 3), round(worth["o"], 3)
    (0.21, 0.35)
    """
    skipped = sum(sample.skipped.values())
    if not plan.sheds and not skipped:
        return {}, {}
    counted = _carried(graph, profile, _spreads(graph, plan, sample), passes or {})
    rows = {name: float(count) for name, count in sample.rows_in.items()}
    spread = Spread(graph, counted)
    by_window = {arc for arc, drop in plan.drops.items() if drop.judges == "window"}
    keeps: dict[str, PassShare] = {}
    order = {operator.name: number for number, operator in enumerate(graph.operators)}
    for arc in sorted(plan.arcs, key=lambda arc: order[Arc(arc).origin]):
        if arc not in by_window:
            keeps[arc] = _counted(graph, counted, rows, keeps, arc, plan, sample, spread)
    whole = {name: count + sample.skipped.get(name, 0) for name, count in rows.items()}
    with_drops = flows_by_value(graph, counted, rows, keeps, spread)
    without = flows_by_value(graph, counted, whole, None, spread)
    heads = {arc_head(arc) for arc in by_window}
    by_window_above = heads.union(*(graph.outputs_below(head) for head in heads))
    delivered, worth = {}, {}
    for output in graph.outputs:
        if output.name in by_window_above:
            continue
        (arc,) = graph.arcs_into(output.name)
        got_by_cell, full_by_cell = _as_counted(graph, output.name, with_drops[arc], without[arc], sample)
        delivered[output.name] = _at_most_all(got_by_cell.sum(), full_by_cell.sum())
        track, value = graph.tracks.below(output.name), output.qos.value
        if track is not None and value is not None and not plan.stale and not any(sample.stale.values()):
            weights = track.worth(value)
            full = float((weights * full_by_cell).sum())
            got = float((weights * got_by_cell).sum())
            worth[output.name] = _at_most_all(got, full) if full > 0 else delivered[output.name]
    return delivered, worth


def _carried(
    graph: Graph, profile: Profile, entering: Mapping[str, Sequence[float]], passes: Mapping[str, Vector]
) -> Profile:
    """A profile for the values of one batch, which pass every filter cell by cell as values do by the profile."""
    if not entering:
        return profile
    known = Spread(graph, profile)
    values, selectivity = dict(profile.values), dict(profile.selectivity)
    for track in graph.tracks.all:
        at: dict[str, Vector] = {}
        for operator in graph.operators:
            name = operator.name
            if name not in track.columns:
                continue
            place, before = f"{name}.{track.columns[name]}", [at[tail] for tail in operator.inputs if tail in at]
            if place in entering or not before:
                at[name] = np.asarray(entering.get(place, known.of(name, track)))
            else:
                came: Vector = np.mean(before, axis=0)
                through = passes.get(name)
                if through is None and known.track(name) is track:
                    through = known.passes(name)
                at[name] = came if through is None else came * through
                if through is not None and isinstance(operator, Where | Join | Apply):
                    selectivity[name] = float(at[name].sum())
                at[name] = at[name] / max(float(at[name].sum()), 1e-12)
            values[place] = tuple(map(float, at[name]))
    return replace(profile, values=values, selectivity=selectivity)


def _as_counted(graph: Graph, output: str, got: Vector, full: Vector, sample: BatchSample) -> tuple[Vector, Vector]:
    """By cell what came to an output and what would have come, scaled to the rows that were counted there.

    Of cells that were closed nobody has counted anything: what would have come of those is as filters passed them
    before.
    """
    seen, expected = sample.outputs.get(output), float(got.sum())
    if seen is None or expected <= 0 or results_above(graph, output)[0] or waits_above(graph, output):
        return got, full
    if seen.rows == 0 and float(full[got <= 0].sum()) < _LEAST_MISSED_ROWS:
        return got, full  # nothing came, and nothing is known to be missing: the drop did what it did to other rows
    scale = seen.rows / expected
    if scale < 1.0 and np.any((got <= 0) & (full > 0)) and contradicts(seen.rows, expected):
        return scale * got, full  # other values pass than before, and what passes now may well be what was dropped
    return scale * got, np.where(got > 0, scale * full, full)


def _at_most_all(got: float, full: float) -> float:
    return min(1.0, float(got) / float(full)) if full > 0 else 1.0


def _spreads(graph: Graph, plan: Plan, sample: BatchSample) -> dict[str, tuple[float, ...]]:
    """How the tuples of this batch were spread before drops, by "operator.column", where that was sampled."""
    found = {}
    for track in graph.tracks.all:
        for name, column in track.columns.items():
            if isinstance(graph.by_name[name], Source):
                seen = sample.before.get(name)
                if seen is None and not isinstance(plan.drops.get(name), Semantic):
                    seen = sample.values.get(f"{name}.{column}")  # a drop by chance changes no shares
                spread = counted_spread(track, seen)
                if spread is not None:
                    found[f"{name}.{column}"] = tuple(map(float, spread))
    by_value = {arc for arc, drop in plan.drops.items() if drop.judges == "value"}
    for arc, seen in sample.before.items():
        tail = Arc(arc).tail
        at = graph.tracks.at(arc)
        above = {source.name for source in graph.sources_above(tail)} if tail is not None else set()
        spread = counted_spread(at[0], seen) if tail is not None and at is not None and not above & by_value else None
        if at is not None and spread is not None:
            found[f"{tail}.{at[1]}"] = tuple(map(float, spread))
    return found


def _counted(
    graph: Graph,
    profile: Profile,
    rows: dict[str, float],
    above: dict[str, PassShare],
    arc: str,
    plan: Plan,
    sample: BatchSample,
    spread: Spread,
) -> PassShare:
    """What passed the drop on an arc, by cell where it judged by value."""
    drop = plan.drops.get(arc)
    planned = () if drop is None else pass_shares({arc: drop})[arc]
    came, kept = sample.arcs.get(arc, (0, 0))
    if came == 0:
        return planned or 1.0
    share = kept / came
    if not isinstance(drop, Semantic):
        return share
    assert isinstance(planned, tuple)
    # spread as the flows below have it, which hold the sample: so the counted share comes out of them again
    arriving = flows_by_value(graph, profile, rows, above, spread)[arc]
    if len(arriving) != len(planned) or arriving.sum() <= 0:
        return share
    expected = float((arriving * np.asarray(planned)).sum() / arriving.sum())
    if expected <= 0:
        return share
    return tuple(each * share / expected for each in planned)  # the sample is rough, the count is not
