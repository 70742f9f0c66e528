"""The errors and warnings of isde that are not plain misuse of a function.

Misuse raises `ValueError` or `TypeError`, as everywhere in scikit-learn.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

INSIDE = ("isde.", "sklearn.callback.")
"""Modules whose lines say nothing to a user: ours, and those that call our `fit` in the name of callbacks."""


class ISDEError(Exception):
    """Something isde could not do, said in one sentence."""


class InputError(ISDEError, ValueError):
    """A file or table that cannot be used as it is: names the culprit and the way out."""


class UnprovedPartition(ISDEError):
    """A solver answered without a proof; `selection` holds what it found."""

    def __init__(self, message: str, selection: Any) -> None:
        super().__init__(message)
        self.selection = selection


class CheckpointError(ISDEError):
    """A run folder that cannot be gone on with: other data or parameters, in use, or damaged beyond what is skipped."""


class ResourceError(ISDEError):
    """The machine has too little disk or memory; what is done is kept."""


class ClusterError(ISDEError):
    """The cluster was lost; what is done is kept."""


class ISDEWarning(UserWarning):
    """A result a user should look at twice; the text says what to do."""


class PartialWarning(ISDEWarning):
    """Some subsets have no score, since scoring them ended the process that did it each time."""


def warn(text: str, category: type[ISDEWarning] = ISDEWarning) -> None:
    """Warn in the name of the line that called isde, however deep inside it the reason was found."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(INSIDE):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)
