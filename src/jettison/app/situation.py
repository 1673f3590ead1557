"""A specification at given rates: its load, its road map, and the plan that it needs. No Spark."""

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from os.path import exists, isdir
from pathlib import Path

import typer

from jettison.app.arguments import given_rates, wrong_argument
from jettison.app.nodes.plan import NodesSituation, nodes_situation
from jettison.app.screen import percent
from jettison.control.deciding import Certified, certified_plan
from jettison.control.judging import Estimates
from jettison.control.loop import Settings
from jettison.control.plan_request import PlanRequest
from jettison.detect import Detector
from jettison.errors import NetworkError
from jettison.network.event_time.watermarks import BatchMarks, Mark
from jettison.network.graph import Graph
from jettison.options.trigger import Trigger
from jettison.plan.plan import Infeasible, Plan
from jettison.plan.problem import Problem
from jettison.plan.refine.context import Context
from jettison.plan.refine.refinements import OBEYING, Step, refine
from jettison.plan.shedders.asked import AskedShedder
from jettison.plan.shedders.road_map import RoadMap, RoadMapShedder, build_road_map
from jettison.plan.windows.group_gaps import named_groups
from jettison.spec.network_file import Spec, read_spec
from jettison.spec.profile_section import read_profile
from jettison.spec.run_options import RunSpec
from jettison.spec.xml.reader import is_query_folder
from jettison.statistics.profile import Profile


@dataclass(frozen=True)
class Situation:
    """One batch's worth of the given rates as a problem, and the answer to it."""

    problem: Problem
    rows_per_s: Mapping[str, float]
    trigger_s: float
    headroom: float
    road_map: RoadMap
    answer: Plan | Infeasible
    steps: tuple[Step, ...] = ()
    """What refinements would make of the answer in a run, in a batch in the middle of a stream."""
    reason: str = ""
    """Why that plan drops rows."""

    @property
    def graph(self) -> Graph:
        return self.problem.graph

    @property
    def plan(self) -> Plan:
        """The plan that is needed, or the one that comes nearest."""
        return self.answer.best if isinstance(self.answer, Infeasible) else self.answer

    @property
    def needed_row(self) -> int | None:
        """The first row of the road map that saves enough for these rates; None when no row suffices."""
        return None if isinstance(self.answer, Infeasible) else math.ceil(self.answer.row)

    def load(self, saved_us: float = 0.0) -> float:
        """Work per second over capacity, 1 being all of it."""
        return (self.problem.load_us - saved_us) / (1e6 * self.trigger_s)

    def verdict(self) -> str:
        """What these rates need, in words."""
        load = f"The load is {percent(self.load())} of capacity, the headroom {percent(self.headroom)}:"
        if isinstance(self.answer, Infeasible):
            return f"{load} no row suffices, {self.answer.reason}"
        if self.answer.row == 0:
            return f"{load} row 0 suffices, nothing is shed."
        left = percent(self.load(self.answer.saves_us))
        return f"{load} row {self.answer.row:.1f} of {len(self.road_map) - 1} is needed, which leaves {left}."


def find_modules_here() -> None:
    """Let functions that a file names be found in the folder where jettison was started, as Spark's workers do."""
    here = str(Path.cwd())
    if not {here, ""} & set(sys.path):
        sys.path.append(here)


def load_spec(path: Path) -> tuple[Spec, Graph]:
    """A specification file and its network, checked."""
    if (isdir(path) and not is_query_folder(path)) or not exists(path):
        what = "a folder without query files, or with others beside them" if isdir(path) else "no file that is there"
        raise typer.BadParameter(
            f"SPEC is {str(path)!r}, {what}. Give a network in YAML or XML, or a folder that has only query files "
            f"(.xml)."
        )
    spec = read_spec(path)
    return spec, spec.graph()


def needed_profile(path: Path, spec: Spec, graph: Graph) -> tuple[Profile, Mapping[str, float]]:
    """The costs and the rates of a file's `profile` section, which must be there."""
    if spec.profile is None or not spec.profile.cost_us:
        raise NetworkError(
            f"{path} has no profile.cost_us to plan with: add `profile: {{cost_us: {{operator: microseconds}}, "
            f"selectivity: {{...}}, rows_per_s: {{...}}}}`; a run with a checkpoint measures them (profile.json)."
        )
    return read_profile(str(path), graph, spec.profile), spec.profile.rows_per_s


def read_settings(spec: Spec, headroom: float | None, *, shedding: bool = True, shedder: str | None = None) -> Settings:
    """Trigger, headroom and shedder of the `run` section; those that are given take the place of its own."""
    run = spec.run or RunSpec()
    trigger_ms = Trigger.of(run.trigger).interval_ms
    share = run.shedding.headroom if headroom is None else headroom
    with wrong_argument():  # what the file says is checked when it is read
        return Settings(trigger_ms, share, shedding, shedder=shedder or run.shedding.planner())


def placed_situation(path: Path, given: Iterable[str], headroom: float | None) -> NodesSituation | None:
    """A file with `nodes` at the rates of its profile, or those in `given`; None where it has none."""
    spec, graph = load_spec(path)
    if graph.placement is None:
        return None
    profile, known = needed_profile(path, spec, graph)
    rates = {**known, **given_rates("--rows-per-s", given, graph)}
    return nodes_situation(graph, profile, rates, read_settings(spec, headroom))


def situation(path: Path, given: Iterable[str], headroom: float | None) -> Situation:
    """A file at the rates of its profile, those in `given` ("source=rows") put in their place."""
    spec, graph = load_spec(path)
    profile, known = needed_profile(path, spec, graph)
    rates = {**known, **given_rates("--rows-per-s", given, graph)}
    for source in graph.sources:
        if source.name not in rates:
            raise NetworkError(
                f"source {source.name!r} has no rate: add profile.rows_per_s.{source.name} to {path}, "
                f"or --rows-per-s {source.name}=1000."
            )
    settings = read_settings(spec, headroom)
    trigger_s = settings.trigger_ms / 1000
    problem = Problem(graph, profile, {name: rate * trigger_s for name, rate in rates.items()}, settings.budget_us)
    road_map = build_road_map(graph, profile, problem.rows)
    answer = RoadMapShedder(road_map).plan(problem)
    found = _in_a_run(settings, problem, rates, road_map)
    return Situation(problem, rates, trigger_s, settings.headroom, road_map, answer, found.steps, found.plan.reason)


def _in_a_run(settings: Settings, problem: Problem, rates: Mapping[str, float], road_map: RoadMap) -> Certified:
    """The plan as it would be logged, and what refinements change on its way there."""
    graph, rows = problem.graph, {name: round(count) for name, count in problem.rows.items()}
    marks = BatchMarks(graph, {each.name: Mark(0, 0) for each in graph.aggregates}) if graph.aggregates else None
    known = Estimates(graph, settings, problem.profile, rates)
    context = Context(known.problem(rows), rows, marks=marks, named=named_groups(graph), by_value=True)
    found = certified_plan(PlanRequest(known, Detector(), AskedShedder(RoadMapShedder(road_map)), context))
    return replace(found, steps=(*found.steps, *refine(found.plan, context, OBEYING)[1]))
