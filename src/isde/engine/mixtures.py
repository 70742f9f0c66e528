"""Gaussian mixtures for many subsets: expectation-maximisation in float32, each size grown from half of it.

A mixture of 2 G components starts from that of G: every component is split along its longest axis. No draw is
involved, and each size is had on the way to the next. For cross-validation, the mixture of all rows is the start for
that of each fold's rows: a few steps away, where a start from nothing would take dozens.

Rows are columns here, (s, m), so that the compiler makes vectors of the innermost loops. All compiled functions share
this file: numba's disk cache does not notice edits in an imported one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

F32 = np.float32
AT_ONCE = 512
"""Rows of a chunk: densities of 16 components stay in the L1 and L2 caches."""

STEPS, FOLD_STEPS = 15, 5
"""Steps of expectation-maximisation for all rows, and from there for each fold."""

REGULARISATION = 1e-6
"""Of each column's variance, added to that of each component."""

LEAST_ROWS = 2.0
"""A component with fewer rows for each of its columns is dropped, and none is split into two smaller ones."""

SPLIT = 0.5
"""Share of the variance along the longest axis that the distance of the two halves takes."""

DEAD = F32(-1e30)
"""Log-density of a component that was dropped."""

LOG2_2PI = float(np.log2(2 * np.pi))
HALF_LOG2_E = 0.5 * float(np.log2(np.e))

# Sums may be reordered for vectors; no NaN and no infinity gets in, since data are checked before.
fast = njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz", "nnan"}, error_model="numpy")


@dataclass(frozen=True)
class Mixtures:
    """Mixtures of 1, 2, 4, ... components for the same columns; dropped components have weight 0."""

    weights: list[NDArray[np.float64]]
    means: list[NDArray[np.float64]]
    covariances: list[NDArray[np.float64]]
    held_out: NDArray[np.float32]  # log-density of each row, from the rows of the other folds, (sizes, m)


def grow_mixtures(X: NDArray[np.float64], fold: NDArray[np.int64], doublings: int) -> Mixtures:
    """Mixtures of 1, 2, ..., 2^doublings components for the rows of X, and their log-densities of held-out rows."""
    rows = np.ascontiguousarray(X.T, dtype=np.float32)
    s, m = rows.shape
    n_folds = int(fold.max()) + 1
    weights, means, covariances = [], [], []
    held_out = np.empty((doublings + 1, m), dtype=np.float32)
    weight, mean, covariance = np.ones(1), X.mean(axis=0)[None], np.atleast_2d(np.cov(X.T, bias=True))[None]
    floor = REGULARISATION * np.diagonal(covariance[0]).copy()
    covariance = covariance + np.diag(floor)
    every = np.ones(m, dtype=np.float32)
    for level in range(doublings + 1):
        if level:
            weight, mean, covariance = _split(weight, mean, covariance, LEAST_ROWS * s / m)
            _improve(rows, every, weight, mean, covariance, floor, STEPS)
        for number in range(n_folds):
            own = weight.copy(), mean.copy(), covariance.copy()
            _improve(rows, (fold != number).astype(np.float32), *own, floor, FOLD_STEPS if level else 1)
            here = np.flatnonzero(fold == number)
            held_out[level, here] = log_densities(np.ascontiguousarray(rows[:, here]), *own)
        weights.append(weight)
        means.append(mean)
        covariances.append(covariance)
    return Mixtures(weights, means, covariances, held_out)


def log_densities(
    rows: NDArray[np.float32],
    weight: NDArray[np.float64],
    mean: NDArray[np.float64],
    covariance: NDArray[np.float64],
) -> NDArray[np.float32]:
    """Log-density of each row (a column of `rows`), in nats."""
    out = np.empty(rows.shape[1], dtype=np.float32)
    _log_densities(rows, weight, mean, covariance, out)
    return out


@fast
def _log_densities(rows: Any, weight: Any, mean: Any, covariance: Any, out: Any) -> None:  # in: ...; out
    level, factor = _prepared(weight, covariance)
    joint, top, total, z = _scratch(len(weight))
    centre = mean.astype(np.float32)
    for start in range(0, rows.shape[1], AT_ONCE):
        n = min(AT_ONCE, rows.shape[1] - start)
        _joint(rows, start, n, level, centre, factor, joint, z)
        _shares(joint, n, top, total)
        for i in range(n):
            out[start + i] = F32((top[i] + np.log2(total[i])) * np.log(2.0))


@fast
def _improve(
    rows: Any,  # in: (s, m)
    keep: Any,  # in: 1 for the rows that count
    weight: Any,  # in, out
    mean: Any,  # in, out
    covariance: Any,  # in, out
    floor: Any,  # in: added to each component's variances
    steps: int,  # in
) -> None:
    """Steps of expectation-maximisation."""
    s, m, n_components = len(rows), rows.shape[1], len(weight)
    joint, top, total, z = _scratch(n_components)
    count, first = np.zeros(n_components), np.zeros((n_components, s))
    second = np.zeros((n_components, s, s))
    for _ in range(steps):
        level, factor = _prepared(weight, covariance)
        centre = mean.astype(np.float32)
        count[:], first[:], second[:] = 0, 0, 0
        for start in range(0, m, AT_ONCE):
            n = min(AT_ONCE, m - start)
            _joint(rows, start, n, level, centre, factor, joint, z)
            _shares(joint, n, top, total)
            for i in range(n):
                total[i] = keep[start + i] / total[i]
            _add_moments(rows, start, n, centre, joint, total, z, count, first, second)
        _maximise(count, first, second, centre, floor, weight, mean, covariance)


@fast
def _scratch(n_components: int) -> Any:
    joint = np.empty((n_components, AT_ONCE), dtype=np.float32)
    return joint, np.empty(AT_ONCE, np.float32), np.empty(AT_ONCE, np.float32), np.empty((2, AT_ONCE), np.float32)


@fast
def _prepared(weight: Any, covariance: Any) -> Any:
    """For each component: log2 of its density at the mean, and the factor that whitens, scaled for powers of two."""
    n_components, s = len(weight), covariance.shape[1]
    level, factor = np.full(n_components, DEAD, np.float32), np.zeros((n_components, s, s), np.float32)
    for g in range(n_components):
        if weight[g] <= 0:
            continue
        L = np.linalg.cholesky(covariance[g])
        constant = np.log2(weight[g]) - 0.5 * s * LOG2_2PI
        for r in range(s):  # row r of the inverse of L, by forward substitution
            constant -= np.log2(L[r, r])
            factor[g, r, r] = F32(1.0 / L[r, r])
        for c in range(s):
            column = np.zeros(s)
            column[c] = 1.0 / L[c, c]
            for r in range(c + 1, s):
                for i in range(c, r):
                    column[r] -= L[r, i] * column[i]
                column[r] /= L[r, r]
            for r in range(c, s):
                factor[g, r, c] = F32(column[r] * np.sqrt(HALF_LOG2_E))
        level[g] = F32(constant)
    return level, factor


@fast
def _joint(rows: Any, start: int, n: int, level: Any, centre: Any, factor: Any, joint: Any, z: Any) -> None:
    """joint[g, i] = log2 of weight times density of row start + i in component g."""
    s = len(rows)
    for g in range(len(level)):
        out = joint[g]
        for i in range(n):
            out[i] = level[g]
        if level[g] == DEAD:
            continue
        for r in range(s):
            a, mu, column, whitened = factor[g, r, 0], centre[g, 0], rows[0], z[0]
            for i in range(n):
                whitened[i] = a * (column[start + i] - mu)
            for c in range(1, r + 1):
                a, mu, column = factor[g, r, c], centre[g, c], rows[c]
                for i in range(n):
                    whitened[i] += a * (column[start + i] - mu)
            for i in range(n):
                out[i] -= whitened[i] * whitened[i]


@fast
def _shares(joint: Any, n: int, top: Any, total: Any) -> None:
    """joint[g, i] -> 2^(joint[g, i] - top[i]), top[i] their largest, total[i] their sum."""
    for i in range(n):
        top[i] = joint[0, i]
        total[i] = F32(0.0)
    for g in range(1, len(joint)):
        row = joint[g]
        for i in range(n):
            top[i] = max(top[i], row[i])
    for g in range(len(joint)):
        row = joint[g]
        for i in range(n):
            x = max(row[i] - top[i], F32(-126.0))
            whole = np.floor(x + F32(0.5))
            t = x - whole  # in [-1/2, 1/2]
            t2 = t * t
            low = F32(1.0) + F32(6.9314721e-1) * t + t2 * (F32(2.4022651e-1) + F32(5.5503272e-2) * t)
            high = F32(9.6180567e-3) + F32(1.3400428e-3) * t + t2 * F32(1.5461444e-4)
            power = np.int32((np.int32(whole) + np.int32(127)) << np.int32(23)).view(np.float32)
            v = (low + t2 * t2 * high) * power
            row[i] = v
            total[i] += v


@fast
def _add_moments(
    rows: Any, start: int, n: int, centre: Any, joint: Any, total: Any, z: Any, count: Any, first: Any, second: Any
) -> None:
    """Add each component's shares of the rows, and the first and second moments about its centre."""
    s = len(rows)
    for g in range(len(joint)):
        share = joint[g]
        sum_ = F32(0.0)
        for i in range(n):
            share[i] *= total[i]
            sum_ += share[i]
        count[g] += sum_
        if sum_ == 0:
            continue
        for r in range(s):
            column, mu, weighted = rows[r], centre[g, r], z[0]
            sum_ = F32(0.0)
            for i in range(n):
                weighted[i] = share[i] * (column[start + i] - mu)
                sum_ += weighted[i]
            first[g, r] += sum_
            for c in range(r + 1):
                column, mu = rows[c], centre[g, c]
                sum_ = F32(0.0)
                for i in range(n):
                    sum_ += weighted[i] * (column[start + i] - mu)
                second[g, r, c] += sum_


@fast
def _maximise(
    count: Any, first: Any, second: Any, centre: Any, floor: Any, weight: Any, mean: Any, covariance: Any
) -> None:
    """Weights, means and covariances from the moments; a component with too few rows is dropped."""
    s = first.shape[1]
    for g in range(len(count)):
        if count[g] < LEAST_ROWS * s:
            count[g] = 0.0
    rows = count.sum()
    for g in range(len(count)):
        weight[g] = count[g] / rows
        if count[g] == 0:
            continue
        for r in range(s):
            mean[g, r] = centre[g, r] + first[g, r] / count[g]
            for c in range(r + 1):
                moment = second[g, r, c] - first[g, r] * first[g, c] / count[g]
                covariance[g, r, c] = covariance[g, c, r] = moment / count[g]
            covariance[g, r, r] = max(covariance[g, r, r], 0.0) + floor[r]


@fast
def _split(weight: Any, mean: Any, covariance: Any, least: float) -> Any:
    """Twice as many components: each one as two halves along its longest axis, or as it is where it is small."""
    n_components, s = mean.shape
    weights, means = np.zeros(2 * n_components), np.zeros((2 * n_components, s))
    covariances = np.zeros((2 * n_components, s, s))
    for g in range(n_components):
        a, b = 2 * g, 2 * g + 1
        for half in (a, b):
            means[half], covariances[half] = mean[g], covariance[g]
        if weight[g] < 2 * least:
            weights[a] = weight[g]
            continue
        weights[a] = weights[b] = weight[g] / 2
        axis = np.ones(s) / np.sqrt(s) + covariance[g, 0] / covariance[g, 0, 0] / s
        length = 0.0
        for _ in range(30):  # power iteration
            axis = np.dot(covariance[g], axis)
            length = np.sqrt((axis * axis).sum())
            axis /= length
        for r in range(s):
            means[a, r] -= np.sqrt(SPLIT * length) * axis[r]
            means[b, r] += np.sqrt(SPLIT * length) * axis[r]
            for c in range(s):
                covariances[a, r, c] -= SPLIT * length * axis[r] * axis[c]
                covariances[b, r, c] -= SPLIT * length * axis[r] * axis[c]
    return weights, means, covariances
