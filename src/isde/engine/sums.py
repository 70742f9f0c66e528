"""Kernel densities and Gaussians of blocks: bandwidths, and log-densities of rows, by all workers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from isde.arrays import Mask, Matrix, Vector
from isde.engine import kernels
from isde.engine.grid import BandwidthGrid
from isde.engine.plan import blocks_tile
from isde.engine.products import BandwidthSearch, RowSet
from isde.engine.whitening import whitening
from isde.run.executors import n_threads, workers
from isde.splits import Folds

ROWS_AT_ONCE = 1 << 13

FEW_PAIRS = 1 << 24
"""Of rows and centres, times columns: about 10 ms of one worker, as long as it takes to start some."""


def choose_bandwidths(
    X: Matrix, blocks: Sequence[Sequence[int]], folds: Folds, grid: BandwidthGrid, n_jobs: int | None
) -> tuple[Vector, Mask]:
    """The bandwidth for the columns of each block, and whether it lies inside the grid."""
    tile = blocks_tile(blocks)
    with workers(n_jobs) as run:
        search = BandwidthSearch(tile, RowSet.of_folds(X, folds, grid.keeps_normal), grid, run)
        chosen, settled = search.best()
    return search.h[chosen[search.real]], settled[search.real]


def log_kernel_sums(rows: Matrix, centres: Matrix, bandwidth: float, n_jobs: int | None) -> Vector:
    """log sum_j exp(-|row - centre_j|^2 / (2 h^2)) of each row, float64, exact however far the row."""
    rate = 1 / (2 * bandwidth**2)
    return np.concatenate(_in_parts(_log_kernel_sums_part, rows, centres, rate, n_jobs))


def log_kernel_sums_of_ladder(
    rows: Matrix, centres: Matrix, widest: float, n_bandwidths: int, n_jobs: int | None
) -> Matrix:
    """`log_kernel_sums` for bandwidths, each half of the one before, (bandwidths, rows): distances are shared."""
    fours = -(-n_bandwidths // 4)
    rate = 1 / (2 * widest**2)
    parts = _in_parts(partial(_log_kernel_sums_of_ladder_part, 4 * fours), rows, centres, rate, n_jobs)
    return np.concatenate(parts, axis=1)[:n_bandwidths]


def log_gaussian_sums(
    rows: Matrix, weights: Vector, means: Matrix, covariances: NDArray[np.float64], n_jobs: int | None
) -> Vector:
    """log sum_k weights[k] N(row; means[k], covariances[k]) of each row, float64, exact however far the row."""
    factors = whitening(covariances)
    levels = np.log(weights) + np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    levels -= 0.5 * means.shape[1] * np.log(2 * np.pi)
    gaussians = np.array(means), factors * np.sqrt(0.5 * math.log2(math.e)), levels * math.log2(math.e)
    step = min(ROWS_AT_ONCE, max(64, -(-len(rows) // (4 * n_threads(n_jobs)))))
    parts = [(rows[i : i + step], *gaussians) for i in range(0, len(rows), step)]
    with workers(n_jobs if rows.size * len(weights) > FEW_PAIRS else 1) as run:
        return np.concatenate([np.empty(0), *run(_log_gaussian_sums_part, parts)])


def _log_gaussian_sums_part(rows: Matrix, means: Matrix, factors: NDArray[np.float64], levels: Vector) -> Vector:
    out = np.empty(len(rows))
    scratch = np.empty((len(levels) + 3, kernels.ROWS_TOGETHER))
    columns = np.array(rows.T, order="C")
    kernels.log_gaussian_sums(columns, means, factors, levels, out, scratch[:-2], scratch[-2], scratch[-1])
    return out


def _in_parts(
    function: Callable[..., Matrix], rows: Matrix, centres: Matrix, rate: float, n_jobs: int | None
) -> list[Matrix]:
    """A function of (rows, centres as columns, rate) for some rows at a time, by all workers."""
    columns = np.array(centres.T, order="C")  # a copy always: read-only arrays would compile the sums again
    # Small enough for every worker to get some, and none larger than a cache of results.
    step = min(ROWS_AT_ONCE, max(64, -(-len(rows) // (4 * n_threads(n_jobs)))))
    parts = [(rows[i : i + step], columns, rate) for i in range(0, len(rows), step)]
    with workers(n_jobs if rows.size * len(centres) > FEW_PAIRS else 1) as run:
        return list(run(function, parts))


def _log_kernel_sums_of_ladder_part(n_bandwidths: int, rows: Matrix, columns: Matrix, rate: float) -> Matrix:
    out = np.empty((n_bandwidths, len(rows)))
    every, totals, scratch = np.arange(len(columns)), np.empty(n_bandwidths), kernels.kept_distances(columns.shape[1])
    kernels.log_kernel_sums_of_ladder(np.ascontiguousarray(rows), columns, rate, out, every, totals, *scratch)
    return out


def _log_kernel_sums_part(rows: Matrix, columns: Matrix, rate: float) -> Vector:
    out = np.empty(len(rows))
    every = np.arange(len(columns))[None, :]
    scratch = kernels.kept_distances(columns.shape[1])
    row, rates = np.arange(len(rows)), np.array([rate])
    kernels.log_kernel_sums(np.ascontiguousarray(rows), columns, every, row, rates, out, *scratch)
    return out
