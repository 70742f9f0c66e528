"""Progress at the terminal: talk in the command line's words, and a bar with the remaining time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from isde.cli.flags import in_flags
from isde.cli.output import echo
from isde.errors import printable
from isde.progress import Advance


class BarReporter:
    """Shows progress as click's bar on standard error; where that is no terminal, the label alone, once."""

    hears_all = False

    def say(self, text: str) -> None:
        echo(in_flags(text), err=True)

    @contextmanager
    def bar(self, total: int, label: str) -> Iterator[Advance]:
        with click.progressbar(
            length=total, label=printable(label), file=sys.stderr, show_eta=True, update_min_steps=1
        ) as bar:
            yield bar.update
