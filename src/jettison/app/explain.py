"""`jettison check` and `jettison explain`: the network as a picture, bare or with what each part costs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from jettison.app.arguments import Headroom, Rates, SpecPath
from jettison.app.cost_model import cost_tables
from jettison.app.nodes.explain import explain_nodes
from jettison.app.screen import closed, depth_first, kept, number, out, paragraph, percent, plain_table, predicates
from jettison.app.situation import (
    Situation,
    find_modules_here,
    load_spec,
    placed_situation,
    read_settings,
    situation,
)
from jettison.network.render import as_mermaid, as_text
from jettison.network.soundness import check_imports, check_sql, unknown_function_notes
from jettison.plan.floors import floors, plan_accuracies
from jettison.plan.plan import Infeasible
from jettison.plan.reasons import with_below_minimum
from jettison.plan.shedders.choice import choose
from jettison.plan.shedders.qod import Qod
from jettison.plan.shedders.registry import AUTO, QOD, SHEDDERS
from jettison.spec.profile_section import read_profile
from jettison.spec.run_section import read_places
from jettison.statistics.load import flows, load_coefficients


def check(spec: SpecPath) -> None:
    """Check a file (columns, types, SQL, functions, profile, places), and show its network. Needs no Spark.

    Types inside SQL expressions are checked by Spark, when a run starts.

    \b
    jettison check examples/taxi.yaml
    """
    read, graph = load_spec(spec)
    check_sql(graph)
    find_modules_here()
    check_imports(graph)
    if read.profile is not None:
        read_profile(str(spec), graph, read.profile)
    if read.run is not None:
        read_places(read, graph)
        read_settings(read, None)
    paragraph(as_text(graph))
    between = len(graph.operators) - len(graph.sources) - len(graph.outputs)
    counts = ((len(graph.sources), "source"), (between, "operator"), (len(graph.outputs), "output"))
    for note in unknown_function_notes(graph):
        paragraph(f"note: {note}")
    typer.echo("ok: " + ", ".join(f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts))


def explain(
    spec: SpecPath,
    rows_per_s: Rates = None,
    headroom: Headroom = None,
    mermaid: Annotated[
        bool, typer.Option("--mermaid", help="Print a Mermaid flow chart, for use in a document.")
    ] = False,
) -> None:
    """Show the network with its costs, its load, and the drops that these rates need. Needs no Spark.

    Of a file with `nodes` it shows operators node by node.

    \b
    jettison explain examples/taxi.yaml
    jettison explain examples/taxi.yaml --rows-per-s trips=100000 --mermaid
    """
    several = placed_situation(spec, rows_per_s or (), headroom)
    if several is not None:
        explain_nodes(several, mermaid=mermaid)
        return
    now = situation(spec, rows_per_s or (), headroom)
    if mermaid:
        arc_notes = {arc: f"keep {share}" for arc, share in kept(now.plan).items()}
        typer.echo(f"%% {now.verdict()}")
        typer.echo(as_mermaid(now.graph, _notes(now), arc_notes))
        return
    paragraph(f"network {now.graph.name}")
    out.print(_table(now))
    paragraph(now.verdict())
    paragraph("\n".join([*closed(now.plan, now.reason), *predicates(now.plan), *_floors(now)]))
    read, _ = load_spec(spec)
    for line in [] if read.run is None else _planned_by(now, read.run.shedding.shedder):
        paragraph(line)
    if read.run is not None and read.run.checkpoint.path is not None:
        for costs in cost_tables(Path(read.run.checkpoint.path)):
            out.print(costs)
    if now.steps:
        paragraph("\n".join(["refinements of the plan, in a run:", *(f"  {step}" for step in now.steps)]))


def _planned_by(now: Situation, shedder: str) -> list[str]:
    """Which shedder "auto" takes; and what "qod" would give to each output, or pause."""
    lines = []
    if shedder == AUTO:
        choice = choose(now.graph, SHEDDERS)
        lines, shedder = [str(choice)], choice.name
    if shedder == QOD:
        found = Qod().plan(now.problem)
        plan = found.best if isinstance(found, Infeasible) else found
        got = plan_accuracies(now.graph, now.problem.rows, plan)
        shares = ", ".join(f"{name} {percent(share)}" for name, share in got.items())
        lines.append(f"qod would process: {shares} of source rows ({with_below_minimum(plan.reason, plan)})")
        lines += [found.reason] if isinstance(found, Infeasible) else []
    return lines


def _floors(now: Situation) -> list[str]:
    """What outputs with a floor get, in words."""
    got = plan_accuracies(now.graph, now.problem.rows, now.plan)
    return [
        f"output {name}: min_accuracy {floor:g}, {percent(got[name])} of its source rows are processed"
        for name, floor in floors(now.graph).items()
    ]


def _notes(now: Situation) -> dict[str, str]:
    """Cost, selectivity and load coefficient of every operator."""
    profile = now.problem.profile
    loads = load_coefficients(now.graph, profile)
    notes = {}
    for operator in now.graph.operators:
        cost, passes = number(profile.cost(operator.name)), percent(profile.passes(operator.name))
        load = number(loads[now.graph.arcs_into(operator.name)[0]])
        notes[operator.name] = f"cost {cost} us, passes {passes}, load {load} us"
    return notes


def _table(now: Situation) -> Table:
    profile = now.problem.profile
    loads = load_coefficients(now.graph, profile)
    rates = flows(now.graph, profile, now.rows_per_s)
    shares = kept(now.plan)
    table = plain_table(
        caption="cost: work per row here; passes: rows out per row in; load: work per row from here to the outputs; "
        "drop: what the needed plan keeps of the rows that come here"
    )
    table.add_column("operator", overflow="fold")
    for heading in ("cost\nus/row", "passes", "load\nus/row", "rows/s", "of\ncapacity", "drop\nkeeps"):
        table.add_column(heading, justify="right", no_wrap=True)
    for depth, name, arc, is_first in depth_first(now.graph):
        indented = f"{'  ' * depth}{name}"
        arriving = [f"{rates[arc]:,.0f}", percent(rates[arc] * profile.cost(name) / 1e6), shares.get(arc, "")]
        if is_first:
            here = (number(profile.cost(name)), percent(profile.passes(name)), number(loads[arc]))
            table.add_row(indented, *here, *arriving)
        else:
            table.add_row(f"{indented} (see above)", "", "", number(loads[arc]), *arriving)
    fixed = profile.fixed_ms / 1000 / now.trigger_s
    table.add_section()
    table.add_row("fixed, per batch", "", "", "", "", percent(fixed), "")
    table.add_row("all", "", "", "", "", percent(now.load()), "")
    return table
