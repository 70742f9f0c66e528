"""How much of many rows is used: cost stops growing where little is gained.

Kernels cost rows times centres, to fit and again to score; mixtures and weights cost rows times components. Which rows
is left to chance: those to fit on come shuffled, so that the first of them, or evenly spaced ones, are a random part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from isde.arrays import IntVector

MAX_SPLIT_ROWS, MAX_FIT_ROWS, MAX_CENTRES = 10_000, 200_000, 5_000
"""Rows of the table of which a split is one, as far as its size goes; rows that a block is learned from, and centres of
kernels among them: what more gains, docs/many_rows.md says."""

LEAST_SPLIT_ROWS, LEAST_BOUND = 20, 2
"""Rows that a split and its folds need; rows, or centres, that folds need: one to fit on, another to score."""


@dataclass(frozen=True)
class RowsUsed:
    """How many rows there were, how many of them blocks were learned from, and centres of kernels among these at most.

    Without kernels there are no centres.

    >>> print(RowsUsed(1_000_000, 200_000, 5_000))
    200,000 of 1,000,000 rows, with 5,000 centres of kernels at most
    >>> print(RowsUsed(900, 900, 900))
    all 900 rows
    """

    given: int
    fitted: int
    centres: int

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> RowsUsed:
        """From a file, of which nothing is believed."""
        used = cls(**saved)
        whole = all(type(number) is int for number in saved.values())
        if not whole or not 0 <= used.centres <= used.fitted <= used.given or used.fitted == 0:
            raise ValueError(f"{saved!r} are no numbers of rows used")
        return used

    @property
    def is_all(self) -> bool:
        return self.fitted == self.given and self.centres in (0, self.fitted)

    def __str__(self) -> str:
        rows = f"all {self.given:,} rows" if self.fitted == self.given else f"{self.fitted:,} of {self.given:,} rows"
        return rows if self.centres in (0, self.fitted) else f"{rows}, with {self.centres:,} centres of kernels at most"


@dataclass(frozen=True)
class Bounds:
    """Rows that blocks are learned from at most, and centres of kernels among them; None: all."""

    max_fit_rows: int | None = MAX_FIT_ROWS
    max_centres: int | None = MAX_CENTRES

    def __post_init__(self) -> None:
        check_bound("max_fit_rows", self.max_fit_rows)
        check_bound("max_centres", self.max_centres)

    def used(self, n_rows: int) -> RowsUsed:
        """What is left of so many rows."""
        fitted = n_rows if self.max_fit_rows is None else min(n_rows, self.max_fit_rows)
        return RowsUsed(n_rows, fitted, self.n_centres(fitted))

    def n_centres(self, n_rows: int) -> int:
        """So many of the rows learned from are centres."""
        return n_rows if self.max_centres is None else min(n_rows, self.max_centres)

    def centres(self, n_rows: int) -> IntVector | None:
        """Which of the rows learned from, evenly spaced, so that every fold has its share of them; None: all.

        >>> Bounds(max_centres=4).centres(10).tolist()
        [0, 2, 5, 7]
        """
        import numpy as np  # here: the command line has the defaults above in its help, which should cost nothing

        most = self.n_centres(n_rows)
        return None if most == n_rows else np.arange(most) * n_rows // most


def check_bound(name: str, value: Any, least: int = LEAST_BOUND) -> None:
    """Raise unless it is a number of rows, or None."""
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if value is not None and not (whole and value >= least):
        raise ValueError(f"{name}={value!r} must be a whole number of at least {least}, or None for all rows.")


UNBOUNDED = Bounds(None, None)
