"""`jettison simulate`: a specification on a virtual clock, at the costs of its profile. No Spark."""

from __future__ import annotations

import json as json_
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.table import Table

from jettison.app.arguments import Headroom, Shedder, SpecPath, check_seconds, given_rates, make_folder
from jettison.app.nodes.simulate import check_mode, several_picture, show_several, simulate_several
from jettison.app.screen import closed, number, out, paragraph, percent, plain_table
from jettison.app.situation import load_spec, needed_profile, read_settings
from jettison.control.loop import Settings
from jettison.errors import NetworkError
from jettison.network.graph import Graph
from jettison.sim import SimResult
from jettison.sim import simulate as run_simulation
from jettison.sim.nodes import MODES
from jettison.sim.nodes.engine import NodesSettings
from jettison.sim.picture import draw
from jettison.spec.network_file import Spec
from jettison.synthetic.rates import Constant, Rate, rate_from_dict

SourceRates = Annotated[
    list[str] | None,
    typer.Option(
        "--rate", metavar="SOURCE=N", help="Rows per second of a source, in place of the file's. May be repeated."
    ),
]

Scheduler = Annotated[
    Literal["batch", "round-robin"] | None,
    typer.Option(
        help="Micro-batches (batch, the default), as in Spark, or one operator after another, as in Aurora.",
        show_default=False,
    ),
]
Mode = Annotated[
    str | None,
    typer.Option(metavar="NAME", help=f"Of several nodes, who plans: {', '.join(MODES)}; per-tick unless it is given."),
]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the random numbers: the same seed gives the same result.")]
Folder = Annotated[
    Path | None,
    typer.Option("--out", metavar="DIR", help="Write a picture of what happens over time to this folder."),
]


def simulate(
    spec: SpecPath,
    rate: SourceRates = None,
    seconds: Annotated[
        float, typer.Option("--for", metavar="SECONDS", help="How many seconds of virtual time.")
    ] = 60.0,
    headroom: Headroom = None,
    scheduler: Scheduler = None,
    no_shedding: Annotated[bool, typer.Option("--no-shedding", help="Drop nothing.")] = False,
    shedder: Shedder = None,
    seed: Seed = 0,
    mode: Mode = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON, batch by batch.")] = False,
    folder: Folder = None,
) -> None:
    """Run the control loop on a virtual clock, and show what is delivered, and how late. Needs no Spark.

    Costs are those of the file's `profile` section. Rates are those of its generators, else those of the profile.

    \b
    jettison simulate examples/taxi.yaml --for 60
    jettison simulate examples/taxi.yaml --rate trips=500000 --shedder random --json
    jettison simulate examples/pipeline.yaml --mode neighbours
    """
    check_seconds("--for", seconds)
    read, graph = load_spec(spec)
    profile, known = needed_profile(spec, read, graph)
    rates = given_or_known_rates(spec, read, graph, known, rate or ())
    settings = read_settings(read, headroom, shedding=not no_shedding, shedder=shedder)
    if folder is not None:
        make_folder(folder)
    if graph.placement is not None:
        several = _nodes_settings(settings, scheduler, mode)
        found = simulate_several(graph, profile, rates, seconds=seconds, settings=several, seed=seed)
        show_several(found, json=json)
        if folder is not None:
            typer.echo(f"wrote {several_picture(found[0], folder)}", err=json)
        return
    if mode is not None:
        raise typer.BadParameter(f"--mode is {mode!r}: {spec} has no `nodes`, so there is nothing to agree on.")
    result = run_simulation(
        graph,
        profile,
        rates,
        trigger_ms=settings.trigger_ms,
        headroom=settings.headroom,
        seconds=seconds,
        shedding=settings.shedding,
        seed=seed,
        scheduler=scheduler or "batch",
        shedder=settings.shedder,
    )
    if json:
        typer.echo(json_.dumps(result.to_dict()))
    else:
        _show(result, graph, rates)
    if folder is not None:
        typer.echo(f"wrote {_picture(result, folder)}", err=json)


def _nodes_settings(settings: Settings, scheduler: str | None, mode: str | None) -> NodesSettings:
    """How several nodes run. They run in micro-batches, all of them."""
    if scheduler not in (None, "batch"):
        raise typer.BadParameter(f"--scheduler is {scheduler!r}: several nodes run in micro-batches (batch) alone.")
    if mode is not None:
        check_mode(mode)
    return NodesSettings(
        settings.trigger_ms,
        settings.headroom,
        mode or "per-tick",
        shedding=settings.shedding,
        shedder=settings.shedder,
    )


def given_or_known_rates(
    path: Path, spec: Spec, graph: Graph, known: Mapping[str, float], given: Iterable[str]
) -> dict[str, Rate]:
    """What is given on the command line, else the rate of the file's generator, else the profile's."""
    constant = given_rates("--rate", given, graph)
    rates: dict[str, Rate] = {}
    for source in graph.sources:
        name = source.name
        generated = _generated(spec, name)
        if name in constant:
            rates[name] = Constant(constant[name])
        elif generated is not None:
            rates[name] = generated
        elif name in known:
            rates[name] = Constant(known[name])
        else:
            raise NetworkError(
                f"source {name!r} has no rate: add profile.rows_per_s.{name} to {path}, or --rate {name}=1000."
            )
    return rates


def _generated(spec: Spec, source: str) -> Rate | None:
    """The rate profile of a source that is generated; None where the file has none."""
    content: Any = (spec.run.sources if spec.run else {}).get(source, {}).get("generator")
    rate = content.get("rate") if isinstance(content, Mapping) else None
    try:
        return None if rate is None else rate_from_dict(rate)
    except NetworkError as error:
        raise NetworkError(f"run.sources.{source}.generator.rate: {error}") from error


def _show(result: SimResult, graph: Graph, rates: Mapping[str, Rate]) -> None:
    arriving = ", ".join(f"{name} {_rate(rate)}" for name, rate in rates.items())
    paragraph(f"simulation of network {result.network}, {result.seconds:g} s: {arriving}")
    out.print(_table(result))
    rows, shed, queued = sum(result.arrived.values()), sum(result.shed.values()), sum(result.queued.values())
    load = max((batch.load for batch in result.batches), default=0.0)
    whole = sum(output.qos.priority for output in graph.outputs)
    paragraph(
        f"{len(result.batches)} batches, {rows:,} rows in, {shed:,.0f} shed on arcs, {queued:,.0f} still waiting; "
        f"load up to {percent(load)}; utility {result.utility:.3f} of {whole:g} "
        f"(the sum of priority x utility)"
    )
    never = [name for name, output in result.outputs.items() if not output.rows and output.lost_rows]
    plans = [batch.plan for batch in result.batches if any(batch.plan.delivered.get(name) == 0 for name in never)]
    if plans:
        paragraph("\n".join(closed(plans[-1], plans[-1].reason)))
    if result.infeasible:
        paragraph(f"cannot keep up: {result.infeasible}")
    paragraph("Simulated at the costs of the file's profile: nothing was run or measured.")


def _rate(rate: Rate) -> str:
    """A rate in words.

    >>> from jettison.synthetic.rates import Step
    >>> _rate(Constant(20_000)), _rate(Step(10, 2500, at_s=30))
    ('20,000 rows/s', 'step (before_rows_per_s 10, after_rows_per_s 2,500, at_s 30)')
    """
    if isinstance(rate, Constant):
        return f"{rate.rows_per_s:,.0f} rows/s"
    content = rate.to_dict()
    numbers = [f"{name} {number(value)}" for name, value in content.items() if isinstance(value, int | float)]
    return f"{content['kind']} ({', '.join(numbers)})" if numbers else str(content["kind"])


def _table(result: SimResult) -> Table:
    table = plain_table("latency from a row's arrival to its delivery")
    table.add_column("output", overflow="fold")
    for heading in ("rows", "delivered", "utility", "p50", "p95", "p99", "max"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, output in result.outputs.items():
        late = [output.latency_ms.get(each) for each in ("p50", "p95", "p99", "max")]
        shown = ["-" if each is None else f"{each / 1000:.2f} s" for each in late]
        table.add_row(name, f"{output.rows:,.0f}", percent(output.delivered_share), f"{output.utility:.3f}", *shown)
    return table


def _picture(result: SimResult, folder: Path) -> Path:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5.5), layout="constrained")
    draw(figure, result)
    path = folder / "simulation.png"
    figure.savefig(path, dpi=110)
    return path
