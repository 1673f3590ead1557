"""Fields: every value depends on the seed, the name and the row alone, and is distributed as declared."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jettison.errors import NetworkError
from jettison.synthetic.draws import Table, draw64, draw_share, key_of
from jettison.synthetic.fields import (
    TAXI,
    TAXI_PAYLOAD,
    Arrival,
    Choice,
    Field,
    Normal,
    Payload,
    Quantiles,
    RowNumber,
    Uniform,
    Zipf,
    field_from_dict,
    fields_from_dict,
    fields_to_dict,
)

pytestmark = pytest.mark.core

ROWS = np.arange(200_000)
KEY = key_of(42, "fare")
NUMBERS = [
    RowNumber(),
    Uniform(1, 6),
    Uniform(-(2**40), 2**40, "long"),
    Uniform(-1.5, 2.5, "double"),
    Normal(50, 10),
    Zipf(265),
    Quantiles(((0, 1), (0.3, 2), (1, 9))),
    Choice(("a", "b", "c"), weights=(1, 2, 3)),
    Payload({"passengers": Uniform(1, 6)}, pool=50, bad_share=0.1),
]


def test_draws_are_the_numbers_of_sparks_xxhash64() -> None:
    # SELECT xxhash64(7L, 0L), xxhash64(7L, 1L)
    expected = [-4457042067931036189, 3110148328363424865]
    assert draw64(np.array([0, 1]), key=7).astype(np.int64).tolist() == expected


@pytest.mark.parametrize("field", NUMBERS, ids=lambda field: type(field).__name__)
def test_a_range_read_in_parts_is_the_same(field: Uniform) -> None:
    parts = [field.draw(ROWS[first : first + 77], KEY) for first in range(0, 1000, 77)]
    np.testing.assert_array_equal(np.concatenate(parts)[:1000], field.draw(ROWS[:1000], KEY))


@pytest.mark.parametrize("field", NUMBERS[1:], ids=lambda field: type(field).__name__)
def test_seed_and_name_both_matter(field: Uniform) -> None:
    drawn = [field.draw(ROWS[:100], key).tolist() for key in (KEY, key_of(43, "fare"), key_of(42, "tip"))]
    assert drawn[0] != drawn[1]
    assert drawn[0] != drawn[2]


def test_columns_are_independent() -> None:
    fare, tip = draw_share(ROWS, key_of(0, "fare")), draw_share(ROWS, key_of(0, "tip"))
    assert abs(np.corrcoef(fare, tip)[0, 1]) < 0.01
    assert abs(np.corrcoef(fare[1:], fare[:-1])[0, 1]) < 0.01


@given(st.lists(st.floats(0, 1e3), min_size=1, max_size=50).filter(lambda weights: sum(weights) > 1e-3), st.integers(0))
def test_the_guide_table_finds_what_a_search_finds(weights: list[float], seed: int) -> None:
    table = Table.of_weights(weights)
    shares = np.concatenate([draw_share(np.arange(500), key_of(seed)), table.ends[:-1], [0.0]])
    shares = shares[shares < 1]
    np.testing.assert_array_equal(table.pick(shares), np.searchsorted(table.ends, shares, side="right"))


def test_uniform_integers_include_both_ends() -> None:
    drawn = Uniform(-1, 2).draw(ROWS, KEY)
    assert drawn.dtype == np.int32
    np.testing.assert_allclose(np.bincount(drawn + 1) / ROWS.size, [0.25] * 4, atol=0.01)


def test_uniform_doubles_fill_the_interval() -> None:
    drawn = Uniform(-1, 3, "double").draw(ROWS, KEY)
    assert -1 <= drawn.min() < -0.999
    assert 2.999 < drawn.max() < 3
    assert drawn.mean() == pytest.approx(1, abs=0.02)


def test_normal_has_its_tails() -> None:
    drawn = Normal(50, 10).draw(ROWS, KEY)
    assert np.mean(np.abs(drawn - 50) < 10) == pytest.approx(0.6827, abs=0.005)
    assert np.mean(drawn > 70) == pytest.approx(0.02275, abs=0.002)


def test_zipf_follows_its_formula() -> None:
    weights = np.arange(1, 11) ** -1.3
    counts = np.bincount(Zipf(10, 1.3).draw(ROWS, KEY), minlength=10)
    np.testing.assert_allclose(counts / ROWS.size, weights / weights.sum(), atol=0.005)


def test_quantiles_are_met() -> None:
    points = ((0, -20), (0.02, 0), (0.5, 13), (0.99, 60), (1, 500))
    drawn = Quantiles(points).draw(ROWS, KEY)
    for share, value in points:
        assert np.mean(drawn <= value) == pytest.approx(share, abs=0.005)


def test_choice_follows_its_weights_and_never_draws_weight_0() -> None:
    counts = np.bincount(Choice(("a", "b", "c"), weights=(3, 0, 1)).draw(ROWS, KEY), minlength=3)
    assert counts[1] == 0
    assert counts[0] / ROWS.size == pytest.approx(0.75, abs=0.01)


@pytest.mark.parametrize(("values", "kind"), [(("a",), "string"), ((1, 2), "long"), ((1, 2.5), "double")])
def test_the_type_of_a_choice(values: tuple[object, ...], kind: str) -> None:
    assert Choice(values).type == kind  # type: ignore[arg-type]


def test_payload_is_json_except_for_the_bad_share() -> None:
    payload = Payload({"vendor": Choice(("CMT",)), "fare": Normal(10, 2)}, pool=100, bad_share=0.2)
    texts = payload.drawn_from(KEY)
    drawn = [texts[k] for k in payload.draw(ROWS[:20_000], KEY)]
    bad = [text for text in drawn if not _is_json(text)]
    assert len(bad) / 20_000 == pytest.approx(0.2, abs=0.02)
    assert len(set(drawn) - set(bad)) == 100
    assert json.loads(texts[0]).keys() == {"vendor", "fare"}


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except json.JSONDecodeError:
        return False
    return True


def test_arrivals_may_be_missing() -> None:
    missing = Arrival(null_share=0.1).missing(ROWS, KEY)
    assert missing is not None
    assert missing.mean() == pytest.approx(0.1, abs=0.01)
    assert Arrival().missing(ROWS, KEY) is None


def test_taxi_fares_are_mostly_ordinary() -> None:
    fare = TAXI["fare"]
    assert isinstance(fare, Quantiles)
    drawn = fare.draw(ROWS, KEY)
    assert np.mean(drawn <= 0) == pytest.approx(0.02, abs=0.003)
    assert np.mean(drawn > 200) == pytest.approx(0.01, abs=0.002)
    assert np.mean((drawn >= 3) & (drawn <= 60)) > 0.96


@pytest.mark.parametrize("fields", [TAXI, TAXI_PAYLOAD, {str(k): field for k, field in enumerate(NUMBERS)}])
def test_survives_json_in_order(fields: dict[str, Field]) -> None:
    read = fields_from_dict(json.loads(json.dumps(fields_to_dict(fields))))
    assert list(read.items()) == list(fields.items())


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"kind": "uniform", "low": 6, "high": 1}, "Uniform: high is 1, give a number of at least 6"),
        ({"kind": "uniform", "low": 0.5, "high": 1}, "low is 0.5, give an integer"),
        ({"kind": "uniform", "low": 0, "high": 2**31}, "high is 2147483648"),
        ({"kind": "uniform", "low": 0, "high": 1, "type": "float"}, "type is 'float', give int, long or double"),
        ({"kind": "normal", "mean": 0, "sd": -1}, "sd is -1"),
        ({"kind": "normal", "mean": math.inf, "sd": 1}, "mean is inf"),
        ({"kind": "zipf", "n": 0}, "n is 0"),
        ({"kind": "arrival", "null_share": 1.5}, "null_share is 1.5"),
        ({"kind": "quantiles", "points": [[0, 1]]}, "share 0, the last with share 1"),
        ({"kind": "quantiles", "points": [[0, 1], [0.5, 0], [1, 2]]}, r"points\[1\] is \(0.5, 0\)"),
        ({"kind": "choice", "values": []}, "at least one"),
        ({"kind": "choice", "values": ["a", 1]}, "all strings or all numbers"),
        ({"kind": "choice", "values": ["a", "b"], "weights": [1]}, "1 weights for 2 values"),
        ({"kind": "choice", "values": ["a"], "weights": [0]}, "the sum of weights is 0"),
        ({"kind": "payload", "fields": {}}, "at least one name"),
        ({"kind": "payload", "fields": {"id": {"kind": "row_number"}}}, "field 'id' is a RowNumber"),
        ({"kind": "payload", "fields": {"a": {"kind": "zipf", "n": 5}}, "bad_share": 2}, "bad_share is 2"),
        ({"kind": "payload", "fields": {"a": {"kind": "zip"}}}, "field 'a' has the unknown kind 'zip'"),
    ],
)
def test_a_bad_declaration_says_what_to_do(declared: dict[str, object], message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        field_from_dict(declared)
