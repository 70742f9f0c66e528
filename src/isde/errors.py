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


LONGEST_LINE = 300
"""Letters of what another library said."""


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


def printable(text: str) -> str:
    """Text of others as it may be shown: what would move a cursor, break a line or turn letters around, is escaped.

    >>> printable("a\\x1b[2J\\nb"), printable("ä b")
    ('a\\\\x1b[2J\\\\nb', 'ä b')
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def first_line(error: Exception) -> str:
    """What another library said, without what it went on to say."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    line = printable(lines[0].rstrip(".:"))
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}..."


def warn(text: str) -> None:
    """Warn in the name of the line that called isde, however deep inside it the reason was found."""
    for texts in _said.get():
        texts.append(text)
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(INSIDE):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, ISDEWarning, stacklevel=level)
