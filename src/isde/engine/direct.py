"""Kernel sums one subset at a time, by their definition: the slow, obvious twin of `products`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isde.arrays import Matrix
from isde.engine.grid import BandwidthGrid
from isde.splits import Folds

ROWS_AT_ONCE_BYTES = 1 << 25


def squared_distances(rows: Matrix, centres: Matrix) -> Matrix:
    """((rows[:, None] - centres[None]) ** 2).sum(axis=2), by coordinate differences: products would cancel."""
    D = np.zeros((len(rows), len(centres)))
    for f in range(rows.shape[1]):
        D += np.subtract.outer(rows[:, f], centres[:, f]) ** 2
    return D


def log_kernel_sums(
    rows: Matrix, centres: Matrix, bandwidths: NDArray[np.float64], keeps_normal: bool = False
) -> Matrix:
    """log sum_j exp(-|rows[i] - centres[j]|^2 / (2 h^2)) for each bandwidth h and row i; never -inf.

    Kernels that keep the normal (see `grid`) have their centres at sqrt(1 - h^2) centres[j].
    """
    if keeps_normal:
        each = [log_kernel_sums(rows, np.sqrt(1 - h**2) * centres, np.array([h])) for h in bandwidths]
        return np.concatenate(each)
    sums = np.empty((len(bandwidths), len(rows)))
    step = max(1, ROWS_AT_ONCE_BYTES // (8 * len(centres)))
    for start in range(0, len(rows), step):
        D = squared_distances(rows[start : start + step], centres)
        nearest = D.min(axis=1, keepdims=True)
        D -= nearest
        for i, h in enumerate(bandwidths):
            rate = 1 / (2 * h**2)
            # The nearest centre contributes exp(0): the sum is at least 1 and its logarithm finite.
            sums[i, start : start + step] = np.log(np.exp(-rate * D).sum(axis=1)) - rate * nearest[:, 0]
    return sums


def log_normaliser(n_columns: int, n_centres: int, bandwidths: NDArray[np.float64]) -> NDArray[np.float64]:
    """log(n (2 pi)^(s/2) h^s): what a kernel sum is divided by to become a density."""
    result: NDArray[np.float64] = np.log(n_centres) + n_columns * (0.5 * np.log(2 * np.pi) + np.log(bandwidths))
    return result


def cv_log_likelihood(
    X: Matrix, folds: Folds, bandwidths: NDArray[np.float64], keeps_normal: bool = False
) -> NDArray[np.float64]:
    """Mean over all rows of the log-density fitted on the other folds, for each bandwidth."""
    total = np.zeros(len(bandwidths))
    for fit, held_out in folds:
        sums = log_kernel_sums(X[held_out], X[fit], bandwidths, keeps_normal)
        total += sums.sum(axis=1) - len(held_out) * log_normaliser(X.shape[1], len(fit), bandwidths)
    return total / len(X)


def choose_bandwidth(X: Matrix, folds: Folds, grid: BandwidthGrid) -> tuple[float, bool]:
    """The bandwidth with the best cross-validated log-likelihood, and whether it lies inside the grid.

    Where the best value is an end of a growing grid, one more step is tried on that side, until it is not.
    """
    scores = dict(enumerate(cv_log_likelihood(X, folds, grid.values, grid.keeps_normal)))
    while True:
        best = max(scores, key=lambda k: scores[k])
        widest = grid.keeps_normal and grid.step(best) == 1
        if not grid.grows or widest or min(scores) < best < max(scores):
            return grid.step(best), True
        following = best + (1 if best == max(scores) else -1)
        if not -grid.reach <= following < len(grid.values) + grid.reach_above:
            return grid.step(best), False
        scores[following] = cv_log_likelihood(X, folds, np.array([grid.step(following)]), grid.keeps_normal)[0]


def mean_log_density(X_fit: Matrix, X_score: Matrix, bandwidth: float, keeps_normal: bool = False) -> float:
    """mean_i log f(X_score[i]) for the kernel density f with centres X_fit."""
    h = np.array([bandwidth])
    log_density = log_kernel_sums(X_score, X_fit, h, keeps_normal)[0] - log_normaliser(X_fit.shape[1], len(X_fit), h)[0]
    return float(log_density.mean())
