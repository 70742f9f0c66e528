"""How columns, and culprits among them, are named in messages."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from isde.errors import printable


def some(items: Sequence[str], limit: int = 5) -> str:
    """The first few items in words.

    >>> some(["a", "b", "c"], limit=2)
    'a, b and 1 more'
    """
    shown = ", ".join(items[:limit])
    return shown if len(items) <= limit else f"{shown} and {len(items) - limit:,} more"


def several(n: int, what: str) -> str:
    """A number of things.

    >>> several(1, "block"), several(1200, "row")
    ('1 block', '1,200 rows')
    """
    return f"{n:,} {what}" + ("" if n == 1 else "s")


def join_names(names: Iterable[str], separator: str = ", ") -> str:
    """Names in one line, quoted where one could be taken for two: what the command line takes apart again.

    Line breaks and control codes, which no shell likes either, are shown as their escapes.

    >>> join_names(["a", "b, c"]), join_names(["a", "b c"], " ")
    ('a, "b, c"', 'a "b c"')
    """
    special = {separator.strip() or separator, '"'}
    names = map(printable, names)
    return separator.join('"' + name.replace('"', '""') + '"' if special & set(name) else name for name in names)


FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""How a cell begins that a spreadsheet takes for a formula, and may run."""


def guarded(name: str) -> str:
    """A name as the cell of a CSV file, with an apostrophe before what could be a formula; readers take it off.

    >>> guarded("=1+1"), guarded("a-b")
    ("'=1+1", 'a-b')
    """
    return f"'{name}" if name.startswith(FORMULA_STARTS) else name


def unguarded(cell: str) -> str:
    """The name that `guarded` made a cell of."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(FORMULA_STARTS) else cell


def in_braces(names: Iterable[str]) -> str:
    """The columns of a block as one label.

    >>> in_braces(["a", "b, c"])
    '{a, "b, c"}'
    """
    return "{" + join_names(names) + "}"
