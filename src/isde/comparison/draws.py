"""Which rows fit, and which validate: one draw for all methods."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from isde.arrays import FrozenArrays, Vector
from isde.density_estimator import LEAST_ROWS
from isde.errors import InputError

Rows = NDArray[np.intp]

TRAIN_ROWS, VALIDATION_ROWS = 5000, 2000
"""Of the paper's real-data experiment, where the table is large enough."""


@dataclass(frozen=True, eq=False)
class Draw(FrozenArrays):
    """Which rows fit, and which validate."""

    train: Rows
    samples: Rows  # the rows of each validation sample, (repeats, rows); none of them in train

    @cached_property
    def rows(self) -> Rows:
        """Every validation row once, in order: samples of one table overlap."""
        return np.unique(self.samples)

    @cached_property
    def positions(self) -> Rows:
        """Where in `rows` the rows of each sample are."""
        return np.searchsorted(self.rows, self.samples)

    @cached_property
    def shares(self) -> Vector:
        """What share each of `rows` has in the mean over all samples; they add up to 1."""
        return np.bincount(self.positions.ravel()) / self.samples.size


def draw_rows(
    n_rows: int,
    *,
    train_rows: int | None = None,
    validation_rows: int | None = None,
    repeats: int = 20,
    fits: int = 1,
    random_state: int = 0,
) -> list[Draw]:
    """`fits` draws of training rows, each with `repeats` validation samples of the rows left, as in the paper.

    A sample has no row twice; samples are drawn independently of each other, so that two may share rows. None means
    5,000 rows to train, or half of the table where that is less; and 2,000 to validate, or half of the rows left.
    """
    n_train, n_valid = _sizes(n_rows, train_rows, validation_rows)
    for name, value in (("repeats", repeats), ("fits", fits)):
        if value < 1:
            raise InputError(f"{name}={value} must be at least 1.")
    draws = []
    for seed in np.random.SeedSequence(random_state).spawn(fits):
        rng = np.random.default_rng(seed)
        order = rng.permutation(n_rows)
        left = order[n_train:]
        samples = np.array([rng.choice(left, n_valid, replace=False) for _ in range(repeats)])
        draws.append(Draw(order[:n_train], samples))
    return draws


def _sizes(n_rows: int, train_rows: int | None, validation_rows: int | None) -> tuple[int, int]:
    n_train = min(TRAIN_ROWS, n_rows // 2) if train_rows is None else train_rows
    n_valid = min(VALIDATION_ROWS, (n_rows - n_train) // 2) if validation_rows is None else validation_rows
    if train_rows is None and n_train < LEAST_ROWS:
        raise InputError(f"{n_rows:,} rows are too few to compare: give at least {2 * LEAST_ROWS}.")
    if validation_rows is None and n_valid < 1:
        raise InputError(
            f"train_rows={train_rows} leaves too few of {n_rows:,} rows to validate on: give at most {n_rows - 2:,}."
        )
    for what, value, least in (("training", n_train, LEAST_ROWS), ("validation", n_valid, 1)):
        if value < least:
            raise InputError(f"{value:,} {what} rows of {n_rows:,} are too few: at least {least} are needed.")
    if n_train + n_valid > n_rows:
        raise InputError(
            f"{n_train:,} training rows and {n_valid:,} validation rows are more than the {n_rows:,} rows there are."
        )
    return n_train, n_valid
