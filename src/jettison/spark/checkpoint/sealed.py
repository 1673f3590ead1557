"""Checksums for the small files of the checkpoint: a JSON object whose last member is the CRC-32 of the rest.

    {"batch": 7, "crc32": "ba7d5ff8"}

Files from before there were checksums are read as they are.
"""

from __future__ import annotations

import json
import re
from typing import Any
from zlib import crc32

from jettison.errors import CheckpointError
from jettison.spark.checkpoint.small_files import Folder

_CHECKSUM = re.compile(r'(?:, )?"crc32": "([0-9a-f]{8})"\}\s*\Z')


def seal(text: str) -> str:
    """A JSON object with its checksum.

    >>> seal('{"batch": 7}')
    '{"batch": 7, "crc32": "ba7d5ff8"}'
    """
    between = "" if text == "{}" else ", "
    return f'{text[:-1]}{between}"crc32": "{crc32(text.encode()):08x}"}}'


def unseal(text: str) -> str:
    """The object without its checksum; ValueError when they do not match.

    >>> unseal(seal('{"batch": 7}')), unseal('{"batch": 7}'), unseal(seal("{}"))
    ('{"batch": 7}', '{"batch": 7}', '{}')
    >>> unseal(seal('{"batch": 7}').replace("7", "8"))
    Traceback (most recent call last):
        ...
    ValueError: its checksum does not match
    """
    found = _CHECKSUM.search(text)
    if found is None:
        return text
    rest = text[: found.start()] + "}"
    if crc32(rest.encode()) != int(found[1], 16):
        raise ValueError("its checksum does not match")
    return rest


def write_sealed(folder: Folder, name: str, text: str) -> None:
    """Replace a file by a JSON object, in one step, checksum included."""
    folder.write(name, seal(text))


def read_sealed(folder: Folder, name: str) -> str | None:
    """The text of a file; None where there is none, ValueError where it is damaged."""
    text = folder.read(name)
    return None if text is None else unseal(text)


def load(folder: Folder, name: str, what: str, remedy: str) -> Any:
    """The JSON in a file, None where there is no file. A damaged file is named, with the remedy."""
    try:
        text = read_sealed(folder, name)
        return None if text is None else json.loads(text)
    except ValueError as error:
        raise damaged(folder, name, what, error, remedy) from error


def damaged(folder: Folder, name: str, what: str, error: Exception, remedy: str) -> CheckpointError:
    """What to raise about a file that cannot be read."""
    reason = str(error) if isinstance(error, ValueError) else f"{type(error).__name__}: {error}"
    return CheckpointError(f"checkpoint: {what}, file {folder.path}/{name}, is damaged ({reason}). {remedy}")
