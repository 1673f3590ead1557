"""Histograms that follow what is measured, also behind drops."""

from __future__ import annotations

import numpy as np
import pytest

from jettison.network import Graph, Network, QoS, Value
from jettison.network.columns.value_tracks import Track
from jettison.statistics.profile import Profile
from jettison.statistics.samples import ValueSample
from jettison.statistics.values import ValueModel

pytestmark = pytest.mark.core


def network() -> tuple[Graph, Track]:
    net = Network("n")
    some = net.source("s", "x double").where("x > 30", name="some")
    some.output("o", qos=QoS(value=Value("x", [(0, 50, 0.2), (50, 100, 1.0)])))
    return net.graph, net.graph.tracks.by_output["o"]


def quantiles(draws: np.ndarray) -> tuple[float, ...]:
    return tuple(float(q) for q in np.quantile(draws, (np.arange(200) + 0.5) / 200))


def distance(one: object, other: object) -> float:
    """The share of values that would have to move."""
    return float(np.abs(np.asarray(one) - np.asarray(other)).sum() / 2)


def fed(keeps: object, batches: int, *, sample_rows: int = 800) -> tuple[dict[str, tuple[float, ...]], Track]:
    """A model that starts with even values and sees batches whose values lie low, behind a drop with these keeps."""
    graph, track = network()
    model = ValueModel(graph, Profile({}, {"some": 0.5}))
    random = np.random.default_rng(1)
    for _ in range(batches):
        drawn = 100 * random.beta(2, 5, size=20_000)
        share = np.full(track.cells, keeps) if isinstance(keeps, float) else np.asarray(keeps)
        cells = np.clip(np.searchsorted(track.bounds, drawn, side="right") - 1, 0, track.cells - 2)
        kept = drawn[random.random(len(drawn)) < share[cells]]
        sample = ValueSample(sample_rows, quantiles(kept[:sample_rows]))
        profile = Profile({}, {"some": 0.5}, values=model.get())
        plan = {"s": keeps} if not isinstance(keeps, float) or keeps < 1 else {}
        model.update(profile, {"s": 20_000.0}, plan, {"s": (20_000, len(kept))}, {"s.x": sample})  # type: ignore[arg-type]
    return model.get(), track


def truth(track: Track) -> np.ndarray:
    counts = track.count(100 * np.random.default_rng(2).beta(2, 5, size=200_000))
    return np.asarray(counts / counts.sum())


def test_it_finds_the_spread_of_what_comes_in() -> None:
    values, track = fed(1.0, batches=12)
    assert distance(track.spread(None), truth(track)) > 0.3
    assert distance(values["s.x"], truth(track)) < 0.05


def test_a_random_drop_does_not_change_what_it_finds() -> None:
    values, track = fed(0.3, batches=12)
    assert distance(values["s.x"], truth(track)) < 0.05


def test_behind_a_drop_by_value_the_visible_cells_are_found_and_the_closed_ones_have_the_right_sum() -> None:
    _, track = network()
    keeps = (*(float(high > 25.0) for high in track.bounds[1:]), 1.0)
    values, track = fed(keeps, batches=14)
    found, true = np.array(values["s.x"]), truth(track)
    is_open = np.array(keeps) > 0
    assert float(found[~is_open].sum()) == pytest.approx(float(true[~is_open].sum()), abs=0.02)
    assert distance(found[is_open], true[is_open]) < 0.04


def test_nulls_are_counted_as_other_values() -> None:
    graph, _ = network()
    model = ValueModel(graph, Profile({}, {}))
    for _ in range(20):
        sample = ValueSample(1000, tuple(np.linspace(1, 99, 200)), others=300)
        model.update(Profile({}, {}, values=model.get()), {"s": 1e4}, {}, {}, {"s.x": sample})
    assert model.get()["s.x"][-1] == pytest.approx(0.3, abs=0.01)


def test_an_output_tells_what_the_filter_before_it_lets_through() -> None:
    graph, track = network()
    model = ValueModel(graph, Profile({}, {"some": 0.7}))
    above = np.linspace(30.5, 99.5, 200)
    for _ in range(25):
        samples = {"s.x": ValueSample(800, tuple(np.linspace(0.25, 99.75, 200))), "o.x": ValueSample(800, tuple(above))}
        model.update(Profile({}, {"some": 0.7}, values=model.get()), {"s": 1e4}, {}, {}, samples)
    passed = np.array(model.get()["some.x"])
    below_30 = np.array([high <= 30 for high in track.bounds[1:]] + [False])
    assert float(passed[below_30].sum()) < 0.02
    assert float(np.array(model.get()["s.x"])[below_30].sum()) == pytest.approx(0.3, abs=0.03)


def test_a_small_sample_is_not_believed() -> None:
    graph, track = network()
    model = ValueModel(graph, Profile({}, {}))
    model.update(Profile({}, {}), {"s": 1e4}, {}, {}, {"s.x": ValueSample(5, (1.0,) * 200)})
    assert model.get()["s.x"] == pytest.approx(tuple(track.spread(None)))


def test_a_rare_value_stays_rare_through_many_small_samples() -> None:
    """Of a cell with less than a row per sample, most samples show nothing: those count too."""
    graph, track = network()
    random = np.random.default_rng(3)
    drawn = np.where(random.random(200_000) < 0.002, 99.0, 31 + 40 * random.random(200_000))
    whole = track.count(drawn) / len(drawn)
    rare = int(np.searchsorted(track.bounds, 99.0, side="right")) - 1
    model = ValueModel(graph, Profile({}, {"some": 1.0}, values={"s.x": tuple(whole), "some.x": tuple(whole)}))
    for _ in range(80):
        seen = random.choice(drawn, size=200)
        profile = Profile({}, {"some": 1.0}, values=model.get())
        model.update(
            profile, {"s": 3_200.0}, {}, {"s": (3_200, 3_200)}, {"o.x": ValueSample(200, tuple(np.sort(seen)))}
        )
    assert whole[rare] == pytest.approx(0.002, rel=0.1)
    assert model.get()["o.x"][rare] < 0.01
