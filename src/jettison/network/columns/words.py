"""Words that errors are made of: an article that fits, and the name that was probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

_LIKE_YOU = ("uni", "use", "usu", "uti")


def an(noun: object) -> str:
    """A noun with its article.

    >>> an("output"), an("source"), an("int"), an("union"), an("unknown kind")
    ('an output', 'a source', 'an int', 'a union', 'an unknown kind')
    """
    text = str(noun)
    vowel = text[:1].lower() in tuple("aeiou") and not text.lower().startswith(_LIKE_YOU)
    return f"{'an' if vowel else 'a'} {text}"


def meant(given: object, known: Iterable[object]) -> str:
    """A question after the nearest of the known names; empty where none is near.

    >>> meant("dryrun", ["true", "false", "dry-run"]), meant("x", ["true", "false"])
    (" (did you mean 'dry-run'?)", '')
    """
    near = get_close_matches(str(given), [str(each) for each in known], n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
