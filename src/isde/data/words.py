"""How messages about tables name their culprits."""

from __future__ import annotations

from collections.abc import Sequence


def some(items: Sequence[str], limit: int = 5) -> str:
    """The first few items in words.

    >>> some(["a", "b", "c"], limit=2)
    'a, b and 1 more'
    """
    shown = ", ".join(items[:limit])
    return shown if len(items) <= limit else f"{shown} and {len(items) - limit:,} more"


def first_line(error: Exception) -> str:
    """What another library said, without what it went on to say."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".:")
