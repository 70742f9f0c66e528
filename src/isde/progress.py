"""Progress on standard error: a bar with the remaining time, or nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

Advance = Callable[[int], None]
"""Called with the units of work just done."""


def say(text: str) -> None:
    """A line of talk on standard error."""
    click.echo(text, err=True)


@contextmanager
def progress_bar(total: int, label: str, *, show: bool) -> Iterator[Advance]:
    """A bar of `total` units; without `show` the callback does nothing.

    Where standard error is no terminal only the label is printed, once (click's behaviour): logs stay readable.
    """
    if not show:
        yield lambda n: None
        return
    with click.progressbar(length=total, label=label, file=sys.stderr, show_eta=True, update_min_steps=1) as bar:
        yield bar.update
