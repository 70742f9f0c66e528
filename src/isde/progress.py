"""Progress as a small contract: work says what it does and how far it is, and a reporter shows that.

Without further ado `verbose` in Python means lines on standard error. The command line sets a reporter with a bar, and
scikit-learn's callbacks are one more (`isde.callbacks`): the work knows of none of them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

Advance = Callable[[int], None]
"""Called with the units of work just done."""

QUIET_SECONDS = 10.0
LEAST_SHARE = 0.02
"""Lines are at least so far apart, in time and in work: fifty for one piece of work at most, none for a short one."""


class Reporter(Protocol):
    """Shows what work says of itself."""

    @property
    def hears_all(self) -> bool:
        """Whether it hears of work that nobody asked to be shown."""

    def say(self, text: str) -> None:
        """A line of talk."""

    def bar(self, total: int, label: str) -> AbstractContextManager[Advance]:
        """Work of `total` units begins; the callback is told of those that are done."""


@dataclass(frozen=True)
class Lines:
    """Plain lines on standard error, the same in a terminal, a notebook and a log."""

    clock: Callable[[], float] = time.monotonic  # seconds
    hears_all: bool = False

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    @contextmanager
    def bar(self, total: int, label: str) -> Iterator[Advance]:
        self.say(label)
        yield _Meter(self, total, label).advance


class _Meter:
    """Counts units, and says now and then how many there were and how long the others will take."""

    def __init__(self, lines: Lines, total: int, label: str) -> None:
        self.lines, self.total, self.label = lines, total, label
        self.done = self.done_when_said = 0
        self.begun = self.said = lines.clock()

    def advance(self, n: int) -> None:
        self.done += n
        now = self.lines.clock()
        if now - self.said < QUIET_SECONDS or self.done - self.done_when_said < LEAST_SHARE * self.total:
            return
        left = (now - self.begun) * (self.total - self.done) / self.done
        self.lines.say(f"{self.label}: {self.done / self.total:.0%}, {timedelta(seconds=round(left))} left")
        self.said, self.done_when_said = now, self.done


_reporter: ContextVar[Reporter] = ContextVar("isde_reporter", default=Lines())  # noqa: B039 - it holds no state


@contextmanager
def reporting(reporter: Reporter) -> Iterator[None]:
    """Whatever is done in the block is told to `reporter`."""
    before = _reporter.set(reporter)
    try:
        yield
    finally:
        _reporter.reset(before)


def current_reporter() -> Reporter:
    """The one that `say` and `progress_bar` tell."""
    return _reporter.get()


def say(text: str) -> None:
    """A line of talk, to whoever shows it."""
    current_reporter().say(text)


@contextmanager
def progress_bar(total: int, label: str, *, show: bool) -> Iterator[Advance]:
    """Work of `total` units, shown; without `show` only a reporter that hears of everything is told."""
    reporter = current_reporter()
    if not (show or reporter.hears_all):
        yield lambda n: None
        return
    with reporter.bar(total, label) as advance:
        yield advance
