"""What a reader is asked for: the file, how it is written, and the columns to keep."""

from __future__ import annotations

import codecs
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from isde.data.table import column_positions
from isde.errors import InputError
from isde.memory import check_memory, in_words

STANDARD_INPUT = "-"
"""In place of a path; what comes is read as csv."""


FIRST_BYTES, MOST_INPUT_BYTES = 1 << 16, 1 << 31
"""Of standard input: what is looked at before more is read, and what is held at most."""

GZIP_START = b"\x1f\x8b"
UTF_MARKS = {
    "UTF-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
    "UTF-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
}
"""How text begins that may have bytes of zero; UTF-32 first, as one of its marks begins with one of UTF-16."""


def standard_input(encoding: str | None) -> bytes:
    """All that comes; refused where it is no text from the start, or does not end."""
    stream, content = sys.stdin.buffer, bytearray()
    while part := stream.read(FIRST_BYTES):
        content += part
        marks = (GZIP_START, *(mark for marks in UTF_MARKS.values() for mark in marks))
        if len(content) == len(part) and encoding is None and b"\0" in part and not part.startswith(marks):
            raise InputError("standard input is no text: give csv, or write it to a file of the right ending.")
        if len(content) >= MOST_INPUT_BYTES:
            most = in_words(MOST_INPUT_BYTES)
            raise InputError(f"standard input holds {most} or does not end: write it to a file, and give that.")
    return bytes(content)


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

    def check_size(self, n_rows: int, n_columns: int) -> None:
        """Refuse a table of more numbers than this machine can hold, before any of it is read."""
        what = f"{self.where}, of {n_rows:,} rows and {n_columns:,} columns,"
        check_memory(n_rows * n_columns * 8, what, "give fewer rows, or fewer columns (columns=)")

    def positions(self, names: Sequence[str]) -> list[int]:
        """The columns to keep of a file with these names."""
        wanted = self.columns
        if wanted is None and self.preferred is not None and set(self.preferred) <= set(names):
            wanted = self.preferred
        return column_positions(names, wanted, self.where)
