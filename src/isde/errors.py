"""The errors and warnings of isde that are not plain misuse of a function.

Misuse raises `ValueError` or `TypeError`, as everywhere in scikit-learn.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
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


class ISDEWarning(UserWarning):
    """A result a user should look at twice; the text says what to do."""


_said: ContextVar[tuple[list[str], ...]] = ContextVar("said", default=())
"""Lists that what is warned of is added to."""


@contextmanager
def collecting() -> Iterator[list[str]]:
    """The texts of all warnings of isde until the block ends; they are warned of as ever."""
    texts: list[str] = []
    token = _said.set((*_said.get(), texts))
    try:
        yield texts
    finally:
        _said.reset(token)


def warn(text: str) -> None:
    """Warn in the name of the line that called isde, however deep inside it the reason was found."""
    for texts in _said.get():
        texts.append(text)
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(INSIDE):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, ISDEWarning, stacklevel=level)
