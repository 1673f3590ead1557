"""Tasks of applications as columns: who feeds whom, which queries each task serves, priorities and minima (3.3.1).

A query is a task that feeds no other. Priority and minimum accuracy are declared for queries; every other task takes
the maximum of the queries that it serves, `p(t)` and `minAc(t)` of the seed (eq. 3.1, 3.2).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from jettison.errors import NetworkError

Vector = npt.NDArray[np.float64]
Index = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Task:
    """One task of an application: what feeds it, in how many instances it runs, and what a query asks for.

    `priority` (a rank: only its order counts, 1 where none is given) and `min_accuracy` (0 to 1, 0 where none is
    given) belong to queries: tasks that feed no other.

    >>> Task("TDSnk2", upstream=("TDSrc1", "TDSrc2"), priority=3, min_accuracy=0.6).instances
    1
    >>> Task("TDSnk2", min_accuracy=60)
    Traceback (most recent call last):
    jettison.errors.NetworkError: task 'TDSnk2': min_accuracy is 60: give a share of source tuples, from 0 to 1.
    """

    name: str
    upstream: tuple[str, ...] = ()
    instances: int = 1
    priority: float | None = None
    min_accuracy: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "upstream", tuple(self.upstream))
        if isinstance(self.instances, bool) or not isinstance(self.instances, int) or self.instances < 1:
            raise NetworkError(f"task {self.name!r}: instances is {self.instances!r}: give a whole number from 1 on.")
        if self.priority is not None and not (_number(self.priority) and self.priority > 0):
            raise NetworkError(f"task {self.name!r}: priority is {self.priority!r}: give a number above 0.")
        floor = self.min_accuracy
        if floor is not None and not (_number(floor) and 0 <= floor <= 1):
            raise NetworkError(
                f"task {self.name!r}: min_accuracy is {floor!r}: give a share of source tuples, from 0 to 1."
            )
        if len(set(self.upstream)) < len(self.upstream):
            raise NetworkError(f"task {self.name!r}: upstream names a task twice: {', '.join(self.upstream)}.")


@dataclass(frozen=True, eq=False)
class Wave:
    """Tasks whose upstream lies in earlier waves: their numbers, the edges into them, and where each one's begin."""

    tasks: Index
    edges: Index
    starts: Index


@dataclass(frozen=True, eq=False)
class TaskGraph:
    """All tasks of all applications, numbered; edges from `tails` to `heads`; `queries` are numbers of tasks.

    `pair_query[pair_starts[t] : pair_starts[t] + pair_counts[t]]` are the queries that task t serves, `queries(t)` of
    the seed, as positions in `queries`.
    """

    tasks: tuple[Task, ...]
    tails: Index
    heads: Index
    sources: Index
    queries: Index
    query_priority: Vector
    query_minimum: Vector
    pair_query: Index
    pair_starts: Index
    pair_counts: Index
    waves: tuple[Wave, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(task.name for task in self.tasks)

    @cached_property
    def number(self) -> dict[str, int]:
        """The number of each task, by name."""
        return {task.name: at for at, task in enumerate(self.tasks)}

    @cached_property
    def query_names(self) -> tuple[str, ...]:
        return tuple(self.tasks[at].name for at in self.queries.tolist())

    @cached_property
    def instance_counts(self) -> Index:
        return np.array([task.instances for task in self.tasks], dtype=np.intp)

    @cached_property
    def pair_task(self) -> Index:
        """The task of every pair (task, query that it serves)."""
        return np.repeat(np.arange(len(self.tasks)), self.pair_counts)

    @cached_property
    def priority(self) -> Vector:
        """`p(t)`: the highest priority of the queries that a task serves (eq. 3.1)."""
        return self.most(self.query_priority)

    @cached_property
    def min_accuracy(self) -> Vector:
        """`minAc(t)`: the largest minimum accuracy of the queries that a task serves (eq. 3.2)."""
        return self.most(self.query_minimum)

    @cached_property
    def edge_counts(self) -> Index:
        """How many tasks feed each task directly."""
        return np.bincount(self.heads, minlength=len(self.tasks)).astype(np.intp)

    def most(self, of_queries: Vector) -> Vector:
        """The maximum over the queries that each task serves: how everything travels upstream (eq. 3.1, 3.2, 3.6)."""
        found: Vector = np.maximum.reduceat(of_queries[self.pair_query], self.pair_starts)
        return found

    def edge_name(self, edge: int) -> tuple[str, str]:
        return self.tasks[self.tails[edge]].name, self.tasks[self.heads[edge]].name


def task_graph(tasks: Sequence[Task]) -> TaskGraph:
    """Number tasks and check them: every upstream exists, there are no cycles, only queries have restrictions.

    >>> graph = task_graph([
    ...     Task("parse"), Task("merge", ("parse",)),
    ...     Task("A", ("merge",), priority=1, min_accuracy=0.8), Task("B", ("merge",), priority=5, min_accuracy=0.4),
    ... ])
    >>> graph.priority.tolist(), graph.min_accuracy.tolist()
    ([5.0, 5.0, 1.0, 5.0], [0.8, 0.8, 0.8, 0.4])
    """
    if not tasks:
        raise NetworkError("there are no tasks: give at least one Task(name).")
    number = {task.name: at for at, task in enumerate(tasks)}
    if len(number) < len(tasks):
        twice = next(task.name for at, task in enumerate(tasks) if number[task.name] != at)
        raise NetworkError(f"two tasks are named {twice!r}: give each a name of its own.")
    edges = []
    for head, task in enumerate(tasks):
        for name in task.upstream:
            if name not in number:
                raise NetworkError(f"task {task.name!r}: upstream {name!r} is no task: add it or take it out.")
            edges.append((number[name], head))
    tails, heads = (
        np.array(edges, dtype=np.intp).reshape(-1, 2).T if edges else np.zeros((2, 0), dtype=np.intp)
    ).copy()
    feeds: list[list[int]] = [[] for _ in tasks]
    for tail, head in edges:
        feeds[tail].append(head)
    depth, order = _depths(tasks, number, feeds)
    queries = np.array([at for at, below in enumerate(feeds) if not below], dtype=np.intp)
    place = {int(task): at for at, task in enumerate(queries.tolist())}
    serves: list[frozenset[int]] = [frozenset()] * len(tasks)
    for at in reversed(order):
        own = frozenset((place[at],)) if at in place else frozenset[int]()
        serves[at] = own.union(*(serves[below] for below in feeds[at]))
        if feeds[at] and (tasks[at].priority is not None or tasks[at].min_accuracy is not None):
            raise NetworkError(
                f"task {tasks[at].name!r} feeds {tasks[feeds[at][0]].name!r}: priority and min_accuracy belong to "
                f"tasks that feed no other; others take the maximum of those that they serve."
            )
    counts = np.array([len(each) for each in serves], dtype=np.intp)
    return TaskGraph(
        tasks=tuple(tasks),
        tails=tails,
        heads=heads,
        sources=np.array([at for at, task in enumerate(tasks) if not task.upstream], dtype=np.intp),
        queries=queries,
        query_priority=np.array([_given(tasks[at].priority, 1.0) for at in queries.tolist()]),
        query_minimum=np.array([_given(tasks[at].min_accuracy, 0.0) for at in queries.tolist()]),
        pair_query=np.array([query for each in serves for query in sorted(each)], dtype=np.intp),
        pair_starts=np.concatenate(([0], np.cumsum(counts)[:-1])).astype(np.intp),
        pair_counts=counts,
        waves=_waves(depth, heads),
    )


def _depths(tasks: Sequence[Task], number: dict[str, int], feeds: list[list[int]]) -> tuple[Index, list[int]]:
    """How many tasks lie above each one at most, and an order in which all come after what feeds them."""
    waiting = [len(task.upstream) for task in tasks]
    order = [at for at, count in enumerate(waiting) if count == 0]
    depth = np.zeros(len(tasks), dtype=np.intp)
    for at in order:
        for below in feeds[at]:
            depth[below] = max(depth[below], depth[at] + 1)
            waiting[below] -= 1
            if waiting[below] == 0:
                order.append(below)
    if len(order) < len(tasks):
        stuck = sorted(set(number.values()) - set(order))
        names = ", ".join(tasks[at].name for at in stuck[:5])
        raise NetworkError(f"tasks feed each other in a circle: {names}. Take one of these streams out.")
    return depth, order


def _waves(depth: Index, heads: Index) -> tuple[Wave, ...]:
    by_head = np.argsort(heads, kind="stable")
    found = []
    for level in range(1, int(depth.max()) + 1):
        edges = by_head[depth[heads[by_head]] == level]
        tasks, starts = np.unique(heads[edges], return_index=True)
        found.append(Wave(tasks.astype(np.intp), edges.astype(np.intp), starts.astype(np.intp)))
    return tuple(found)


def _given(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else float(value)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
