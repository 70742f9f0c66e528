"""Drawing some columns of a mixture given the others: first which part a row comes from, then the row."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from isde.arrays import Matrix, Positions, Vector
from isde.engine.direct import squared_distances
from isde.marginals.marginal import FittedBlock, checked_columns

ROWS_AT_ONCE_BYTES = 1 << 25


def given_and_others(columns: Sequence[int], values: Matrix, n_columns: int) -> tuple[list[int], list[int]]:
    """The columns given, checked against their values, and those to be drawn."""
    given = checked_columns(columns, n_columns)
    if np.ndim(values) != 2 or np.shape(values)[1] != len(given):
        raise ValueError(f"values of shape {np.shape(values)} for {len(given)} columns: give a matrix, a row each.")
    return given, [c for c in range(n_columns) if c not in given]


def draw_parts(log_weights: Matrix, uniform: Vector) -> Positions:
    """For each row, the part at a uniform number: of probability in proportion to exp(log_weights[row, part])."""
    # The heaviest part gets weight 1: the sum cannot underflow, however unlikely the row is.
    cumulated = np.exp(log_weights - log_weights.max(axis=1, keepdims=True)).cumsum(axis=1)
    return (cumulated < uniform[:, None] * cumulated[:, -1:]).sum(axis=1)


def draw_centres(values: Matrix, centres: Matrix, uniform: Vector) -> Positions:
    """For each row of values, a centre of probability in proportion to exp(-|value - centre|^2 / 2)."""
    chosen = np.empty(len(values), dtype=np.intp)
    step = max(1, ROWS_AT_ONCE_BYTES // (8 * len(centres)))
    for start in range(0, len(values), step):
        part = slice(start, start + step)
        chosen[part] = draw_parts(-0.5 * squared_distances(values[part], centres), uniform[part])
    return chosen


def sample_mixture_given(
    parts: Sequence[FittedBlock],
    shares: Vector,
    columns: Sequence[int],
    values: Matrix,
    rng: np.random.RandomState,
) -> Matrix:
    """Complete rows of  sum_e shares[e] parts[e]  whose `columns` are `values`."""
    n_columns = parts[0].n_columns
    given, _ = given_and_others(columns, values, n_columns)
    rows = np.empty((len(values), n_columns))
    log_weights = [
        part.marginal(given).score_samples(values) + np.log(w) for part, w in zip(parts, shares, strict=True)
    ]
    chosen = draw_parts(np.column_stack(log_weights), rng.uniform(size=len(values)))
    for e, part in enumerate(parts):
        own = chosen == e
        if own.any():
            rows[own] = part.sample_given(given, values[own], rng)
    return rows
