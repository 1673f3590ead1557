"""The question that fair shedding answers, in numbers: who wants how much of what, and what it costs.

A *part* is what one query gets from one source, or from several that can only be dropped alike. Its rows are divided
into `buckets`; a *level* is how many of them are kept. An arc carries the largest level of the parts that need it, for
buckets are nested: a shared operator is paid once.

    SIC of a query  =  what it has  +  sum over its parts of  level / buckets x SIC of the part
    work            =  sum over arcs of  work of the arc x largest level on it / buckets
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Competition:
    """Queries that compete for one batch's time.

    `had` is each query's SIC if nothing of this batch is kept, `weights` what its SIC is divided by when queries are
    compared. By part: `query` is its number, `sic` what all of its rows add to the query's SIC, `tuples` how many
    there are, `own_us` the work that it alone causes, `least` the smallest level above 0 (windows go as their gaps
    allow), `floor` the level that it keeps in any case. `shared_us` is the work of arcs that several parts need;
    `on_part` and `on_arc` say which part needs which of them.
    """

    had: Vector
    weights: Vector
    query: Numbers
    sic: Vector
    tuples: Vector
    own_us: Vector
    least: Numbers
    floor: Numbers
    shared_us: Vector
    on_part: Numbers
    on_arc: Numbers
    buckets: int

    @classmethod
    def of(
        cls,
        had: Vector,
        query: Numbers,
        sic: Vector,
        own_us: Vector,
        *,
        shared_us: Vector | None = None,
        needs: tuple[Numbers, Numbers] | None = None,
        tuples: Vector | None = None,
        weights: Vector | None = None,
        buckets: int = 64,
    ) -> Competition:
        """A competition in which every part may have any level; `needs` are pairs of part and shared arc."""
        parts, none = len(query), np.zeros(0, np.int64)
        on_part, on_arc = (none, none) if needs is None else needs
        return cls(
            had,
            np.ones(len(had)) if weights is None else weights,
            query,
            sic,
            own_us if tuples is None else tuples,
            own_us,
            np.ones(parts, np.int64),
            np.zeros(parts, np.int64),
            np.zeros(0) if shared_us is None else shared_us,
            on_part,
            on_arc,
            buckets,
        )

    @cached_property
    def price_us(self) -> Vector:
        """What a part is taken to cost when a query chooses among its parts: shared work divided by those who share."""
        users = np.bincount(self.on_arc, minlength=len(self.shared_us))
        each_us = self.shared_us / np.maximum(users, 1)
        shared = np.bincount(self.on_part, each_us[self.on_arc], minlength=len(self.query))
        found: Vector = self.own_us + shared
        return found

    def arc_levels(self, levels: Numbers) -> Numbers:
        """The largest level that any part needs of each shared arc."""
        found = np.zeros(len(self.shared_us), np.int64)
        np.maximum.at(found, self.on_arc, levels[self.on_part])
        return found

    def work_us(self, levels: Numbers) -> float:
        """What keeping these levels costs.

        Two queries read one source whose parsing costs 640 us; their own operators cost 64 us and 128 us:

        >>> numbers = np.array([0, 1])
        >>> two = Competition.of(np.zeros(2), numbers, np.ones(2), np.array([64.0, 128.0]),
        ...                      shared_us=np.array([640.0]), needs=(numbers, np.zeros(2, np.int64)))
        >>> two.work_us(np.array([32, 16]))  # 32 + 32 for the two, and half of the parsing
        384.0
        """
        shared = float(self.shared_us @ self.arc_levels(levels))
        return (float(self.own_us @ levels) + shared) / self.buckets

    def query_sic(self, levels: Numbers | Vector) -> Vector:
        """The SIC that every query gets with these levels."""
        gained = np.bincount(self.query, self.sic * levels / self.buckets, minlength=len(self.had))
        found: Vector = self.had + gained
        return found
