"""Rows on which an expression of the user fails: found, set aside and counted, so that none of them stops a run.

Comes in: expressions and functions of the user, and rows of any value.
Goes out: guarded SQL where an expression may throw, none where it cannot, and the rows that were rejected, with the
reason.
"""
