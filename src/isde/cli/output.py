"""What reaches the terminal: lines without control codes, whatever the names of columns and files hold."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click

from isde.data.words import guarded
from isde.errors import printable


def echo(text: str, *, err: bool = False) -> None:
    """Lines on standard output, or on standard error."""
    click.echo("\n".join(map(printable, text.split("\n"))), err=err)


def print_csv(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table on standard output; its names as they are, but for what a spreadsheet would run, or a terminal obey."""
    cells = [guarded(name) for name in names]
    if sys.stdout.isatty():
        cells = [printable(cell) for cell in cells]
    plain = csv.writer(sys.stdout, lineterminator="\n")
    # Python before 3.13 does not quote a carriage return, at which readers begin a new line.
    quoted = csv.writer(sys.stdout, lineterminator="\n", quoting=csv.QUOTE_ALL)
    (quoted if any("\r" in cell for cell in cells) else plain).writerow(cells)
    plain.writerows(rows)
