"""What a batch teaches: costs, selectivities, values, the sizes of groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jettison.control.named_sizes import before_drops
from jettison.network.graph import Graph
from jettison.plan.drops.kind import PassShare, pass_shares
from jettison.plan.plan import Plan
from jettison.plan.windows.decisions import decisions_of
from jettison.statistics.belief import Belief
from jettison.statistics.costs import CostModel
from jettison.statistics.groups import GroupSizes
from jettison.statistics.profile import Profile
from jettison.statistics.samples import BatchSample

_HUNG_TIMES = 5.0
"""A batch that takes so many times as long as predicted hung somewhere: that says nothing of costs, unless the next
one takes as long."""
_JUDGING_ROWS_SHARE = 0.5
"""A batch's time says something of costs per row where rows take at least this share of the predicted time: where they
take less, even rows that cost nothing bring a batch down by less than half."""


class Learned:
    """Costs as they are known, and whether batches have confirmed them."""

    def __init__(self, graph: Graph, profile: Profile, *, guessed: bool) -> None:
        self._graph = graph
        self.costs = CostModel(graph, profile, guessed=guessed)
        self.belief = Belief(believed=not guessed)
        self._hung = False

    def kept_shares(self, obeyed: Plan, sample: BatchSample) -> dict[str, PassShare]:
        """What passed every drop of the plan that was obeyed: as counted, cell by cell as planned."""
        keeps: dict[str, PassShare] = dict(pass_shares(obeyed.drops))
        for arc, (rows_in, rows_kept) in sample.arcs.items():
            planned = keeps.get(arc, 1.0)
            if rows_in == 0 or (arc not in keeps and arc not in obeyed.stale):
                continue
            if isinstance(planned, float):
                keeps[arc] = rows_kept / rows_in
            elif arc in obeyed.stale:
                fresh = min(1.0, rows_kept / rows_in / max(obeyed.keep(arc), 1e-9))
                keeps[arc] = tuple(share * fresh for share in planned)
        return keeps

    def groups(self, sizes: GroupSizes, obeyed: Plan, sample: BatchSample) -> None:
        """Learn how large groups are, as they would be without the drops."""
        sizes.update(before_drops(decisions_of(self._graph), obeyed, sample, sizes))

    def judge(self, sample: BatchSample, worked: Mapping[str, PassShare]) -> None:
        """Let a batch's time confirm costs that are on trial, or bring them down where they are far too high."""
        on_trial = not self.belief.believed
        if on_trial and self.belief.update(self.costs.predict_ms(sample.rows_in, worked), sample.duration_ms):
            self.costs.lower(sample.rows_in, worked, sample.duration_ms)

    def judge_seen(self, seen: Iterable[BatchSample]) -> None:
        """Judge by batches that ran before costs were known, of which nothing was shed: the one with the longest
        predicted time first, and none whose rows hardly count."""
        empty_ms = self.costs.predict_ms(dict.fromkeys((source.name for source in self._graph.sources), 0.0), {})
        predicted_ms = [(self.costs.predict_ms(sample.rows_in, {}), sample) for sample in seen]
        for ms, sample in sorted(predicted_ms, key=lambda each: -each[0]):
            if ms - empty_ms >= _JUDGING_ROWS_SHARE * ms:
                self.judge(sample, {})

    def record(
        self, sample: BatchSample, keeps: Mapping[str, PassShare], worked: Mapping[str, PassShare], *, learn: bool
    ) -> bool:
        """Learn from a batch that had rows; whether the time that it took says anything.

        `keeps` is what passed every drop, `worked` what was left of the work behind it.
        """
        self.judge(sample, worked)
        self.costs.update_values(sample, keeps)
        if not learn:
            return False
        delivered = {name: seen.rows for name, seen in sample.outputs.items()}
        self.costs.update_rows(sample.rows_in, keeps, delivered)
        hung = sample.duration_ms > _HUNG_TIMES * self.costs.predict_ms(sample.rows_in, worked)
        believed, self._hung = self._hung or not hung, hung
        if believed:
            self.costs.update_time(sample.rows_in, worked, sample.duration_ms)
        return believed
