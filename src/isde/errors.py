"""The errors and warnings of isde that are not plain misuse of a function.

Misuse raises `ValueError` or `TypeError`, as everywhere in scikit-learn.
"""

from __future__ import annotations

from typing import Any


class ISDEError(Exception):
    """Something isde could not do, said in one sentence."""


class InputError(ISDEError, ValueError):
    """A file or table that cannot be used as it is: names the culprit and the way out."""


class UnprovedPartition(ISDEError):
    """A solver answered without a proof; `selection` holds what it found."""

    def __init__(self, message: str, selection: Any) -> None:
        super().__init__(message)
        self.selection = selection


class ISDEWarning(UserWarning):
    """A result a user should look at twice; the text says what to do."""
