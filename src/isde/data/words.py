"""How columns, and culprits among them, are named in messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def some(items: Sequence[str], limit: int = 5) -> str:
    """The first few items in words.

    >>> some(["a", "b", "c"], limit=2)
    'a, b and 1 more'
    """
    shown = ", ".join(items[:limit])
    return shown if len(items) <= limit else f"{shown} and {len(items) - limit:,} more"


def join_names(names: Iterable[str], separator: str = ", ") -> str:
    """Names in one line, quoted where one could be taken for two: what the command line takes apart again.

    >>> join_names(["a", "b, c"]), join_names(["a", "b c"], " ")
    ('a, "b, c"', 'a "b c"')
    """
    special = {separator.strip() or separator, '"'}
    return separator.join('"' + name.replace('"', '""') + '"' if special & set(name) else name for name in names)


def in_braces(names: Iterable[str]) -> str:
    """The columns of a block as one label.

    >>> in_braces(["a", "b, c"])
    '{a, "b, c"}'
    """
    return "{" + join_names(names) + "}"
