"""Gaussian mixtures for many subsets: expectation-maximisation in float32, each size grown from half of it.

A mixture of 2 G components starts from that of G: every component is split along its longest axis. No draw is
involved, and each size is had on the way to the next. Component 0 of every mixture stays the Gaussian of all rows,
with a row's worth of weight: far rows are its business, and blur no other component.

Columns are centred at their median and divided by their spread first, in float64, so that float32 serves any units.
Rows are columns in compiled code, (s, m), and are cut into chunks whose views are indexed from 0: the compiler makes
vectors of the innermost loops (of `column[start + i]` it makes none: a factor of 7). All compiled functions share this
file: numba's disk cache does not notice edits in an imported one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dsyevd

from isde.arrays import FrozenArrays, Mask, Matrix, Vector
from isde.engine.jit import fast_inline, fast_loop, fast_part, larger, part, same_bits, smaller

F32 = np.float32
AT_ONCE = 512
"""Rows of a chunk: densities of 16 components stay in the L1 and L2 caches."""

REGULARISATION = 1e-6
"""Of each column's squared spread, and of a component's own variance, added to that variance."""

LEAST_SPREAD = 1e-3
"""Of a column's standard deviation: its spread is at least that, however close together most of its values are."""

LEAST_PIVOT = 1e-7
"""Of a variance: what is left of it given the columns before. Float32 sums cannot tell less from nothing."""

LEAST_ROWS = 2.0
"""A component with fewer rows for each of its columns is dropped, and none is split into two smaller ones."""

SPLIT = 0.5
"""Share of the variance along the longest axis that the distance of the two halves takes."""

FARTHEST_SPREADS = 1e14
"""Spreads from the centre: a row farther out counts as if it were here, so that its squares stay in float32."""

FEW_DOUBLINGS, STEPS_OF_MANY = 5, 15
"""Mixtures of more than 32 components have so many steps at most."""

DEAD = F32(-3e38)
"""Log-density of a component that was dropped."""

LOG2_2PI = float(np.log2(2 * np.pi))
HALF_LOG2_E = 0.5 * math.log2(math.e)


Mixture = tuple[Vector, Matrix, NDArray[np.float64]]
"""Weights, means and covariances of the components."""


@dataclass(frozen=True)
class Mixtures(FrozenArrays):
    """A Gaussian, and mixtures of it and 2, 4, ... components, of (x - centre) / spread.

    Dropped components have weight 0.
    """

    centre: Vector
    spread: Vector
    weights: tuple[Vector, ...]
    means: tuple[Matrix, ...]
    covariances: tuple[NDArray[np.float64], ...]

    @classmethod
    def of(cls, centre: Vector, spread: Vector, by_size: Sequence[Mixture]) -> Mixtures:
        weights, means, covariances = zip(*by_size, strict=True)
        return cls(centre, spread, weights, means, covariances)

    def log_densities(self, X: Matrix, size: int) -> NDArray[np.float32]:
        """Log-density of each row by one of the mixtures, nats in the units of the data."""
        out = np.empty(len(X), dtype=np.float32)
        _log_densities(
            _columns(X, self.centre, self.spread), self.weights[size], self.means[size], self.covariances[size], out
        )
        return out - F32(np.log(self.spread).sum())

    def components(self, size: int) -> Mixture:
        """Weights, means and covariances of one of the mixtures, in the units of the data."""
        alive = self.weights[size] > 0
        means = self.means[size][alive] * self.spread + self.centre
        return self.weights[size][alive], means, self.covariances[size][alive] * np.outer(self.spread, self.spread)


def grow_mixtures(X: Matrix, doublings: int, steps: int) -> Mixtures:
    """The Gaussian of the rows of X, and mixtures of 2, ..., 2^doublings components, each improved `steps` times."""
    centre, spread = _centre_and_spread(X)
    standard = (X - centre) / spread
    s, m = X.shape[1], len(X)
    covariance = np.cov(standard.T, bias=True).reshape(s, s)
    covariance += np.diag(np.diagonal(covariance) == 0)  # a single value says nothing of the width of a column
    gaussian = np.ones(1), standard.mean(axis=0)[None], covariance[None]
    _make_proper(*gaussian)
    grown, rows = [gaussian], _columns(X, centre, spread)
    mixture = np.array([1, m]) / (m + 1), np.repeat(gaussian[1], 2, axis=0), np.repeat(gaussian[2], 2, axis=0)
    for size in range(1, doublings + 1):
        mixture, moved = _split(*mixture, LEAST_ROWS * s / m)
        _improve(rows, *mixture, steps_of(size, steps), moved)
        grown.append(mixture)
    return Mixtures.of(centre, spread, grown)


def steps_of(size: int, steps: int) -> int:
    """Steps for mixtures of 2^size components: most of the time goes into the largest, which need fewer."""
    return steps if size <= FEW_DOUBLINGS else min(steps, STEPS_OF_MANY)


def refit_mixtures(X: Matrix, sizes: Sequence[int], folds: Sequence[Mixtures], steps: int) -> Mixtures:
    """Mixtures of the rows of X up to the largest of `sizes`, and these no less likely than that of any fold.

    Growing once may end in a poor optimum which the folds, that earned the weights, do not know of: one of thirty fits
    of noisy XOR triples lost 0.15 to 0.5 nats a row. So the likeliest on all rows is taken of the mixture grown and
    those of the folds, and one of a fold is improved on all rows. To improve all of them first takes another fold's
    growth or more, and loses 0.001 nats on fresh rows: the likeliest fits these rows more closely, not the density.
    """
    grown = grow_mixtures(X, max(sizes, default=0), steps)
    rows = _columns(X, grown.centre, grown.spread)
    found = list(zip(grown.weights, grown.means, grown.covariances, strict=True))
    for size in sizes:
        if size > 0:  # the Gaussian has one optimum
            starts = [_in_units_of(grown, fold, size, len(X)) for fold in folds]
            found[size] = _likeliest(rows, found[size], starts, steps_of(size, steps))
    return Mixtures.of(grown.centre, grown.spread, found)


def average_mixtures(X: Matrix, sizes: Sequence[int], folds: Sequence[Mixtures], steps: int) -> Mixtures:
    """The Gaussian of the rows of X, and for each of `sizes` the mean of the folds' mixtures: all their components.

    Without steps it keeps on fresh rows what the folds promise, whatever optima they are in: the logarithm of a mean is
    no less than the mean of the logarithms. Steps on X are for mixtures of other rows than those of X.
    """
    gaussian = grow_mixtures(X, 0, 0)
    rows = _columns(X, gaussian.centre, gaussian.spread)
    found = [(gaussian.weights[0], gaussian.means[0], gaussian.covariances[0])] * (max(sizes, default=0) + 1)
    for size in sizes:
        if size > 0:
            starts = [_in_units_of(gaussian, fold, size, len(X)) for fold in folds]
            for start in starts:
                _improve(rows, *start, steps)
            weights, means, covariances = (np.concatenate(part) for part in zip(*starts, strict=True))
            found[size] = weights / len(folds), means, covariances
    return Mixtures.of(gaussian.centre, gaussian.spread, found)


def _in_units_of(grown: Mixtures, fold: Mixtures, size: int, n_rows: int) -> Mixture:
    """One of a fold's mixtures, with the Gaussian of all rows in place of the fold's."""
    ratio = fold.spread / grown.spread
    weights = fold.weights[size] / fold.weights[size][1:].sum() * n_rows / (n_rows + 1)
    means = fold.means[size] * ratio + (fold.centre - grown.centre) / grown.spread
    covariances = fold.covariances[size] * np.outer(ratio, ratio)
    # Other units may round a covariance that was barely proper to one that is not.
    _make_proper(weights, means, covariances)
    weights[0], means[0], covariances[0] = 1 / (n_rows + 1), grown.means[0][0], grown.covariances[0][0]
    return weights, means, covariances


def _likeliest(rows: NDArray[np.float32], grown: Mixture, starts: Sequence[Mixture], steps: int) -> Mixture:
    """The mixture grown, or the likeliest of the starts where that is likelier, improved."""

    def likelihood(mixture: Mixture) -> float:
        out = np.empty(rows.shape[1], dtype=np.float32)
        _log_densities(rows, *mixture, out)
        return float(out.mean(dtype=np.float64))

    best = max((grown, *starts), key=likelihood)
    if best is grown:
        return grown
    weights, means, covariances = (part.copy() for part in best)
    _improve(rows, weights, means, covariances, steps)
    return max((weights, means, covariances), best, key=likelihood)  # a step that drops a component may lose


def _centre_and_spread(X: Matrix) -> tuple[Vector, Vector]:
    """Median, and the standard deviation of a Gaussian with the same quartiles, so that no far row blurs the others.

    Where the quartiles are equal, and where it is less, the standard deviation; 1 where there is a single value.
    """
    low, centre, high = np.quantile(X, [0.25, 0.5, 0.75], axis=0)
    farthest = np.abs(X - centre).max(axis=0)
    unit = np.where(farthest > 0, farthest, 1.0)  # squares of very small or large columns would leave float64
    deviation = unit * np.sqrt((((X - centre) / unit) ** 2).mean(axis=0))
    quartiles = np.where(high > low, (high - low) / 1.349, np.inf)
    spread = np.clip(quartiles, LEAST_SPREAD * deviation, deviation)
    return centre, np.where(spread > 0, spread, 1.0)


def _columns(X: Matrix, centre: Vector, spread: Vector) -> NDArray[np.float32]:
    """(X - centre) / spread as float32, a row for each column."""
    standard = np.clip((X - centre) / spread, -FARTHEST_SPREADS, FARTHEST_SPREADS)
    return np.ascontiguousarray(standard.T, dtype=np.float32)


def _log_densities(
    rows: NDArray[np.float32], weight: Vector, mean: Matrix, covariance: NDArray[np.float64], out: NDArray[np.float32]
) -> None:
    """Fill `out` with the log-density of each row, nats."""
    # Copies, which are small: `_run` improves mixtures too, and is compiled for arrays that it may write to alone.
    _run(rows, weight.copy(), mean.copy(), covariance.copy(), 0, out, *_scratch(mean))


def _improve(
    rows: NDArray[np.float32],
    weight: Vector,
    mean: Matrix,
    covariance: NDArray[np.float64],
    steps: int,
    moved: Mask | None = None,
) -> None:
    """Steps of expectation-maximisation for all components but the first, in place; those `moved` are proper first."""
    _run(rows, weight, mean, covariance, steps, np.empty(0, np.float32), *_scratch(mean, moved))


def _make_proper(weight: Vector, mean: Matrix, covariance: NDArray[np.float64]) -> None:
    """Add to the variances of components with weight: what a spread of 1 asks for, and what rounding makes necessary.

    The latter is a share of their own, and no larger than it must be.
    """
    _improve(np.empty((mean.shape[1], 0), np.float32), weight, mean, covariance, 0, np.ones(len(weight), dtype=bool))


def _scratch(mean: Matrix, moved: Mask | None = None) -> tuple[NDArray[Any], ...]:
    """What `_run` writes to on its way."""
    n_components, s = mean.shape
    return (
        np.zeros(n_components, dtype=bool) if moved is None else moved,
        np.empty((n_components + 3, AT_ONCE), np.float32),
        np.empty((n_components, s + 1, s + 1), np.float32),
        np.empty((n_components, s + 1, s + 1)),
        np.empty((s + 1, s)),
    )


@fast_loop
def _run(
    rows: Any,  # in: (s, m)
    weight: Any,  # in, out
    mean: Any,  # in, out
    covariance: Any,  # in, out
    steps: int,  # in
    out: Any,  # out: (m,), or empty where log-densities are not asked for
    moved: Any,  # in, out: whether a covariance has still to be made proper
    shares: Any,  # scratch: of the rows of a chunk in each component, then their top, total and one row more
    form: Any,  # scratch: of each component's log2 density, (components, s + 1, s + 1): see `_prepare`
    moments: Any,  # scratch: of (row - centre, 1), (components, s + 1, s + 1)
    L: Any,  # scratch: a triangle, and a row more
) -> None:
    """Steps of expectation-maximisation for all components but the first; then log-densities of the rows.

    One function for all that is done to a mixture: expectation and factors are most of its code, and compiled once.
    """
    (_, m), (_, at_once) = rows.shape, shares.shape
    for step in range(steps + 1):
        if step > 0:
            _maximise(moments, form, weight, mean, covariance, moved)
        _prepare(weight, mean, covariance, moved, form, moments, L)
        if step < steps or len(out) > 0:
            for start in range(0, m, at_once):
                n = smaller(at_once, m - start)
                _joint(rows, start, n, form, shares)
                _share(form, shares, n)
                if step < steps:
                    _add_moments(rows, start, n, form, shares, moments)
                else:
                    _take_logs(shares, n, out[start : start + n])


@fast_part
def _prepare(weight: Any, mean: Any, covariance: Any, moved: Any, form: Any, moments: Any, L: Any) -> None:
    """For each component, the factor that whitens, scaled for powers of two, and in the last row: mean, and level.

    The level is the log2 of its density, times its weight, at the mean. Moments are zeros again.
    """
    s = len(L) - 1
    column = L[s]
    for g in range(len(weight)):
        form[g, s, s] = DEAD
        for r in range(s + 1):
            for c in range(s + 1):
                moments[g, r, c] = 0.0
        for r in range(s):
            form[g, s, r] = mean[g, r]
        if weight[g] <= 0:
            continue
        more = REGULARISATION
        for r in range(s if moved[g] else 0):
            covariance[g, r, r] = larger(covariance[g, r, r], 0.0) + REGULARISATION
        while moved[g] or not _cholesky(covariance[g], L):
            moved[g] = False
            for r in range(s):
                covariance[g, r, r] = larger(covariance[g, r, r], REGULARISATION) * (1.0 + more)
            more *= 10.0
        constant = np.log2(weight[g]) - 0.5 * s * LOG2_2PI
        for r in range(s):
            constant -= np.log2(L[r, r])
        for c in range(s):  # column c of the inverse of L, by forward substitution
            column[c] = 1.0 / L[c, c]
            for r in range(c + 1, s):
                column[r] = 0.0
                for i in range(c, r):
                    column[r] -= L[r, i] * column[i]
                column[r] /= L[r, r]
            for r in range(c, s):
                form[g, r, c] = F32(column[r] * np.sqrt(HALF_LOG2_E))
        form[g, s, s] = F32(constant)


@fast_part
def _cholesky(covariance: Any, L: Any) -> bool:  # in; out
    """Fill the lower triangle of L; whether every pivot is clearly positive."""
    for r in range(len(covariance)):
        for c in range(r + 1):
            left = covariance[r, c]
            for i in range(c):
                left -= L[r, i] * L[c, i]
            if r > c:
                L[r, c] = left / L[c, c]
            elif left < LEAST_PIVOT * covariance[r, r]:
                return False
            else:
                L[r, r] = np.sqrt(left)
    return True


@fast_inline
def _joint(rows: Any, start: int, n: int, form: Any, shares: Any) -> None:
    """shares[g, i] = log2 of weight times density of row start + i in component g."""
    s, whitened = len(rows), shares[len(form) + 2, :n]
    for g in range(len(form)):
        level = form[g, s, s]
        if level == DEAD:
            continue
        out = shares[g, :n]
        for i in range(n):
            out[i] = level
        for r in range(s):
            a, mu, column = form[g, r, 0], form[g, s, 0], rows[0, start : start + n]
            for i in range(n):
                whitened[i] = a * (column[i] - mu)
            for c in range(1, r + 1):
                a, mu, column = form[g, r, c], form[g, s, c], rows[c, start : start + n]
                for i in range(n):
                    whitened[i] += a * (column[i] - mu)
            for i in range(n):
                out[i] -= whitened[i] * whitened[i]


@fast_inline
def _share(form: Any, shares: Any, n: int) -> None:
    """shares[g, i] -> 2^(shares[g, i] - top[i]), top[i] their largest, total[i] their sum."""
    s, top, total = len(form[0]) - 1, shares[len(form), :n], shares[len(form) + 1, :n]
    for i in range(n):
        top[i], total[i] = DEAD, F32(0.0)
    for g in range(len(form)):
        if form[g, s, s] != DEAD:
            row = shares[g, :n]
            for i in range(n):
                top[i] = larger(top[i], row[i])
    for g in range(len(form)):
        if form[g, s, s] == DEAD:
            continue
        row = shares[g, :n]
        for i in range(n):
            x = larger(row[i] - top[i], F32(-126.0))
            whole = np.floor(x + F32(0.5))
            t = x - whole  # in [-1/2, 1/2]
            t2 = t * t
            low = F32(1.0) + F32(6.9314721e-1) * t + t2 * (F32(2.4022651e-1) + F32(5.5503272e-2) * t)
            high = F32(9.6180567e-3) + F32(1.3400428e-3) * t + t2 * F32(1.5461444e-4)
            power = same_bits(np.int32((np.int32(whole) + np.int32(127)) << np.int32(23)), np.float32)
            v = (low + t2 * t2 * high) * power
            row[i] = v
            total[i] += v


@fast_part
def _take_logs(shares: Any, n: int, out: Any) -> None:
    """out = log(2^top total)"""
    top, total = shares[len(shares) - 3], shares[len(shares) - 2]
    for i in range(n):
        out[i] = F32((top[i] + np.log2(total[i])) * np.log(2.0))


@fast_part
def _add_moments(rows: Any, start: int, n: int, form: Any, shares: Any, moments: Any) -> None:
    """Add sum_i share_i (x_i, 1) (x_i, 1)', x_i the row minus the component's centre: the lower triangle."""
    s, part, weighted = len(rows), shares[len(form) + 1, :n], shares[len(form) + 2, :n]
    for i in range(n):
        part[i] = F32(1.0) / part[i]
    for g in range(1, len(form)):
        if form[g, s, s] == DEAD:
            continue
        share = shares[g, :n]
        sum_ = F32(0.0)
        for i in range(n):
            share[i] *= part[i]
            sum_ += share[i]
        moments[g, s, s] += sum_
        for r in range(s):
            column, mu = rows[r, start : start + n], form[g, s, r]
            sum_ = F32(0.0)
            for i in range(n):
                weighted[i] = share[i] * (column[i] - mu)
                sum_ += weighted[i]
            moments[g, s, r] += sum_
            for c in range(r + 1):
                column, mu = rows[c, start : start + n], form[g, s, c]
                sum_ = F32(0.0)
                for i in range(n):
                    sum_ += weighted[i] * (column[i] - mu)
                moments[g, r, c] += sum_


@fast_part
def _maximise(moments: Any, form: Any, weight: Any, mean: Any, covariance: Any, moved: Any) -> None:
    """Weights, means and covariances from the moments; a component with too few rows is dropped, but for the last."""
    _, s = mean.shape
    total = _drop_small(moments, s)
    for g in range(1, len(weight)):
        count = moments[g, s, s]
        weight[g] = (1.0 - weight[0]) * count / total
        if count == 0:
            continue
        for r in range(s):
            mean[g, r] = form[g, s, r] + moments[g, s, r] / count
            for c in range(r + 1):
                moment = moments[g, r, c] - moments[g, s, r] * moments[g, s, c] / count
                covariance[g, r, c] = covariance[g, c, r] = moment / count
        moved[g] = True


@part
def _drop_small(moments: Any, s: int) -> Any:
    """Set counts below the least to zero, but for the largest; the sum of the others, in their order."""
    largest, total = 1, 0.0
    for g in range(2, len(moments)):
        if moments[g, s, s] > moments[largest, s, s]:
            largest = g
    for g in range(1, len(moments)):
        if moments[g, s, s] < LEAST_ROWS * s and g != largest:
            moments[g, s, s] = 0.0
        total += moments[g, s, s]
    return total


def _split(weight: Vector, mean: Matrix, covariance: NDArray[np.float64], least: float) -> tuple[Mixture, Mask]:
    """Each component but the first as two halves along its longest axis, or as it is where it is small.

    Halves lie to either side, and are narrower by as much as their distance explains.
    """
    which = np.arange(1, 2 * len(weight)) // 2  # 0, 1, 1, 2, 2, ...
    weights, means, covariances = np.zeros(len(which)), mean[which], covariance[which]
    weights[0], weights[1::2] = weight[0], weight[1:]
    for g in range(1, len(weight)):
        if weight[g] >= 2 * least:
            # LAPACK by hand: for matrices this small `eigh` takes more than twice as long.
            lengths, axes, _ = dsyevd(covariance[g], lower=1)
            axis, along = axes[:, -1], SPLIT * lengths[-1]
            halves = slice(2 * g - 1, 2 * g + 1)
            weights[halves] = weight[g] / 2
            means[halves] += np.outer((-1, 1), np.sqrt(along) * axis)
            covariances[halves] -= along * np.outer(axis, axis)
    moved = np.repeat(weights[::2] > 0, 2)[1:]
    moved[0] = False
    return (weights, means, covariances), moved
