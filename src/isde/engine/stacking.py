"""A convex combination of experts for one subset: kernel densities of several bandwidths, and Gaussian mixtures.

Each expert's log-density of every row is had from the rows of the other folds; weights are chosen by
expectation-maximisation on these, so that no expert is trusted for what it learned by heart. `score_subset` is the
unit of work where there are many subsets. A block that is kept has `fit_stack`, whose experts, fitted again on all
rows, are checked against what those of the folds promised (`refit`), and whose narrowest kernels are the best single
ones (`best_bandwidth`).

Kernel sums are float32 and leave out centres farther than 6.4 bandwidths, where a wider expert says more: the Gaussian
has a row's worth of weight at least, so that every row has a density.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.special import logsumexp

from isde.arrays import FrozenArrays, IntVector, Matrix, Scalar, Vector
from isde.engine.jit import fast_inline, fast_loop, larger, same_bits, smaller
from isde.engine.mixtures import Mixtures, average_mixtures, grow_mixtures, refit_mixtures

F32 = np.float32
CENTRES_AT_ONCE = 512
GROUP = 4
"""Bandwidths, each half of the one before, whose kernels come from one exponential (`_add_four_sums`)."""

LEAST_WEIGHT = 1e-4
"""An expert with less is left out: it costs time for each row to be scored, and says nothing."""

WEIGHT_STEPS = 300
WEIGHT_TOLERANCE = 1e-5

FARTHEST_WIDTHS, LARGEST_RATE = 1e14, 1e30
"""Widest bandwidths that a row is away from the median, at most, and squared ratios of bandwidths: so that squares stay
in float32."""

FEW_ROWS = 500
"""With no more, the mean of the folds' mixtures stands for the mixture of all rows.

A single mixture of so few rows hangs on chance: at 300 rows one fit of 200 was 0.03 to 0.05 nats below plain kernels.
The mean is worth 0.014 nats on rings of 300 rows, 0.05 on skewed blocks and 0.001 to 0.03 at 3,000 rows, but has five
times the components, each to be scored. Normal scores are other rows for each fold, so that there each mixture is
improved on those of all rows first: without, breast cancer's 30 columns lose 0.18.
"""

PARTS_OF_A_HALVING = 16
"""Steps between two bandwidths of the ladder in which the best is sought."""

NOTHING = -1e30
"""The log-density of an expert that does not see a row."""


@dataclass(frozen=True)
class Experts(FrozenArrays):
    """Experts on one scale, fitted on all rows."""

    centres: Matrix  # of the kernels, on that scale
    bandwidths: Vector  # each half of the one before
    kernel_weights: Vector  # aligned with the bandwidths
    mixtures: Mixtures
    mixture_weights: Vector  # of the sizes of the mixtures, up to the largest that has weight

    @property
    def share(self) -> float:
        return float(self.kernel_weights.sum() + self.mixture_weights.sum())


@dataclass(frozen=True)
class Stack(FrozenArrays):
    """What was learned for one subset."""

    bandwidths: Vector  # each half of the one before
    kernel_weights: Vector  # aligned with the bandwidths
    mixtures: Mixtures
    mixture_weights: Vector  # of the sizes of the mixtures, up to the largest that has weight
    held_out: NDArray[np.float32]  # log-density of each row by each expert, from the other folds, (experts, rows)
    fold_mixtures: tuple[Mixtures, ...]  # of the rows outside each fold

    @property
    def weights(self) -> Vector:
        """Of kernels, then of mixtures."""
        return np.concatenate([self.kernel_weights, self.mixture_weights])


@dataclass(frozen=True)
class Scale(FrozenArrays):
    """Rows on one scale, and what the experts of the folds say there."""

    rows: Matrix  # all of them
    log_slope: Vector  # what the way to this scale stretches space by at each row, a logarithm
    bandwidths: Vector  # of the kernels, each half of the one before
    held_out: NDArray[np.float32]  # log-density of each row by each expert, kernels first, (experts, rows)
    fold_mixtures: tuple[Mixtures, ...]  # of the rows outside each fold
    same_for_folds: bool  # or else each fold had a scale of its own, and its mixtures fit this one not quite
    centres: IntVector | None = None  # the rows that kernels stand on; None: all of them

    @property
    def n_kernels(self) -> int:
        return len(self.bandwidths)

    def refit(self, weights: Vector, steps: int) -> Experts:
        """Those experts of all rows that have weight."""
        kernel_weights, mixture_weights = np.split(weights, [self.n_kernels])
        sizes = np.flatnonzero(mixture_weights).tolist()
        if len(self.rows) <= FEW_ROWS:
            mixtures = average_mixtures(self.rows, sizes, self.fold_mixtures, 0 if self.same_for_folds else steps)
        else:
            mixtures = refit_mixtures(self.rows, sizes, self.fold_mixtures, steps)
        centres = of_centres(self.rows, self.centres)
        return Experts(centres, self.bandwidths, kernel_weights, mixtures, np.trim_zeros(mixture_weights, "b"))

    def log_densities(self, experts: Experts) -> NDArray[np.float32]:
        """Like `held_out`, for mixtures of all rows where they have weight."""
        logs = self.held_out.copy()
        for size in np.flatnonzero(experts.mixture_weights).tolist():
            logs[self.n_kernels + size] = experts.mixtures.log_densities(self.rows, size) + self.log_slope
        return logs


def bandwidth_ladder(low: float, high: float) -> Vector:
    """Bandwidths from `high` down to `low` or just below, each half of the one before.

    >>> bandwidth_ladder(0.05, 0.5).tolist()
    [0.5, 0.25, 0.125, 0.0625, 0.03125]
    """
    n = int(np.ceil(np.log2(high / low) - 1e-9)) + 1
    ladder: Vector = high * 0.5 ** np.arange(n, dtype=np.float64)
    return ladder


def ladder_up(narrowest: float, high: float) -> Vector:
    """Bandwidths from `high` or just above down to the narrowest, each half of the one before.

    >>> ladder_up(0.15, 0.5).tolist()
    [0.6, 0.3, 0.15]
    """
    doublings = max(int(np.ceil(np.log2(high / narrowest) - 1e-9)), 0)
    ladder: Vector = narrowest * np.exp2(np.arange(doublings, -1, -1, dtype=np.float64))
    return ladder


def fit_stack(
    X: Matrix, fold: IntVector, bandwidths: Vector, doublings: int, steps: int, centres: IntVector | None = None
) -> Stack:
    """Experts and their weights for the rows of X; `fold` ascends, and so do the rows that are centres."""
    scale = on_own_scale(X, fold, bandwidths, doublings, steps, centres)
    [own] = refit([scale], steps)
    return Stack(
        own.bandwidths, own.kernel_weights, own.mixtures, own.mixture_weights, scale.held_out, scale.fold_mixtures
    )


def on_own_scale(
    X: Matrix, fold: IntVector, bandwidths: Vector, doublings: int, steps: int, centres: IntVector | None = None
) -> Scale:
    """The rows as they are, and experts of the folds; the kernels' ladder is one up from the best single bandwidth.

    So kernels alone, the best there are, are one of the experts. Narrower ones have weight by chance: a pair of rows
    that happens to be close speaks for them twice, once from either fold.
    """
    first_look, fold_mixtures = held_out_log_densities(X, fold, bandwidths, doublings, steps, centres)
    looked, mixtures = np.split(first_look, [len(bandwidths)])
    ladder = ladder_up(best_bandwidth(looked, mixtures[0], bandwidths), bandwidths[0])
    kernels = kernel_log_densities(of_centres(X, centres), of_centres(fold, centres), X, fold, ladder)
    held_out = np.concatenate([kernels, mixtures])
    return Scale(X, np.zeros(len(X)), ladder, held_out, fold_mixtures, same_for_folds=True, centres=centres)


def best_bandwidth(kernels: NDArray[np.float32], gaussian: NDArray[np.float32], bandwidths: Vector) -> float:
    """The bandwidth of the best single kernel density, by mean log-density held out.

    Beside the Gaussian, at the best share, so that no far row decides. Between bandwidths of the ladder it is where the
    cubic spline through their means is highest.
    """
    pairs = [np.stack([kernel, gaussian]) for kernel in kernels]
    means = [float(logsumexp(pair, b=choose_weights(pair, 1)[:, None], axis=0).mean()) for pair in pairs]
    best = int(np.argmax(means))
    if best in (0, len(means) - 1):
        return float(bandwidths[best])
    around = np.linspace(best - 1, best + 1, 2 * PARTS_OF_A_HALVING + 1)
    highest = around[np.argmax(CubicSpline(np.arange(len(means)), means)(around))]
    return float(bandwidths[0] * 0.5**highest)


def refit(scales: Sequence[Scale], steps: int) -> list[Experts]:
    """Weights for the experts of all scales together, and these experts fitted on all rows.

    The Gaussian of the first scale has a row's worth of weight at least. Where a promise is broken, the expert to blame
    is left out and the weights are chosen anew: mixtures are refitted so that this is rare (`refit_mixtures`).
    """
    held_out, prior = np.concatenate([scale.held_out for scale in scales]), scales[0].n_kernels
    edges = np.cumsum([len(scale.held_out) for scale in scales])[:-1]
    while True:
        weights = choose_weights(held_out, prior)
        parts = np.split(weights, edges)
        found = [scale.refit(own, steps) for scale, own in zip(scales, parts, strict=True)]
        refitted = [scale.log_densities(experts) for scale, experts in zip(scales, found, strict=True)]
        culprit = promise_breaker(weights, held_out, np.concatenate(refitted))
        if culprit in (None, prior):
            return found
        held_out[culprit] = NOTHING


def promise_breaker(weights: Vector, held_out: NDArray[np.float32], refitted: NDArray[np.float32]) -> int | None:
    """The expert that loses most where experts of all rows together say less of these rows than was held out.

    With h_e and g_e the densities before and after, and r_e = w_e h_e / sum_e w_e h_e how far a row is trusted to an
    expert,  log sum_e w_e g_e >= log sum_e w_e h_e + sum_e r_e log(g_e / h_e)  (Jensen): where the combination loses,
    some expert does on the rows that it is trusted with. It is never a kernel density: that of all centres is the mean
    of those of the folds, and counts as held out.
    """
    used = np.flatnonzero(weights)
    before, after = (np.log(weights[used])[:, None] + logs[used] for logs in (held_out, refitted))
    promised = logsumexp(before, axis=0)
    if (logsumexp(after, axis=0) - promised).mean() >= 0:
        return None
    changes = (np.exp(before - promised) * (after - before)).mean(axis=1)
    return int(used[np.argmin(changes)])


def held_out_log_densities(
    X: Matrix, fold: IntVector, bandwidths: Vector, doublings: int, steps: int, centres: IntVector | None = None
) -> tuple[NDArray[np.float32], tuple[Mixtures, ...]]:
    """Log-density of each row by each expert of the other folds, (experts, rows), and the mixtures of these."""
    n_kernels = len(bandwidths)
    held_out = np.empty((n_kernels + doublings + 1, len(X)), dtype=np.float32)
    held_out[:n_kernels] = kernel_log_densities(of_centres(X, centres), of_centres(fold, centres), X, fold, bandwidths)
    fold_mixtures = []
    for number in range(int(fold.max()) + 1):
        here = fold == number
        # Grown from nothing. Started from the mixture of all rows, they remember: on 300 rows of noise, 16 components
        # then seem 0.2 nats better than they are.
        others = grow_mixtures(X[~here], doublings, steps)
        held_out[n_kernels:, here] = mixture_log_densities(others, X[here])
        fold_mixtures.append(others)
    return held_out, tuple(fold_mixtures)


def of_centres(values: NDArray[Scalar], centres: IntVector | None) -> NDArray[Scalar]:
    """What belongs to the rows that are centres; None: all of them."""
    return values if centres is None else values[centres]


def mixture_log_densities(mixtures: Mixtures, X: Matrix) -> NDArray[np.float32]:
    """Log-density of each row by each of the mixtures, (mixtures, rows)."""
    return np.stack([mixtures.log_densities(X, size) for size in range(len(mixtures.weights))])


def score_subset(
    X_fit: Matrix, X_score: Matrix, fold: NDArray[np.int64], bandwidths: Vector, doublings: int, steps: int
) -> float:
    """Mean log-density of X_score by the stack of X_fit, whose mixtures are grown once and not checked."""
    held_out, _ = held_out_log_densities(X_fit, fold, bandwidths, doublings, steps)
    kernel_weights, mixture_weights = np.split(choose_weights(held_out, len(bandwidths)), [len(bandwidths)])
    group = np.arange(len(bandwidths)) // GROUP
    used = np.isin(group, group[kernel_weights > 0])  # a group without weight costs nothing
    logs = [kernel_log_densities(X_fit, fold, X_score, np.full(len(X_score), -1), bandwidths[used])]
    sizes, mixtures = np.flatnonzero(mixture_weights).tolist(), grow_mixtures(X_fit, doublings, steps)
    logs += [mixtures.log_densities(X_score, size)[None] for size in sizes]
    weights = np.concatenate([kernel_weights[used], mixture_weights[sizes]])
    return float(logsumexp(np.concatenate(logs).astype(np.float64), b=weights[:, None], axis=0).mean())


def kernel_log_densities(
    centres: Matrix,
    centre_fold: NDArray[np.int64],
    queries: Matrix,
    query_fold: NDArray[np.int64],
    bandwidths: Vector,
) -> NDArray[np.float32]:
    """Log kernel density of each query by the centres of the other folds, (bandwidths, queries).

    Bandwidths are halved from one to the next within each group of four.
    """
    if not len(bandwidths):
        return np.empty((0, len(queries)), dtype=np.float32)
    n_folds = int(centre_fold.max()) + 1
    edges = np.searchsorted(centre_fold, np.arange(n_folds + 1))
    # In units of the widest bandwidth about the median, float32 serves data in any units.
    middle, unit = np.median(centres, axis=0), bandwidths[0]
    columns = (
        np.ascontiguousarray(_within((rows - middle) / unit, beyond).T, dtype=np.float32)
        # Farther out than any centre: two rows that only look alike from here must not be taken for neighbours.
        for rows, beyond in ((centres, FARTHEST_WIDTHS), (queries, 2 * FARTHEST_WIDTHS))
    )
    rates = math.log2(math.e) / 2 * np.minimum((unit / bandwidths[::GROUP]) ** 2, LARGEST_RATE)
    sums = np.zeros((len(rates) * GROUP, len(queries)), dtype=np.float32)
    _sum_kernels(*columns, edges, query_fold, rates.astype(np.float32), sums, np.empty(CENTRES_AT_ONCE, np.float32))
    own = np.diff(edges)[query_fold] * (query_fold >= 0)
    constant = np.log(len(centres) - own) + centres.shape[1] * (np.log(bandwidths) + 0.5 * np.log(2 * np.pi))[:, None]
    with np.errstate(divide="ignore"):
        return np.maximum(np.log(sums[: len(bandwidths)]) - constant, NOTHING).astype(np.float32)


def _within(rows: Matrix, beyond: float) -> Matrix:
    """The rows, those farther out than `FARTHEST_WIDTHS` moved to `beyond`."""
    return np.where(np.abs(rows) > FARTHEST_WIDTHS, np.copysign(beyond, rows), rows)


@fast_loop
def _sum_kernels(
    centres: Any,  # in: (s, m), those of a fold side by side
    queries: Any,  # in: (s, q)
    edges: Any,  # in: where each fold starts; fold v ends at edges[v + 1]
    fold: Any,  # in: the fold that each query must not see; -1: none
    rates: Any,  # in: of the widest bandwidth of each group, for powers of two
    sums: Any,  # out: (groups x 4 bandwidths, q)
    D: Any,  # scratch: squared distances to some centres
) -> None:
    (s, m), (_, n_queries) = centres.shape, queries.shape
    for q in range(n_queries):
        hole = edges[fold[q]] if fold[q] >= 0 else m
        after = edges[fold[q] + 1] if fold[q] >= 0 else m
        for part in range(2):
            begin, end = (0, hole) if part == 0 else (after, m)
            for start in range(begin, end, len(D)):
                n = smaller(len(D), end - start)
                for i in range(n):
                    D[i] = F32(0.0)
                for c in range(s):
                    x, column = queries[c, q], centres[c, start : start + n]
                    for i in range(n):
                        difference = column[i] - x
                        D[i] += difference * difference
                for j in range(len(rates)):
                    _add_four_sums(D, n, rates[j], sums[GROUP * j : GROUP * (j + 1), q])


@fast_inline
def _add_four_sums(D: Any, n: int, rate: Any, out: Any) -> None:  # in; in, out
    """Add the sums of v = exp2(-rate D) and of v^4, v^16, v^64, the kernels of halved bandwidths.

    v below 2^-30 counts as nothing, and so do powers that would be denormal numbers. A fourth power has four times the
    relative error: 1e-5 after three.
    """
    a = b = c = d = F32(0.0)
    for i in range(n):
        x = larger(-rate * D[i], F32(-31.0))
        whole = np.floor(x + F32(0.5))
        t = x - whole  # in [-1/2, 1/2]
        t2 = t * t
        low = F32(1.0) + F32(6.9314721e-1) * t + t2 * (F32(2.4022651e-1) + F32(5.5503272e-2) * t)
        high = F32(9.6180567e-3) + F32(1.3400428e-3) * t + t2 * F32(1.5461444e-4)
        power = same_bits(np.int32((np.int32(whole) + np.int32(127)) << np.int32(23)), np.float32)
        v = (low + t2 * t2 * high) * power
        v = v if x > F32(-30.0) else F32(0.0)
        a += v
        v *= v
        v *= v
        b += v
        v = v if x > F32(-30.0 / 4) else F32(0.0)
        v *= v
        v *= v
        c += v
        v = v if x > F32(-30.0 / 16) else F32(0.0)
        v *= v
        v *= v
        d += v
    out[0] += a
    out[1] += b
    out[2] += c
    out[3] += d


def choose_weights(logs: NDArray[np.float32], prior: int) -> Vector:
    """Weights that maximise the mean log-density of the combination; expert `prior` has a row's worth at least.

    They maximise  sum_i log sum_e w_e exp(logs[e, i]) + log w_prior  among those that add up to 1.
    """
    weights, kept = np.ones(len(logs)), np.ones(len(logs), dtype=bool)
    for _ in range(2):
        # Relative to the best of the experts kept: no row is left without a density by those dropped.
        densities = np.exp(logs[kept] - logs[kept].max(axis=0))
        start = weights[kept] / weights[kept].sum()
        weights[kept] = _improve_weights(densities, start, int(kept[:prior].sum()))
        kept = weights >= LEAST_WEIGHT
        kept[prior] = True
        weights[~kept] = 0.0
    return weights / weights.sum()


def _improve_weights(densities: NDArray[np.float32], weights: Vector, prior: int) -> Vector:
    """Weights after steps of expectation-maximisation from those given."""
    _step_weights(densities, weights, prior, np.empty(densities.shape[1], dtype=np.float32))
    return weights


@fast_loop
def _step_weights(
    densities: Any, weights: Any, prior: int, total: Any
) -> None:  # in: (experts, rows); in, out; in; scratch
    n_experts, m = densities.shape
    for _ in range(WEIGHT_STEPS):
        for i in range(m):
            total[i] = F32(0.0)
        for e in range(n_experts):
            w, row = F32(weights[e]), densities[e]
            for i in range(m):
                total[i] += w * row[i]
        for i in range(m):
            total[i] = F32(1.0) / total[i]
        change = 0.0
        for e in range(n_experts):
            row = densities[e]
            sum_ = F32(0.0)
            for i in range(m):
                sum_ += row[i] * total[i]
            new = (weights[e] * sum_ + (1.0 if e == prior else 0.0)) / (m + 1)
            change = larger(change, abs(new - weights[e]))
            weights[e] = new
        if change < WEIGHT_TOLERANCE:
            break
