"""The max-min fair shares, by linear programs: the reference that algorithm 1 is compared with ("fair-exact").

    maximise t    so that  SIC of q / weight of q >= t  for every query q
                           level of an arc >= level of every part that needs it
                           work within the budget,  floor <= level <= 1

Queries that cannot get more than t are fixed there, and the rest is solved again, until nothing can rise. Levels are
shares here, not whole buckets.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array, csr_array, vstack

from jettison.plan.shedders.fair.competition import Competition, Vector

_ROUNDS = 50
_BINDS = 1e-9
_HOLDS = 1e-7


def max_min_shares(competition: Competition, budget_us: float, rounds: int = _ROUNDS) -> Vector | None:
    """The share of every part that is kept; None where floors alone are more than the budget.

    `rounds` is how many levels of fairness are told apart; with 1, the lowest SIC is as high as it can be.

    >>> two = Competition.of(np.zeros(2), np.array([0, 1]), np.ones(2), np.array([64.0, 640.0]))
    >>> max_min_shares(two, 352.0).round(6).tolist()
    [0.5, 0.5]
    """
    program = _Program(competition, budget_us)
    held = np.full(len(competition.had), -np.inf)
    rising = np.bincount(competition.query, minlength=len(held)) > 0
    best: Vector | None = None
    for _ in range(rounds):
        found = program.solve(rising, held)
        if found is None:
            return best
        best, level, binding = found
        full = competition.query_sic(np.full(len(competition.query), float(competition.buckets)))
        stays = rising & (binding | (full / competition.weights <= level + _HOLDS))
        if not stays.any():
            break
        held = np.where(stays, level * competition.weights, held)
        rising = rising & ~stays
        if not rising.any():
            break
    return best


class _Program:
    """Columns are the levels of parts, then of shared arcs, then t."""

    def __init__(self, competition: Competition, budget_us: float) -> None:
        self._given = competition
        parts, arcs, needs = len(competition.query), len(competition.shared_us), len(competition.on_arc)
        self._columns = parts + arcs + 1
        scale = max(1.0, float(competition.own_us.sum() + competition.shared_us.sum()))
        work = np.concatenate([competition.own_us, competition.shared_us, [0.0]]) / scale
        row = np.arange(needs)
        carried = coo_array(
            (
                np.concatenate([np.ones(needs), -np.ones(needs)]),
                (np.concatenate([row, row]), np.concatenate([competition.on_part, parts + competition.on_arc])),
            ),
            shape=(needs, self._columns),
        )
        self._common = vstack([csr_array(work[None, :]), carried], format="csr")
        self._limits = np.concatenate([[budget_us / scale], np.zeros(needs)])
        floor = np.concatenate([competition.floor / competition.buckets, np.zeros(arcs), [-np.inf]])
        self._bounds = np.column_stack([floor, np.concatenate([np.ones(parts + arcs), [np.inf]])])

    def solve(self, rising: Any, held: Vector) -> tuple[Vector, float, Any] | None:
        """Shares, the level t of the queries that rise, and which of them cannot rise further."""
        given, queries = self._given, len(self._given.had)
        parts = len(given.query)
        gains = coo_array((-given.sic, (given.query, np.arange(parts))), shape=(queries, self._columns)).tocsr()
        goal = coo_array(
            (given.weights[rising], (np.flatnonzero(rising), np.full(int(rising.sum()), self._columns - 1))),
            shape=(queries, self._columns),
        ).tocsr()
        wanted = rising | np.isfinite(held)
        least = np.where(rising, given.had, given.had - np.where(np.isfinite(held), held, 0.0) + _HOLDS)
        matrix = vstack([self._common, (gains + goal)[np.flatnonzero(wanted)]], format="csr")
        objective = np.zeros(self._columns)
        objective[-1] = -1.0
        found = linprog(
            objective, matrix, np.concatenate([self._limits, least[wanted]]), bounds=self._bounds, method="highs"
        )
        if found.status != 0:
            return None
        binding = np.zeros(queries, np.bool_)
        binding[wanted] = np.asarray(found.ineqlin.marginals)[len(self._limits) :] < -_BINDS
        return np.clip(found.x[:parts], 0.0, 1.0), float(found.x[-1]), binding & rising
