"""What results say of themselves: `_kept`, the share of an output's tuples that a batch delivers, before it is written.

A drop by chance delivers the share that its plan says. What a drop by value delivers depends on the values of this very
batch, so they are looked at first: one more job for every such drop above an output with `quality=True`, which reads
the batch and, of a payload, the one field that the drop judges by.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyspark.sql import DataFrame, Observation

from jettison.network.arc import Arc, arc_head
from jettison.network.graph import Graph
from jettison.network.operators import Source
from jettison.network.windows.slice_groups import waits_above
from jettison.plan.delivered import counted_shares
from jettison.plan.plan import Plan
from jettison.spark.compile.compiler import Compiler, Scope
from jettison.spark.compile.drops import ALL, passes
from jettison.spark.compile.expression_cache import ExpressionCache
from jettison.spark.compile.observations import observed_if_at_all
from jettison.spark.compile.observed_places import arc_metrics
from jettison.spark.compile.raw_rows import dropped_raw
from jettison.spark.compile.value_samples import sample_mask, value_sample
from jettison.statistics.costs import CostModel
from jettison.statistics.samples import BatchSample, ValueSample


def with_counted_shares(
    graph: Graph,
    raw: Mapping[str, DataFrame],
    sample: BatchSample,
    tables: Mapping[str, DataFrame],
    known: ExpressionCache,
    plan: Plan,
    costs: CostModel,
) -> Plan:
    """The plan with the shares that it delivers of this batch, where results carry them and drops are by value.

    `sample` says which rows came and which were passed over unread.
    """
    wanted = {output.name for output in graph.outputs if output.quality}
    drops = [arc for arc, drop in plan.drops.items() if drop.judges == "value"]
    arcs = [arc for arc in drops if wanted & (graph.outputs_below(arc_head(arc)) | {arc_head(arc)})]
    if not arcs:
        return plan
    mask = sample_mask(sum(sample.rows_in.values()))
    compiler = Compiler(graph, raw, plan, tables, known, Scope(mask=mask))
    counts: dict[str, tuple[int, int]] = {}
    before: dict[str, ValueSample] = {}
    for arc in arcs:
        tail = Arc(arc).tail
        if tail is not None and waits_above(graph, tail):
            continue  # what waits in state is not in this batch
        if tail is not None:
            row = compiler.operator(tail).selectExpr(*arc_metrics(graph, arc, passes(arc, plan) or ALL, mask)).first()
            seen = {} if row is None else row.asDict()
            counts[arc] = (seen.get("rows", 0), seen.get("kept", 0))
        else:
            source = graph.by_name[arc]
            assert isinstance(source, Source)
            looked = Observation()
            frame = dropped_raw(source, raw[arc], raw[arc].columns, plan, known, before=looked, mask=mask)
            counts[arc] = (sample.rows_in[arc], frame.count())
            seen = observed_if_at_all(looked)
        found = value_sample(0, seen)
        before |= {} if found is None else {arc: found}
    looked_at = replace(sample, arcs=counts, before=before)
    delivered, _ = counted_shares(graph, costs.profile, plan, looked_at, costs.passes_by_value)
    shown = {name: share for name, share in delivered.items() if name in wanted}
    return replace(plan, delivered={**plan.delivered, **shown})
