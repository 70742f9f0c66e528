"""A convex combination of experts for one subset: kernel densities of several bandwidths, and Gaussian mixtures.

Each expert's log-density of every row is had from the rows of the other folds; weights are chosen by
expectation-maximisation on these, so that no expert is trusted for what it learned by heart. `score_subset` is the
unit of work; experts are fitted again on all rows for `fit_stack`.

Kernel sums are float32 and leave out centres farther than 6.4 bandwidths, where a wider expert says more: the Gaussian
has a row's worth of weight at least, so that every row has a density.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.special import logsumexp

from isde.engine.mixtures import Mixtures, grow_mixtures, log_densities

F32 = np.float32
CENTRES_AT_ONCE = 512
LEAST_WEIGHT = 1e-4
"""An expert with less is left out: it costs time for each row to be scored, and says nothing."""

WEIGHT_STEPS = 300
WEIGHT_TOLERANCE = 1e-5

NOTHING = -1e30
"""The log-density of an expert that does not see a row."""

fast = njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz", "nnan"}, error_model="numpy")

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Stack:
    """What was learned for one subset."""

    kernel_weights: Vector  # aligned with the bandwidths
    mixtures: Mixtures
    mixture_weights: Vector  # aligned with the sizes of the mixtures
    held_out: NDArray[np.float32]  # log-density of each row by each expert, from the other folds, (experts, rows)


def bandwidth_ladder(low: float, high: float) -> Vector:
    """Bandwidths from `high` down to `low` or just below, each half of the one before, an even number of them.

    >>> bandwidth_ladder(0.01, 0.5).tolist()
    [0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625]
    """
    n = int(np.ceil(np.log2(high / low) - 1e-9)) + 1
    ladder: Vector = high * 0.5 ** np.arange(n + n % 2, dtype=np.float64)
    return ladder


def fit_stack(X: Matrix, fold: NDArray[np.int64], bandwidths: Vector, doublings: int) -> Stack:
    """Experts and their weights for the rows of X; `fold` ascends."""
    mixtures = grow_mixtures(X, fold, doublings)
    kernels = _kernel_log_densities(X, fold, X, fold, bandwidths)
    held_out = np.concatenate([kernels, mixtures.held_out])
    weights = _weights(held_out, prior=len(bandwidths))
    return Stack(weights[: len(bandwidths)], mixtures, weights[len(bandwidths) :], held_out)


def score_subset(X_fit: Matrix, X_score: Matrix, fold: NDArray[np.int64], bandwidths: Vector, doublings: int) -> float:
    """Mean log-density of X_score by the stack of X_fit."""
    stack = fit_stack(X_fit, fold, bandwidths, doublings)
    used = np.flatnonzero(stack.kernel_weights)
    rows = np.ascontiguousarray(X_score.T, dtype=np.float32)
    nowhere = np.full(len(X_score), -1)
    parts = [_kernel_log_densities(X_fit, fold, X_score, nowhere, bandwidths)[used]] if used.size else []
    sizes = np.flatnonzero(stack.mixture_weights)
    mixtures = stack.mixtures
    for i in sizes:
        parts.append(log_densities(rows, mixtures.weights[i], mixtures.means[i], mixtures.covariances[i])[None])
    weights = np.concatenate([stack.kernel_weights[used], stack.mixture_weights[sizes]])
    logs = np.concatenate(parts).astype(np.float64)
    return float(logsumexp(logs + np.log(weights)[:, None], axis=0).mean())


def _kernel_log_densities(
    centres: Matrix,
    centre_fold: NDArray[np.int64],
    queries: Matrix,
    query_fold: NDArray[np.int64],
    bandwidths: Vector,
) -> NDArray[np.float32]:
    """Log kernel density of each query by the centres of the other folds, (bandwidths, queries)."""
    n_folds = int(centre_fold.max()) + 1
    edges = np.searchsorted(centre_fold, np.arange(n_folds + 1))
    rate = np.log2(np.e) / (2 * bandwidths**2)
    sums = np.zeros((len(bandwidths), len(queries)), dtype=np.float32)
    columns = (np.ascontiguousarray(rows.T, dtype=np.float32) for rows in (centres, queries))
    _sum_kernels(*columns, edges, query_fold, rate[::2].astype(np.float32), sums)
    own = np.diff(edges)[query_fold] * (query_fold >= 0)
    constant = np.log(len(centres) - own) + centres.shape[1] * (np.log(bandwidths) + 0.5 * np.log(2 * np.pi))[:, None]
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(sums) - constant, NOTHING).astype(np.float32)


@fast
def _sum_kernels(
    centres: Any,  # in: (s, m), those of a fold side by side
    queries: Any,  # in: (s, q)
    edges: Any,  # in: where each fold starts; fold v ends at edges[v + 1]
    fold: Any,  # in: the fold that each query must not see; -1: none
    rates: Any,  # in: of every second bandwidth, for powers of two
    sums: Any,  # out: (bandwidths, q)
) -> None:
    s, m = centres.shape
    D = np.empty(CENTRES_AT_ONCE, dtype=np.float32)
    for q in range(queries.shape[1]):
        hole = edges[fold[q]] if fold[q] >= 0 else m
        after = edges[fold[q] + 1] if fold[q] >= 0 else m
        for part in range(2):
            begin, end = (0, hole) if part == 0 else (after, m)
            for start in range(begin, end, CENTRES_AT_ONCE):
                n = min(CENTRES_AT_ONCE, end - start)
                x, column = queries[0, q], centres[0]
                for i in range(n):
                    difference = column[start + i] - x
                    D[i] = difference * difference
                for c in range(1, s):
                    x, column = queries[c, q], centres[c]
                    for i in range(n):
                        difference = column[start + i] - x
                        D[i] += difference * difference
                for j in range(len(rates)):
                    wide, narrow = _two_sums(D, n, rates[j])
                    sums[2 * j, q] += wide
                    sums[2 * j + 1, q] += narrow


@fast
def _two_sums(D: Any, n: int, rate: Any) -> Any:
    """Sums of exp2(-rate D) and of its fourth power, the kernel of half the bandwidth; values below 2^-30 are left out.

    So the fourth power is never a denormal number.
    """
    wide = narrow = F32(0.0)
    for i in range(n):
        x = max(-rate * D[i], F32(-31.0))
        whole = np.floor(x + F32(0.5))
        t = x - whole  # in [-1/2, 1/2]
        t2 = t * t
        low = F32(1.0) + F32(6.9314721e-1) * t + t2 * (F32(2.4022651e-1) + F32(5.5503272e-2) * t)
        high = F32(9.6180567e-3) + F32(1.3400428e-3) * t + t2 * F32(1.5461444e-4)
        v = (low + t2 * t2 * high) * np.int32((np.int32(whole) + np.int32(127)) << np.int32(23)).view(np.float32)
        v = v if x > F32(-30.0) else F32(0.0)
        square = v * v
        wide += v
        narrow += square * square
    return wide, narrow


def _weights(logs: NDArray[np.float32], prior: int) -> Vector:
    """Weights that maximise the mean log-density of the combination; expert `prior` has a row's worth at least."""
    densities = np.exp(logs - logs.max(axis=0))
    weights = _improve_weights(densities, np.full(len(logs), 1 / len(logs)), prior)
    kept = weights >= LEAST_WEIGHT
    kept[prior] = True
    weights = np.where(kept, weights, 0.0)
    return _improve_weights(densities, weights / weights.sum(), prior)


@fast
def _improve_weights(
    densities: Any, weights: Any, prior: int
) -> Any:  # in: (experts, rows), weights; returns better ones
    n_experts, m = densities.shape
    total = np.empty(m, dtype=np.float32)
    for _ in range(WEIGHT_STEPS):
        total[:] = 0
        for e in range(n_experts):
            if weights[e] > 0:
                w, row = F32(weights[e]), densities[e]
                for i in range(m):
                    total[i] += w * row[i]
        for i in range(m):
            total[i] = F32(1.0) / total[i]
        change, new = 0.0, weights.copy()
        for e in range(n_experts):
            if weights[e] > 0:
                row = densities[e]
                sum_ = F32(0.0)
                for i in range(m):
                    sum_ += row[i] * total[i]
                new[e] = (weights[e] * sum_ + (1.0 if e == prior else 0.0)) / (m + 1)
                change = max(change, abs(new[e] - weights[e]))
        weights = new
        if change < WEIGHT_TOLERANCE:
            break
    return weights
