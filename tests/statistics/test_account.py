"""Where source tuples went (trust 7): what counts on arcs say, against a simulation that follows every tuple."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.networks import steady

from jettison.network import Aggregate, Graph, Network, Output, Source, Union, Where, WindowSpec, arc_name
from jettison.network.operators import Operator
from jettison.plan.delivered import delivered
from jettison.plan.drops.random import Random
from jettison.plan.plan import Plan
from jettison.statistics.account import Account, accounts_of, summed
from jettison.statistics.samples import BatchSample

pytestmark = pytest.mark.core

TERMS = ("processed", "shed", "rejected", "late", "skipped")


@st.composite
def graphs(draw: st.DrawFn, *, merging: bool, windows: bool = True) -> Graph:
    """Sources, filters that split, windows at some ends; with `merging` unions too."""
    sources = draw(st.integers(1, 2))
    operators: list[Operator] = [
        Source(f"s{n}", (("x", "int"), ("at", "timestamp")), event_time="at") for n in range(sources)
    ]
    streams = [each.name for each in operators]
    for number in range(draw(st.integers(1, 5))):
        if merging and len(streams) > 1 and draw(st.booleans()):
            inputs = draw(st.lists(st.sampled_from(streams), min_size=2, max_size=2, unique=True))
            operators.append(Union(f"n{number}", tuple(inputs)))
        else:
            operators.append(Where(f"n{number}", (draw(st.sampled_from(streams)),), "x > 0"))
        streams.append(f"n{number}")
    ends = [name for name in streams if draw(st.booleans())]
    read = {tail for each in operators for tail in each.inputs}
    ends += [name for name in streams if name not in read and name not in ends]
    for number, tail in enumerate(ends):
        if windows and draw(st.booleans()):
            spec = WindowSpec(10, 10)
            operators.append(Aggregate(f"w{number}", (tail,), spec, (("n", "count(*)"),)))
            tail = f"w{number}"
        operators.append(Output(f"o{number}", (tail,)))
    return Graph("random", tuple(operators))


@dataclass
class Followed:
    """Every tuple of a batch, followed through the network: what is counted on arcs, and what becomes of it."""

    graph: Graph
    drops: dict[str, float]
    rows: dict[str, int]
    seed: int
    arcs: dict[str, list[int]] = field(default_factory=dict)
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    reached: Counter[str] = field(default_factory=Counter)

    def chance(self, *key: object) -> float:
        drawn = hashlib.blake2b(f"{self.seed} {key}".encode(), digest_size=8).digest()
        return int.from_bytes(drawn, "big") / 2**64

    def run(self, *, shed: bool = True) -> BatchSample:
        given: dict[str, list[tuple[str, ...]]] = {}
        rejected: dict[str, int] = {}
        for operator in self.graph.operators:
            name = operator.name
            if isinstance(operator, Source):
                rows = self._pass(name, [(name, str(n)) for n in range(self.rows[name])], shed)
                given[name] = [row for row in rows if self.chance("bad", row) > 0.1]
                rejected[name] = len(rows) - len(given[name])
                continue
            rows = [row for tail in operator.inputs for row in self._pass(arc_name(tail, name), given[tail], shed)]
            given[name] = [(*row, name) for row in rows if self.fate(operator, row) in ("", "processed")]
            self.counts.update((name, self.fate(operator, row)) for row in rows)
            if isinstance(operator, Output):
                self.reached[name] += len(rows)
        timeless, late, unneeded = (
            {each.name: self.counts[each.name, word] for each in self.graph.aggregates}
            for word in ("rejected", "late", "shed")
        )
        arcs = {arc: (rows, kept) for arc, (rows, kept) in self.arcs.items()}
        return BatchSample(
            0,
            0.0,
            1000.0,
            900.0,
            self.rows,
            arcs=arcs,
            rejected=rejected,
            skipped={name: count // 5 for name, count in self.rows.items()},
            late=late,
            timeless_in=timeless,
            unneeded=unneeded,
            unfit={name: count for (name, word), count in self.counts.items() if word == "rejected" and name[0] == "n"},
        )

    def fate(self, operator: Operator, row: tuple[str, ...]) -> str:
        """What an operator does to a row: nothing, removes it, or, of windows, what it is counted as."""
        drawn = self.chance(operator.name, row)
        if isinstance(operator, Where):
            return "" if drawn < 0.6 else "removed" if drawn < 0.9 else "rejected"
        if not isinstance(operator, Aggregate):
            return ""
        return "rejected" if drawn < 0.1 else "late" if drawn < 0.2 else "shed" if drawn < 0.3 else "processed"

    def keeps(self, arc: str, row: tuple[str, ...]) -> bool:
        return arc not in self.drops or self.chance("drop", arc, row) < self.drops[arc]

    def _pass(self, arc: str, rows: list[tuple[str, ...]], shed: bool) -> list[tuple[str, ...]]:
        kept = [row for row in rows if not shed or self.keeps(arc, row)]
        if arc in self.drops:
            self.arcs[arc] = [len(rows), len(kept)]
        return kept

    def accounts(self) -> dict[tuple[str, str], Counter[str]]:
        """The weight of every tuple by what became of it, per source and output."""
        found = {}
        for output in self.graph.outputs:
            for source in self.graph.sources_above(output.name):
                total: Counter[str] = Counter()
                for number in range(self.rows[source.name]):
                    for word, weight in self._ways(output.name, source.name, (source.name, str(number))):
                        total[word] += weight  # type: ignore[assignment]  # weights are fractions
                found[source.name, output.name] = total
        return found

    def _ways(self, output: str, source: str, row: tuple[str, ...]) -> Iterator[tuple[str, float]]:
        if not self.keeps(source, row):
            yield "shed", 1.0
        elif self.chance("bad", row) <= 0.1:
            yield "rejected", 1.0
        else:
            yield from self._behind(output, source, row, 1.0)

    def _behind(self, output: str, at: str, row: tuple[str, ...], weight: float) -> Iterator[tuple[str, float]]:
        heads = [
            head for head in self.graph.consumers[at] if head == output or output in self.graph.outputs_below(head)
        ]
        for head in heads:
            part, operator = weight / len(heads), self.graph.by_name[head]
            word = self.fate(operator, row)
            if not self.keeps(arc_name(at, head), row):
                yield "shed", part
            elif word == "removed" or head == output:
                yield "processed", part
            elif word:
                yield word, part
            else:
                yield from self._behind(output, head, (*row, head), part)


def followed(graph: Graph, rows: int, seed: int) -> Followed:
    chosen = random.Random(seed)
    drops = {arc: chosen.choice([0.0, 0.3, 0.5, 0.9]) for arc in graph.arcs if chosen.random() < 0.6}
    return Followed(graph, drops, {source.name: rows for source in graph.sources}, seed)


@steady(150)
@given(graphs(merging=False), st.integers(0, 10**6))
def test_trust_7_accounts_are_those_of_every_single_tuple(graph: Graph, seed: int) -> None:
    run = followed(graph, 40, seed)
    sample = run.run()
    found, true = accounts_of(graph, sample), run.accounts()
    assert found.keys() == true.keys()
    for key, account in found.items():
        assert account.read == 40 + 8
        assert account.read == pytest.approx(sum(getattr(account, term) for term in TERMS))
        for term in TERMS[:-1]:
            assert getattr(account, term) == pytest.approx(true[key][term]), (key, term)


@steady(40)
@given(graphs(merging=True), st.integers(0, 10**6))
def test_trust_7_accounts_add_up_where_streams_merge(graph: Graph, seed: int) -> None:
    """Behind a union rows are counted together: sums are kept, and each source has about what it lost."""
    run = followed(graph, 300, seed)
    found, true = accounts_of(graph, run.run()), run.accounts()
    for key, account in found.items():
        assert account.read == pytest.approx(sum(getattr(account, term) for term in TERMS))
        assert all(getattr(account, term) >= -1e-9 for term in TERMS)
        assert account.accuracy == pytest.approx(true[key]["processed"] / 360, abs=0.1), key


@steady(30)
@given(graphs(merging=False, windows=False), st.integers(0, 10**6))
def test_trust_7_delivered_is_what_comes_over_what_would_have_come(graph: Graph, seed: int) -> None:
    run = followed(graph, 800, seed)
    graph = run.graph
    sample = run.run()
    whole = Followed(graph, run.drops, run.rows, seed)
    whole.run(shed=False)
    plan = Plan({arc: Random(keep) for arc, keep in run.drops.items()})
    found = delivered(graph, plan, sample)
    for output in graph.outputs:
        if whole.reached[output.name] > 100:
            expected = 800 / 960 * run.reached[output.name] / whole.reached[output.name]
            assert found[output.name].share == pytest.approx(expected, abs=0.06)


def test_trust_7_two_branches_that_drop_the_same_rows_are_not_added_up() -> None:
    """Each branch sheds 43.9 %: that is 87.8 % of the rows in, and 43.9 % of what every output should get."""
    net = Network("branches")
    stream = net.source("s", "x int")
    for name in ("a", "b"):
        stream.where("x > 0", name=name).output(f"{name}_out")
    sample = BatchSample(
        0, 0.0, 1e3, 9e2, {"s": 1000}, arcs={"s": (1000, 1000), "s>a": (1000, 561), "s>b": (1000, 561)}
    )
    found = accounts_of(net.graph, sample)
    assert [each.shed for each in found.values()] == [439.0, 439.0]
    assert summed(found.values()).accuracy == 0.561


def test_trust_7_a_branch_that_is_closed_was_never_counted() -> None:
    """Where nothing is built behind a source, nothing is observed there: the plan says that nothing passed."""
    net = Network("closed")
    net.source("s", "x int").where("x > 0", name="a").output("out")
    sample = BatchSample(0, 0.0, 1e3, 9e2, {"s": 10}, arcs={"s": (10, 10)})
    assert accounts_of(net.graph, sample, closed={"s>a"})["s", "out"] == Account(10, 0, 10)
    counted = replace(sample, arcs={**sample.arcs, "a>out": (0, 0)})  # the filter removed all of them
    assert accounts_of(net.graph, counted, closed={"a>out"})["s", "out"] == Account(10, 10)


def test_trust_7_a_tuple_that_becomes_several_rows_is_shed_by_their_share() -> None:
    net = Network("several")
    many = net.source("s", "x array<int>").select("explode(x) AS x", name="many")
    many.where("x > 0", name="a").output("a_out")
    many.where("x < 0", name="b").output("b_out")
    sample = BatchSample(0, 0.0, 1e3, 9e2, {"s": 100}, arcs={"s": (100, 100), "many>a": (300, 150)})
    found = accounts_of(net.graph, sample)
    assert (found["s", "a_out"].shed, found["s", "b_out"].shed) == (50.0, 0.0)


def test_trust_12_rows_that_a_union_cannot_convert_are_of_the_source_that_they_came_from() -> None:
    net = Network("two")
    texts, numbers = net.source("texts", "key string"), net.source("numbers", "key int")
    texts.union(numbers, name="both").output("out")
    sample = BatchSample(0, 0.0, 0.0, 0.0, {"texts": 10, "numbers": 30}, unfit={"texts>both": 4})
    found = accounts_of(net.graph, sample)
    assert found["texts", "out"] == Account(read=10, processed=6, rejected=4)
    assert found["numbers", "out"] == Account(read=30, processed=30)
