"""Contents that are named by what they hold: equal contents have equal names, and a damaged byte is found out."""

from __future__ import annotations

import hashlib

from jettison.errors import PlanError

_DIGITS = 32


def name_of(content: bytes) -> str:
    """What a content is called: the first digits of its SHA-256."""
    return hashlib.sha256(content).hexdigest()[:_DIGITS]


def sealed(magic: bytes, content: bytes) -> bytes:
    """A content behind a line that says what it is, and its name as the checksum.

    >>> opened(b"a sketch\\n", sealed(b"a sketch\\n", b"cells"))
    b'cells'
    """
    return magic + name_of(content).encode() + b"\n" + content


def opened(magic: bytes, written: bytes) -> bytes:
    """The content that was sealed so; raises PlanError where a byte is not as it was written."""
    begin = len(magic) + _DIGITS + 1
    name, content = written[len(magic) : begin - 1].decode("latin-1"), written[begin:]
    if not written.startswith(magic) or name_of(content) != name:
        what = magic.decode().strip()
        raise PlanError(f"{what} {name!r}: its checksum is wrong: it is damaged, or of another version. Remove it.")
    return content
