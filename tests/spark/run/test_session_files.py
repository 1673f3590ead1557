"""Files that the package brings are where they are looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from jettison.spark.run import session

pytestmark = pytest.mark.core


def test_the_log_settings_of_a_local_session_are_there() -> None:
    assert Path(session.__file__).with_name("log4j2.properties").is_file()
