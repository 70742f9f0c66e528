"""Gaussian marginals in closed form: two d x d matrices score every subset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from isde.arrays import FrozenArrays, Matrix, Vector
from isde.contents import Layout, check_reach, covariances, places
from isde.data.checks import check_units
from isde.engine.jit import loop
from isde.engine.whitening import whitening
from isde.errors import InputError
from isde.marginals.bounds import UNBOUNDED, Bounds, RowsUsed
from isde.marginals.conditional import given_and_others
from isde.marginals.marginal import (
    SavedBlock,
    SharesNothing,
    Traits,
    WithoutBandwidth,
    above_of,
    checked_columns,
    of_columns,
    whole_chunk,
)
from isde.run.work import Chunk, ChunkScores, Cost, Means
from isde.subsets import SubsetFamily, binomials

SINGULAR = 1e-12
"""A correlation matrix with a smaller eigenvalue counts as singular: it has no density."""

SMALL_PIVOT = 1e-6
"""What a column keeps of its variance, given others: with less, digits are lost, and the factor is not trusted."""

SUBSETS_AT_ONCE = 1 << 15

SECONDS_PER_SUBSET = 2e-7
"""Of one worker, where few subsets are nearly singular (2.4 million of 50 columns: 0.5 s)."""


@dataclass(frozen=True)
class GaussianBlock(FrozenArrays, SavedBlock, WithoutBandwidth):
    """A Gaussian with the given mean and covariance."""

    kind: ClassVar[str] = "gaussian"
    layout: ClassVar[Layout] = {"mean": places("s"), "covariance": covariances("s s")}
    mean: Vector
    covariance: Matrix

    @property
    def n_columns(self) -> int:
        return len(self.mean)

    def score_samples(self, X: Matrix, n_jobs: int | None = None) -> Vector:
        factor = whitening(self.covariance)
        whitened = factor @ (X - self.mean).T
        log_det = -2 * np.log(np.diag(factor)).sum()
        log_density: Vector = -0.5 * ((whitened**2).sum(axis=0) + log_det + len(factor) * np.log(2 * np.pi))
        return log_density

    def sample(self, n_samples: int, rng: np.random.RandomState) -> Matrix:
        factor = np.linalg.cholesky(self.covariance)
        return self.mean + rng.standard_normal((n_samples, len(factor))) @ factor.T

    def marginal(self, columns: Sequence[int]) -> GaussianBlock:
        own = checked_columns(columns, self.n_columns)
        return GaussianBlock(self.mean[own], self.covariance[np.ix_(own, own)])

    def sample_given(self, columns: Sequence[int], values: Matrix, rng: np.random.RandomState) -> Matrix:
        """Regression on the columns given, and what it leaves."""
        given, others = given_and_others(columns, values, self.n_columns)
        C = self.covariance
        slopes = np.linalg.solve(C[np.ix_(given, given)], C[np.ix_(given, others)])
        left = C[np.ix_(others, others)] - C[np.ix_(others, given)] @ slopes
        rows = np.empty((len(values), self.n_columns))
        rows[:, given] = values
        rows[:, others] = self.mean[others] + (values - self.mean[given]) @ slopes
        rows[:, others] += rng.standard_normal((len(values), len(others))) @ np.linalg.cholesky(left).T
        return rows

    def check(self) -> None:
        check_reach(self.mean, self.covariance)


@dataclass(frozen=True)
class GaussianMarginal(SharesNothing):
    """Gaussian with the empirical covariance, about the empirical mean or about zero."""

    n_models: ClassVar[int] = 1
    zero_mean: bool = False

    @classmethod
    def with_options(cls, bandwidths: Sequence[float] | None, cv: int) -> Self:
        return cls()

    @property
    def traits(self) -> Traits:
        return Traits(keeps_zero=self.zero_mean)

    def n_parameters(self, size: int) -> int:
        """Covariances, and means where they are fitted."""
        return size * (size + 1) // 2 + (0 if self.zero_mean else size)

    def chunks(self, subsets: SubsetFamily, above: int = 0) -> Sequence[Chunk]:
        """One: a subset costs next to nothing, and shares its factor with others."""
        return [whole_chunk("gaussians", subsets, above)]

    def warn_few_rows(self, n_fit: int) -> None:
        """Too few make a covariance singular, which scores say."""

    def prepare(self, X_fit: Matrix, X_score: Matrix) -> tuple[Matrix, Matrix]:
        """Second moments of the rows to fit on, and of those to score about the *fitting* rows' mean."""
        check_units(X_fit)
        centre = self._mean(X_fit)
        return second_moment(X_fit - centre), second_moment(X_score - centre)

    def score(self, rows: tuple[Matrix, Matrix], subsets: SubsetFamily, chunk: Chunk, means: Means) -> ChunkScores:
        """l(S) = -1/2 (log det C[S,S] + tr(C[S,S]^-1 D[S,S]) + |S| log 2 pi), -inf where C[S,S] is singular.

        C is the covariance of the fitting rows, D that of the scoring rows.
        """
        scores = expected_log_densities(*rows, subsets, above=above_of(subsets, chunk))
        return ChunkScores.without_bandwidths(np.array(chunk.content), scores[chunk.content.start :])

    def cost(self, rows: tuple[Matrix, Matrix], subsets: SubsetFamily, chunk: Chunk, means: Means) -> Cost:
        return Cost(SECONDS_PER_SUBSET * len(subsets))

    def describe(self, subsets: SubsetFamily, n_fit: int, n_score: int) -> str:
        return f"{len(subsets):,} subsets of {subsets.n_columns} columns in closed form"

    def rows_used(self, n_rows: int, bounds: Bounds) -> RowsUsed:
        """All: a pass over them costs next to nothing."""
        return RowsUsed(n_rows, n_rows, 0)

    def fit_blocks(
        self, X: Matrix, blocks: Sequence[Sequence[int]], *, n_jobs: int | None, bounds: Bounds = UNBOUNDED
    ) -> list[GaussianBlock]:
        return [self._fit(of_columns(X, block)) for block in blocks]

    def _fit(self, X: Matrix) -> GaussianBlock:
        mean = self._mean(X)
        covariance = second_moment(X - mean)
        spread = np.sqrt(np.diag(covariance))
        if not spread.all() or np.isnan(log_determinants(covariance / np.outer(spread, spread))):
            raise InputError(
                f"The covariance of a block of {X.shape[1]} columns over {len(X)} rows is singular: "
                "give more rows, or leave out columns that others determine."
            )
        return GaussianBlock(mean, covariance)

    def _mean(self, X: Matrix) -> Vector:
        return np.zeros(X.shape[1]) if self.zero_mean else X.mean(axis=0)


@dataclass(frozen=True)
class ZeroMeanGaussian(GaussianMarginal):
    """About zero, as in the paper."""

    zero_mean: bool = True


def second_moment(centred: Matrix) -> Matrix:
    moment: Matrix = centred.T @ centred / len(centred)
    return moment


def expected_log_densities(C: Matrix, D: Matrix, subsets: SubsetFamily, above: int = 0) -> Vector:
    """Mean log-density of rows with second moment D under Gaussians with covariance C.

    For every subset, by position; those of at most `above` columns need not be there. A subset's Cholesky factor is
    that of the subset without its last column, and one row more: all subsets cost little more than one row each. Those
    that are nearly singular, and those of a list, are left to `direct_log_densities`.
    """
    scores = np.full(len(subsets), np.nan)
    if subsets.complete > above:
        _fill_complete(C, D, subsets.up_to(subsets.complete), scores)
    doubtful = np.flatnonzero(np.isnan(scores))
    for size in range(above + 1, subsets.max_size + 1):
        start = subsets.offsets[size]
        here = doubtful[(doubtful >= start) & (doubtful < subsets.offsets[size + 1])]
        for part in np.array_split(here, len(here) // SUBSETS_AT_ONCE + 1) if here.size else []:
            scores[part] = direct_log_densities(C, D, subsets.members(size)[part - start])
    return scores


def _fill_complete(C: Matrix, D: Matrix, subsets: SubsetFamily, scores: Vector) -> None:
    """The scores of all subsets, where they can be trusted; the others stay."""
    spread, R, Q = _in_units_of_spread(C, D)
    k, d = subsets.max_size, subsets.n_columns
    _extend_factors(
        R,
        Q,
        2 * np.log(np.where(spread > 0, spread, 1.0)) + np.log(2 * np.pi),
        np.array(subsets.offsets, dtype=np.int64),
        binomials(d, k),
        scores,
        np.zeros((k, k)),
        np.zeros((k, k)),
        np.zeros((k + 1, 3)),
        np.full(k, -1),
        np.zeros(k + 1, dtype=np.int64),
    )


@loop
def _extend_factors(
    R: Any,  # in: correlations
    Q: Any,  # in: second moment of the scoring rows, in the same units
    constant: Any,  # in: of each column: log of its variance times 2 pi
    offsets: Any,  # in: position of the first subset of each size
    choose: Any,  # in: binomial coefficients
    scores: Any,  # out: by position; NaN where the correlations are nearly singular
    L: Any,  # scratch: the factor, a row for each depth
    A: Any,  # scratch: its inverse
    sums: Any,  # scratch, zeros: log-determinant (NaN where nearly singular), trace and constant at each depth
    columns: Any,  # scratch, -1: the subset
    rank: Any,  # scratch, zeros: of its first columns among subsets of their size
) -> None:
    """Walk the tree of sorted subsets, each one its parent and a larger column; at depth s the factor has s rows."""
    d, k = len(R), len(offsets) - 2
    depth = 0
    while depth >= 0:
        columns[depth] += 1
        c = columns[depth]
        if c == d:
            depth -= 1
            continue
        pivot = R[c, c]
        for j in range(depth):
            y = R[columns[j], c]
            for i in range(j):
                y -= L[j, i] * L[depth, i]
            L[depth, j] = y / L[j, j]
            pivot -= L[depth, j] * L[depth, j]
        rank[depth + 1] = rank[depth] + choose[c, depth + 1]
        place = offsets[depth + 1] + rank[depth + 1]
        if pivot > SMALL_PIVOT and not np.isnan(sums[depth, 0]):
            L[depth, depth] = np.sqrt(pivot)
            A[depth, depth] = 1.0 / L[depth, depth]
            for i in range(depth):
                a = 0.0
                for j in range(i, depth):
                    a -= L[depth, j] * A[j, i]
                A[depth, i] = a / L[depth, depth]
            length = 0.0  # this column's part of the trace of A Q A'
            for i in range(depth + 1):
                z = 0.5 * A[depth, i] * Q[columns[i], columns[i]]
                for j in range(i):
                    z += A[depth, j] * Q[columns[j], columns[i]]
                length += 2.0 * A[depth, i] * z
            sums[depth + 1, 0] = sums[depth, 0] + np.log(pivot)
            sums[depth + 1, 1] = sums[depth, 1] + length
            sums[depth + 1, 2] = sums[depth, 2] + constant[c]
            scores[place] = -0.5 * (sums[depth + 1, 0] + sums[depth + 1, 1] + sums[depth + 1, 2])
        else:
            L[depth, depth] = 1.0
            sums[depth + 1, 0] = scores[place] = np.nan
        if depth + 1 < k:
            depth += 1
            columns[depth] = c


def _in_units_of_spread(C: Matrix, D: Matrix) -> tuple[Vector, Matrix, Matrix]:
    """Standard deviations, and both matrices in these units: "singular" must not depend on the columns' units."""
    spread = np.sqrt(np.diag(C))
    unit = np.outer(*2 * [np.where(spread > 0, spread, 1.0)])
    return spread, C / unit, D / unit


def direct_log_densities(C: Matrix, D: Matrix, subsets: NDArray[np.int16]) -> Vector:
    """The same for each row of `subsets`, one by one; -inf where C is singular there, or a column constant."""
    spread, R, Q = _in_units_of_spread(C, D)
    rows, columns = subsets[:, :, None], subsets[:, None, :]
    log_dets = log_determinants(R[rows, columns])
    proper = ~np.isnan(log_dets) & (spread[subsets] > 0).all(axis=1)
    scores = np.full(len(subsets), -np.inf)
    S = subsets[proper]
    traces = np.einsum("nii->n", np.linalg.solve(R[S[:, :, None], S[:, None, :]], Q[S[:, :, None], S[:, None, :]]))
    log_dets = log_dets[proper] + 2 * np.log(spread[S]).sum(axis=1)
    scores[proper] = -0.5 * (log_dets + traces + S.shape[1] * np.log(2 * np.pi))
    return scores


def log_determinants(R: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log-determinants of correlation matrices, shape (..., s, s); NaN for those that are singular.

    By their smallest eigenvalue: determinants of large matrices are tiny long before any column depends on others.
    """
    signs, log_dets = np.linalg.slogdet(R)
    # The other eigenvalues add up to at most s, so their product is below e: a determinant that is not tiny clears
    # the smallest one, and few matrices need their eigenvalues.
    singular = (signs <= 0) | (log_dets < np.log(SINGULAR))
    if singular.any():
        singular = np.array(singular)
        singular[singular] = np.linalg.eigvalsh(R[singular])[:, 0] <= SINGULAR
    return np.where(singular, np.nan, log_dets)
