"""How much a folder on this machine holds."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    """Files and their bytes."""

    files: int
    bytes: int


def size_of_folder(path: str) -> Size:
    """Files below a local folder; what is deleted meanwhile is left out."""
    files = total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                total += os.stat(os.path.join(folder, name)).st_size
                files += 1
            except FileNotFoundError:
                continue
    return Size(files, total)
