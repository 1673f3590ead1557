"""Which columns have a form in SQL; `tests/spark/read/test_generated_rows.py` compares their rows with Python's."""

from __future__ import annotations

import pytest

from jettison.synthetic.distributions import Uniform, Zipf
from jettison.synthetic.fields import Choice, Field
from jettison.synthetic.sql import generated_sql

pytestmark = pytest.mark.core


@pytest.mark.parametrize(
    "field",
    [
        Uniform(-1e308, 1e308, type="double"),
        Zipf(1_000_000),
        Choice(("a\x1fb", "c")),
    ],
)
def test_what_sql_cannot_write_is_left_to_python(field: Field) -> None:
    assert generated_sql({"x": field}, seed=0) is None
