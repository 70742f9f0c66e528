"""What a reader is asked for: the file, how it is written, and the columns to keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from isde.data.table import column_positions

STANDARD_INPUT = "-"
"""In place of a path; what comes is read as csv."""


def source_name(path: str | Path) -> str:
    """Where a table comes from, in words.

    >>> source_name("data.csv"), source_name("-")
    ('data.csv', 'standard input')
    """
    return "standard input" if str(path) == STANDARD_INPUT else str(path)


@dataclass(frozen=True)
class Request:
    """A file, how it is to be read, and what of it; None means: see for yourself."""

    path: Path  # "-" where the content came through standard input
    content: bytes | None  # what came through standard input; None for a file
    separator: str | None
    encoding: str | None
    header: bool | None
    columns: Sequence[str] | None  # to keep, in this order
    preferred: Sequence[str] | None  # to keep without `columns`, where the file holds all of them
    verbose: int

    @property
    def where(self) -> str:
        """The file, as messages call it."""
        return source_name(self.path)

    def positions(self, names: Sequence[str]) -> list[int]:
        """The columns to keep of a file with these names."""
        wanted = self.columns
        if wanted is None and self.preferred is not None and set(self.preferred) <= set(names):
            wanted = self.preferred
        return column_positions(names, wanted, self.where)
