"""Table 5.1: the motivating example. Plans of node A that know nothing of node B, and the optimum (planning)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from jettison.experiments.harness import Result, Say
from jettison.plan.nodes.examples import two_chains
from jettison.plan.nodes.local import plan_locally
from jettison.plan.nodes.solver import PerTick, Solver
from jettison.plan.nodes.tables import Grain, TableNode, Tables

_THIRD, _FIFTH = Fraction(1, 3), Fraction(1, 5)
PRINTED = (
    ((1, 1), 3, (_THIRD, _THIRD), Fraction(4, 3), (Fraction(1, 4), Fraction(1, 4))),
    ((_THIRD, _THIRD), 1, (_THIRD, _THIRD), Fraction(4, 3), (Fraction(1, 4), Fraction(1, 4))),
    ((1, 0), 1, (1, 0), 3, (_THIRD, 0)),
    ((0, Fraction(1, 2)), 1, (0, Fraction(1, 2)), Fraction(1, 2), (0, Fraction(1, 2))),
    ((_FIFTH, 2 * _FIFTH), 1, (_FIFTH, 2 * _FIFTH), 1, (_FIFTH, 2 * _FIFTH)),
)
"""Plans 0 to 4: reduced rates at A, load of A, throughput of A, load of B, throughput of B."""

_RATES = {"i0": 1.0, "i1": 1.0}


def run(*, quick: bool, say: Say) -> Result:
    import numpy as np

    made = two_chains((1.0, 2.0), (3.0, 1.0))
    rows = [_row(number, made, each) for number, each in enumerate(PRINTED)]
    say("the optimum by Solver, C-FIT and D-FIT")
    grain = Grain(spread={"B": (0.2, 0.2)})
    tables = Tables(made, grain)
    below, above = (TableNode(tables.views[node], grain) for node in ("B", "A"))
    message = below.send()
    assert message is not None
    above.receive(message)
    shares = above.plan(np.array([1.0, 1.0]))
    found = {
        "per tick": PerTick(made).plan(_RATES).keeps,
        "Solver": Solver(made, {"i0": 4.0, "i1": 4.0}, 0.02).plan(_RATES).keeps,
        "C-FIT": tables.plan(_RATES).keeps,
        "D-FIT": shares,
    }
    near = {
        name: max(abs(keeps.get("i0", 1.0) - 0.2), abs(keeps.get("i1", 1.0) - 0.4)) for name, keeps in found.items()
    }
    equal = sum(row["equal"] for row in rows)
    checks = {"all plans are as printed": equal == len(PRINTED)}
    # C-FIT and D-FIT lie on the grid, within one spread; here the optimum is on it
    checks |= {f"{name} finds (1/5, 2/5)": far <= 0.011 for name, far in near.items()}
    optimum = PerTick(made).plan(_RATES)
    metrics = {"rows_equal": equal, "optimum": round(optimum.score, 6), "furthest": round(max(near.values()), 6)}
    metrics |= {f"optimum_{arc}": round(optimum.keeps[arc], 6) for arc in _RATES}
    return Result("table-5-1", metrics, checks, rows, lambda figure: _draw(figure, rows))


def _row(number: int, made: Any, printed: Any) -> dict[str, Any]:
    """One plan: what becomes of the rates that A lets in, when both nodes scale down what is too much."""
    rates, a_load, a_out, b_load, b_out = printed
    found = plan_locally(made, {"i0": float(rates[0]), "i1": float(rates[1])})
    scale = 1 / max(1.0, found.load["A"])
    got = [*(float(rate) * scale for rate in rates), found.load["A"], found.load["B"], *found.delivered.values()]
    wanted = [*map(float, a_out), float(a_load), float(b_load), *map(float, b_out)]
    equal = max(abs(a - b) for a, b in zip(got, wanted, strict=True)) < 1e-9
    return {
        "plan": number,
        "reduced_rates": f"{rates[0]}, {rates[1]}",
        "a_load": round(found.load["A"], 4),
        "b_load": round(found.load["B"], 4),
        "throughput": round(found.score, 4),
        "printed_throughput": round(float(sum(b_out)), 4),
        "equal": equal,
    }


def _draw(figure: Any, rows: list[dict[str, Any]]) -> None:
    axes = figure.subplots()
    places = range(len(rows))
    axes.bar([at - 0.2 for at in places], [row["b_load"] for row in rows], 0.4, label="load of B", color="lightgrey")
    axes.bar([at + 0.2 for at in places], [row["throughput"] for row in rows], 0.4, label="throughput")
    axes.axhline(1.0, color="grey", linestyle="--", linewidth=1, label="capacity")
    axes.set_xticks(list(places), [f"plan {row['plan']}\n({row['reduced_rates']})" for row in rows])
    axes.set_title("What node A lets in, the load of node B, and what comes out (planning)")
    axes.legend()
