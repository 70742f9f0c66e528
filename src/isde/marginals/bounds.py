"""How much of many rows the densities of blocks are learned from: cost stops growing where a block gains no more.

Kernels cost rows times centres, to fit and again to score; mixtures and weights cost rows times components. Which rows
is left to chance: those to fit on come shuffled, so that the first of them, or evenly spaced ones, are a random part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from isde.arrays import IntVector

MAX_FIT_ROWS = 200_000
"""Rows that a block is learned from (docs/many_rows.md)."""

MAX_CENTRES = 5_000
"""Of these, centres of kernels: what a million rows can be scored by in minutes (docs/many_rows.md)."""

LEAST = 2
"""Rows, or centres, that folds need: one to fit on, another to score."""


@dataclass(frozen=True)
class Bounds:
    """Rows that blocks are learned from at most, and centres of kernels among them; None: all."""

    max_fit_rows: int | None = MAX_FIT_ROWS
    max_centres: int | None = MAX_CENTRES

    def __post_init__(self) -> None:
        check_bound("max_fit_rows", self.max_fit_rows)
        check_bound("max_centres", self.max_centres)

    def n_rows(self, n_rows: int) -> int:
        """So many of the rows are learned from."""
        return n_rows if self.max_fit_rows is None else min(n_rows, self.max_fit_rows)

    def n_centres(self, n_rows: int) -> int:
        """So many of the rows learned from are centres."""
        return n_rows if self.max_centres is None else min(n_rows, self.max_centres)

    def centres(self, n_rows: int) -> IntVector | None:
        """Which of the rows learned from, evenly spaced, so that every fold has its share of them; None: all.

        >>> Bounds(max_centres=4).centres(10).tolist()
        [0, 2, 5, 7]
        """
        most = self.n_centres(n_rows)
        return None if most == n_rows else np.arange(most) * n_rows // most


def check_bound(name: str, value: Any) -> None:
    """Raise unless it is a number of rows, or None."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if value is not None and not (whole and value >= LEAST):
        raise ValueError(f"{name}={value!r} must be a whole number of at least {LEAST}, or None for all rows.")


UNBOUNDED = Bounds(None, None)
