"""How long expressions are tried first, once one has failed on a row (`careful`): trying takes two to three times as
long as computing.

After some batches in which no row was rejected the expressions are trusted again. The next bad row then costs its batch
one attempt, so every time that happens the period becomes twice as long. What a batch does is in its plan's log.
"""

from __future__ import annotations

FIRST_BATCHES = 20
_MOST_BATCHES = 5120


class CarePeriod:
    """Counts clean batches.

    >>> period = CarePeriod(2)
    >>> [period.goes_on(careful=True, rejected=rejected) for rejected in (3, 0, 0)]
    [True, True, False]
    >>> period.goes_on(careful=False, rejected=0)
    False
    >>> [period.goes_on(careful=True, rejected=rejected) for rejected in (1, 0, 0, 0, 0)]  # now it takes 4
    [True, True, True, True, False]
    """

    def __init__(self, batches: int = FIRST_BATCHES) -> None:
        self._batches = batches
        self._clean = 0
        self._left = False

    def goes_on(self, *, careful: bool, rejected: int) -> bool:
        """Whether the next batch is run with care, after one that was or was not and rejected so many rows."""
        if not careful:
            return False
        if self._left:  # another bad row came
            self._left, self._batches = False, min(_MOST_BATCHES, 2 * self._batches)
        self._clean = 0 if rejected else self._clean + 1
        self._left = self._clean >= self._batches
        self._clean = 0 if self._left else self._clean
        return not self._left
