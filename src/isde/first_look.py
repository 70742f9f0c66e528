"""A first look at every triple, where triples are too many to score by kernels: what three columns say that no two do.

Ranks of a column, made uniform, are seen through a few waves, cos(pi n u). Of three independent columns the product of
three waves has mean 0 and variance 1 over the rows, and so it has where one of them is independent of the other two.
The squares of these means, the quicker waves counting less, as they do for kernels wide enough to tell weak dependence,
are what three columns gain together, but for what pairs tell; all of them are a few matrix products, by all rows.
"""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from isde.arrays import Matrix, Vector
from isde.normal_scores import normal_scores
from isde.run.executors import workers
from isde.subsets import binomials

WAVES = 6
"""Waves of each column."""

FLOAT_BYTES, DOUBLE_BYTES = 4, 8

QUICKER = 0.8
"""How much a wave counts, relative to the one before it."""


def looks_of_triples(X: Matrix, n_jobs: int | None) -> Vector:
    """What each triple of columns seems to gain beyond its pairs, nats a row, in colexicographic order."""
    waves, d = waves_of(X), X.shape[1]
    looks, choose = np.empty(comb(d, 3)), binomials(d, 3)
    with workers(n_jobs) as run:
        for middle, found in zip(range(1, d - 1), run(_around, ((waves, c) for c in range(1, d - 1))), strict=True):
            low, high = np.arange(middle)[:, None], np.arange(middle + 1, d)[None]
            looks[choose[low, 1] + choose[middle, 2] + choose[high, 3]] = found
    return looks


def bytes_of_looks(n_rows: int, n_columns: int, n_workers: int) -> int:
    """Bytes for looking at all triples: waves, workers' copies of those on both sides of a column, and all looks."""
    waves = WAVES * FLOAT_BYTES * n_rows * n_columns
    ranks = 2 * DOUBLE_BYTES * n_rows * n_columns
    return waves + ranks + n_workers * 3 * waves // 2 + (DOUBLE_BYTES + 1) * comb(n_columns, 3)


def waves_of(X: Matrix) -> NDArray[np.float32]:
    """sqrt(2) cos(pi n u) of the ranks of each column, waves by rows by columns."""
    u, waves = ndtr(normal_scores(X, X[:0])[0]), np.empty((WAVES, *X.shape), dtype=np.float32)
    for n, wave in enumerate(waves, start=1):
        wave[:] = np.sqrt(2) * np.cos(np.pi * n * u)
    return waves


def _around(waves: NDArray[np.float32], middle: int) -> Matrix:
    """The looks of all triples with one column in the middle: lower columns by higher ones."""
    n_waves, n, d = waves.shape
    low, high = (np.hstack(list(part)) for part in (waves[:, :, :middle], waves[:, :, middle + 1 :]))
    counts = QUICKER ** np.arange(n_waves)
    found = np.zeros((middle, d - 1 - middle))
    for wave, count in zip(waves, counts, strict=True):
        means = (low * wave[:, middle, None]).T @ high / n
        squares = (means.astype(np.float64) ** 2 - 1 / n).reshape(n_waves, middle, n_waves, -1)
        found += count * np.einsum("a,b,aibj->ij", counts, counts, squares)
    return found / 2
