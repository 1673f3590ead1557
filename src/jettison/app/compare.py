"""`jettison compare`: every shedder that fits a file, on Spark or on a virtual clock."""

from __future__ import annotations

import json as json_
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jettison.app.arguments import Headroom, SpecPath, check_seconds, make_folder, wrong_argument
from jettison.app.logs import Quiet, Verbose, show_log
from jettison.app.run import spark_session
from jettison.app.screen import err, out, paragraph
from jettison.app.simulate import SourceRates, given_or_known_rates
from jettison.app.situation import find_modules_here, load_spec, needed_profile, read_settings
from jettison.errors import StartError
from jettison.experiments.harness import Result, save
from jettison.experiments.policies.measured import Measured
from jettison.experiments.policies.shown import compared, draw
from jettison.experiments.policies.simulated import compare_simulated
from jettison.network.graph import Graph
from jettison.plan.shedders.choice import Choice, choose
from jettison.plan.shedders.registry import SHEDDERS, check_shedder, fitting_shedders
from jettison.spec.network_file import Spec

if TYPE_CHECKING:
    from jettison.experiments.policies.on_spark import Workload


def compare(
    spec: SpecPath,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="On a virtual clock, at the costs of the file's profile. Needs no Spark.")
    ] = False,
    seconds: Annotated[
        float | None,
        typer.Option("--for", metavar="SECONDS", help="How long each shedder runs: 20 s on Spark, 60 s simulated."),
    ] = None,
    shedder: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A shedder to compare, in place of all that fit. May be repeated."),
    ] = None,
    rate: SourceRates = None,
    headroom: Headroom = None,
    cores: Annotated[int | None, typer.Option(min=1, help="Cores for Spark. Without it, all cores.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
    folder: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="The folder for the CSV and the picture.")
    ] = Path("out/compare"),
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Run a file once with every shedder that fits it, and compare worth, fairness, age, and promises held.

    On Spark results go to a temporary folder, not to the file's sinks. The first run sheds nothing and measures costs.

    \b
    jettison compare examples/taxi.yaml --simulate
    jettison compare examples/taxi.yaml --for 30
    """
    show_log(verbose=verbose, quiet=quiet, live=True)
    check_seconds("--for", 1.0 if seconds is None else seconds)
    read, graph = load_spec(spec)
    names = _shedders(graph, shedder)
    make_folder(folder)
    choice = choose(graph, SHEDDERS)
    if simulate:
        found = _simulated(spec, read, graph, names, seconds or 60.0, rate, headroom)
    else:
        if rate:
            raise typer.BadParameter("--rate is for --simulate: on Spark rows come from the file's sources.")
        found = _on_spark(read, graph, names, seconds or 20.0, headroom, cores, quiet=quiet)
    result = Result(
        "compare", {}, {}, [each.row() for each in found], lambda figure: draw(figure, found, f"network {graph.name}")
    )
    _show(found, choice, json=json)
    for path in save(result, folder):
        typer.echo(f"wrote {path}", err=json)


def _shedders(graph: Graph, given: list[str] | None) -> tuple[str, ...]:
    for name in given or ():
        with wrong_argument():
            check_shedder(name)
    return tuple(given) if given else fitting_shedders(graph)


def _show(found: list[Measured], choice: Choice, *, json: bool) -> None:
    if json:
        rows = [each.row() for each in found]
        typer.echo(json_.dumps({"shedders": rows, "auto": choice.name, "why": choice.why}))
        return
    out.print(compared(found, choice.name))
    paragraph(str(choice))


def _simulated(
    path: Path,
    read: Spec,
    graph: Graph,
    names: tuple[str, ...],
    seconds: float,
    rate: list[str] | None,
    headroom: float | None,
) -> list[Measured]:
    if graph.placement is not None:
        raise StartError(f"{path} places its network on several nodes: compare shedders of one node, without `nodes`.")
    profile, known = needed_profile(path, read, graph)
    rates = given_or_known_rates(path, read, graph, known, rate or ())
    settings = read_settings(read, headroom)
    trigger_ms, share = settings.trigger_ms, settings.headroom
    return compare_simulated(graph, profile, rates, names, trigger_ms=trigger_ms, headroom=share, seconds=seconds)


def _on_spark(
    read: Spec,
    graph: Graph,
    names: tuple[str, ...],
    seconds: float,
    headroom: float | None,
    cores: int | None,
    *,
    quiet: bool,
) -> list[Measured]:
    from jettison.spec.run_section import read_places

    places = read_places(read, graph)
    find_modules_here()
    session = spark_session(graph, cores, kafka=places.use_kafka)
    from jettison.experiments.policies.on_spark import compare_on_spark

    def say(message: str) -> None:
        if not quiet:
            err.print(message)

    try:
        workload = _workload(read, session, seconds, headroom)
        return compare_on_spark(workload, names, say, places.costs if places.costs.profile is not None else None)
    finally:
        session.stop()


def _workload(read: Spec, session: Any, seconds: float, headroom: float | None) -> Workload:
    from jettison.experiments.policies.on_spark import Workload
    from jettison.spark.run.from_spec import streams_and_tables
    from jettison.spec.run_section import read_places

    graph = read.graph()
    places = read_places(read, graph)
    share = places.shedding.headroom if headroom is None else headroom
    _, tables = streams_and_tables(session, places)
    return Workload(
        graph, lambda: streams_and_tables(session, places)[0], places.trigger, seconds, share, tables, session
    )
