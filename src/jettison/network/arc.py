"""An arc: the stream between two operators, or an input of the network. This is the only place that reads its text."""

from __future__ import annotations

_BETWEEN = ">"


class Arc(str):
    """An arc, which is also its text: `trips` is what enters at source trips, `paid>alerts` leads from paid to alerts.

    The text is the key of drops, logs and reports; `Arc(text)` makes an arc of it.

    >>> arc, source = Arc("paid>alerts"), Arc("trips")
    >>> (arc.tail, arc.head, arc.is_input), (source.tail, source.head, source.is_input)
    (('paid', 'alerts', False), (None, 'trips', True))
    >>> arc.origin, source.origin, Arc.between("paid", "alerts") == arc == "paid>alerts"
    ('paid', 'trips', True)
    """

    __slots__ = ()

    @classmethod
    def between(cls, tail: str, head: str) -> Arc:
        """The arc from one operator to another."""
        return cls(f"{tail}{_BETWEEN}{head}")

    @property
    def tail(self) -> str | None:
        """The operator that it comes from; None for an input."""
        return self.rpartition(_BETWEEN)[0] or None

    @property
    def head(self) -> str:
        """The operator that it leads into; for an input the source itself."""
        return self.rpartition(_BETWEEN)[2]

    @property
    def origin(self) -> str:
        """The operator whose rows it carries; for an input the source itself."""
        return self.tail or self.head

    @property
    def is_input(self) -> bool:
        """Whether it is where a source's rows enter."""
        return self.tail is None


def arc_name(tail: str, head: str) -> Arc:
    """The arc from one operator to another."""
    return Arc.between(tail, head)


def arc_head(arc: str) -> str:
    """The operator that an arc leads into.

    >>> arc_head("paid>alerts"), arc_head("trips")
    ('alerts', 'trips')
    """
    return Arc(arc).head
