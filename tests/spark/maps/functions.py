"""Functions that files name by import path."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any


def scored(row: Mapping[str, Any]) -> dict[str, Any]:
    """Twice the amount. Every call leaves a byte in the file that the row names."""
    log = os.open(row["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(log, b"x")
    os.close(log)
    return {"score": 2 * row["amount"]}
