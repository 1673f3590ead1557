"""What operators cost, learned while running: a calibrated profile, scaled segment by segment to fit batch times.

A batch takes  fixed + read cost x rows + sum of the work of its segments.  Calibration gives the shape (which operator
is dearer than which); recursive least squares fits one factor for the fixed part, one for reading and one per
segment, because no more than whole segments can be told apart in batch times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from jettison.network.graph import Graph
from jettison.network.operators import Apply, Join, Source, Where
from jettison.network.windows.slice_groups import results_above
from jettison.statistics.estimators import Smoothed
from jettison.statistics.least_squares import LeastSquares
from jettison.statistics.load import flows
from jettison.statistics.profile import Profile
from jettison.statistics.samples import BatchSample
from jettison.statistics.spread import flows_by_value
from jettison.statistics.values import Keep, ValueModel, Vector

_LEAST_NOISE_MS = 20.0
_NOISE_SHARE = 0.1
_MOST_NOISES = 3.0
"""A batch that a garbage collection or a neighbour made slow must not turn the estimate over; none is fast by luck."""
_COLD_NOISE_SHARE = 0.5
"""The first batches of a run, and the first with drops of a new kind, are compiled while they run: they tell little of
what the next will take."""
_UNCERTAINTY = 0.5
_GUESS_UNCERTAINTY = 2.0
"""Of a batch's fixed part (planning by Spark, files, jobs) calibration sees little: then it is the first to doubt."""
_SELECTIVITY_WEIGHT = 0.3
_LEAST_ROW_SHARE = 0.2
_LEAST_ROWS = 20.0


class CostModel:
    """A profile that follows what is measured."""

    def __init__(self, graph: Graph, start: Profile, *, guessed: bool = False) -> None:
        """`guessed`: the fixed part is no more than a guess."""
        self._graph = graph
        self._ends = graph.segment_ends
        self._segments = sorted(set(self._ends.values()))
        self._uncertain = [_GUESS_UNCERTAINTY if guessed else _UNCERTAINTY, *[_UNCERTAINTY] * (1 + len(self._segments))]
        self._begin(start)
        self._selectivity = {name: Smoothed(_SELECTIVITY_WEIGHT, value) for name, value in start.selectivity.items()}
        self._values = ValueModel(graph, start)
        self._batches: Counter[frozenset[bool]] = Counter()  # by the kinds of their drops: by value, by chance, none
        self.profile = replace(start, values=self._values.get())

    def _begin(self, start: Profile) -> None:
        """Fit factors to these costs from now on."""
        self._start = start
        self._fit = LeastSquares([1.0] * len(self._uncertain), uncertainty=self._uncertain)
        self._steps = [
            (self._graph.arcs_into(each.name), self._segments.index(self._ends[each.name]), start.cost(each.name))
            for each in self._graph.operators
        ]

    def lower(self, rows: Mapping[str, float], keeps: Mapping[str, Keep], measured_ms: float) -> None:
        """Bring costs that are far too high down to what one batch took.

        The fixed part is a guess from the shape of the network, reading and work were measured: those come down first,
        to a fifth of the batch at the least, then the fixed part too.
        """
        fixed_ms, *others = (f * part for f, part in zip(self._fit.get(), self._parts_ms(rows, keeps), strict=True))
        rest_ms = sum(others)
        rest = min(1.0, max(measured_ms - fixed_ms, _LEAST_ROW_SHARE * measured_ms) / rest_ms) if rest_ms > 0 else 1.0
        fixed = min(1.0, max(0.0, measured_ms - rest * rest_ms) / fixed_ms) if fixed_ms > 0 else 1.0
        now = self.profile
        self._begin(
            replace(
                now,
                fixed_ms=fixed * now.fixed_ms,
                read_us={name: rest * cost for name, cost in now.read_us.items()},
                look_us={name: rest * cost for name, cost in now.look_us.items()},
                cost_us={name: rest * cost for name, cost in now.cost_us.items()},
            )
        )
        self._refresh()

    def predict_ms(self, rows: Mapping[str, float], keeps: Mapping[str, Keep]) -> float:
        """How long a batch with these rows and drops takes."""
        return sum(factor * part for factor, part in zip(self._fit.get(), self._parts_ms(rows, keeps), strict=True))

    def update_time(self, rows: Mapping[str, float], keeps: Mapping[str, Keep], duration_ms: float) -> None:
        """Learn from one batch's time."""
        kinds = frozenset(_by_value(keep) for keep in keeps.values())
        self._batches[kinds] += 1
        share = _NOISE_SHARE + (_COLD_NOISE_SHARE - _NOISE_SHARE) / self._batches[kinds]
        parts = self._parts_ms(rows, keeps)
        expected_ms = sum(factor * part for factor, part in zip(self._fit.get(), parts, strict=True))
        noise_ms = max(_LEAST_NOISE_MS, share * duration_ms)
        likely_ms = min(duration_ms, expected_ms + _MOST_NOISES * noise_ms)
        self._fit.update(parts, likely_ms, noise_ms)
        self._refresh()

    def update_rows(self, rows: Mapping[str, float], keeps: Mapping[str, Keep], delivered: Mapping[str, int]) -> None:
        """Learn selectivities from the rows that outputs received.

        What an output got more or less than predicted is put down to the last filter before it.
        """
        on = self._flows(rows, keeps)
        blamed: set[str] = set()
        for output, count in delivered.items():
            expected = on[self._graph.arcs_into(output)[0]]
            filter_ = self._filter_before(output)
            if filter_ is None or filter_ in blamed or count <= 0 or max(count, expected) < _LEAST_ROWS:
                continue
            blamed.add(filter_)
            passed = max(self.profile.passes(filter_), 1e-9)
            estimate = self._selectivity.setdefault(filter_, Smoothed(_SELECTIVITY_WEIGHT, passed))
            estimate.update(passed * count / max(expected, 0.5))
        if blamed:
            self._refresh()

    def update_values(self, sample: BatchSample, keeps: Mapping[str, Keep]) -> None:
        """Learn how values are spread, where outputs are valued."""
        if self._graph.tracks.all:
            rows = {name: float(count) for name, count in sample.rows_in.items()}
            delivered = {name: seen.rows for name, seen in sample.outputs.items()}
            shares = self._values.update(
                self.profile, rows, keeps, sample.arcs, sample.values, sample.before, delivered
            )
            self._selectivity |= {name: Smoothed(_SELECTIVITY_WEIGHT, share) for name, share in shares.items()}
            self._refresh()

    @property
    def passes_by_value(self) -> Mapping[str, Vector]:
        """What filters pass of every cell of values."""
        return self._values.passes

    def expected_rows(self, rows: Mapping[str, float], keeps: Mapping[str, Keep]) -> dict[str, float]:
        """The rows that outputs should get, where drops judge by value; nothing where none does."""
        if not any(_by_value(keep) for keep in keeps.values()):
            return {}
        on = self._flows(rows, keeps)
        return {output.name: on[self._graph.arcs_into(output.name)[0]] for output in self._graph.outputs}

    def knows_values(self, arc: str) -> bool:
        """Whether anything is known of the values that a drop on an arc judges by."""
        return self._values.knows(arc)

    def _flows(self, rows: Mapping[str, float], keeps: Mapping[str, Keep]) -> dict[str, float]:
        shares = {arc: keep for arc, keep in keeps.items() if isinstance(keep, float | int)}
        if len(shares) == len(keeps):
            return flows(self._graph, self.profile, rows, shares)
        return {arc: float(on.sum()) for arc, on in flows_by_value(self._graph, self.profile, rows, keeps).items()}

    def _filter_before(self, output: str) -> str | None:
        """The nearest operator upstream that may pass fewer or more rows than it gets; None behind a union."""
        if results_above(self._graph, output)[0]:
            return None  # windows come in some batches and not in others: one batch tells nothing
        operator = self._graph.by_name[output]
        while operator.inputs:
            if len(operator.inputs) > 1:
                return None
            operator = self._graph.by_name[operator.inputs[0]]
            if isinstance(operator, Where | Join | Apply):
                return operator.name
        return operator.name if isinstance(operator, Source) and operator.payload is not None else None

    def _parts_ms(self, rows: Mapping[str, float], keeps: Mapping[str, Keep]) -> list[float]:
        """The predicted parts of a batch's time as calibrated: fixed, reading, then each segment."""
        on = self._flows(rows, keeps)
        work = [0.0] * len(self._segments)
        for arcs, segment, cost_us in self._steps:
            work[segment] += cost_us * sum([on[arc] for arc in arcs]) / 1000
        for source, look_us in self._start.look_us.items():
            # to judge by value is a part of parsing: one value of every row, before the drop
            if _by_value(keeps.get(source, 1.0)):
                work[self._segments.index(self._ends[source])] += look_us * rows.get(source, 0.0) / 1000
        reading = sum(self._start.read_us.get(source, 0.0) * count for source, count in rows.items()) / 1000
        return [self._start.fixed_ms, reading, *work]

    def _refresh(self) -> None:
        fixed, reading, *segments = self._fit.get()
        factor = dict(zip(self._segments, segments, strict=True))
        self.profile = replace(
            self._start,
            fixed_ms=self._start.fixed_ms * fixed,
            read_us={source: cost * reading for source, cost in self._start.read_us.items()},
            look_us={source: cost * factor[self._ends[source]] for source, cost in self._start.look_us.items()},
            cost_us={name: cost * factor[self._ends[name]] for name, cost in self._start.cost_us.items()},
            selectivity={name: value.get() or 0.0 for name, value in self._selectivity.items()},
            values=self._values.get(),
        )


def _by_value(keep: Keep) -> bool:
    return not isinstance(keep, float | int)
