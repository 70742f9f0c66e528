"""Dependence alone, on the copula scale: what a subset's columns say together, beyond what each says by itself.

The score of a subset is the mean log copula density of its rows, on normal scores learned on the rows to fit on
(`normal_scores`): the log-density of the normal scores minus that of independent standard normals. A single column
scores 0, and so does independence: every model here holds it, and is used for a subset only where cross-validation on
the rows to fit on prefers it. Each model answers for its own kind of dependence: Gaussians for correlation, and, of
the magnitudes, for a common scale, at the price of one parameter a pair; kernels for all the rest, at a higher one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from scipy.special import ndtr, ndtri

from isde.arrays import FrozenArrays, Matrix, Vector
from isde.engine import scoring
from isde.engine.grid import BandwidthGrid
from isde.engine.scoring import KernelRows
from isde.marginals.gaussian import SECONDS_PER_SUBSET, expected_log_densities, second_moment
from isde.marginals.marginal import Traits, above_of, whole_chunk
from isde.normal_scores import normal_scores
from isde.run.work import Chunk, ChunkScores, Cost, Means, Tuned
from isde.splits import check_folds, contiguous_folds, warn_few_rows
from isde.subsets import SubsetFamily

KERNELS, GAUSSIANS, MAGNITUDES = range(3)
"""The models."""


@dataclass(frozen=True)
class CopulaRows(FrozenArrays):
    """The normal scores of one split; those to tune kernels on have none to score."""

    Z_fit: Matrix
    Z_score: Matrix
    kernels: KernelRows  # the same, for kernels


@dataclass(frozen=True)
class CopulaScorer:
    """Dependence by kernels, by correlation, and by correlation of magnitudes; `cv` folds choose where to use each."""

    traits: ClassVar[Traits] = Traits(by_ranks=True)
    n_models: ClassVar[int] = 3
    cv: int = 5

    @classmethod
    def with_options(cls, bandwidths: Sequence[float] | None, cv: int) -> Self:
        check_folds(cv)
        return cls(cv)

    def chunks(self, subsets: SubsetFamily, above: int = 0) -> Sequence[Chunk]:
        kernels, others = scoring.kernel_chunks(subsets, above), (("gaussians", GAUSSIANS), ("magnitudes", MAGNITUDES))
        return [*kernels, *(replace(whole_chunk(name, subsets, above), model=model) for name, model in others)]

    def warn_few_rows(self, n_fit: int) -> None:
        warn_few_rows(n_fit, self.cv)

    def prepare(self, X_fit: Matrix, X_score: Matrix) -> CopulaRows:
        Z_fit, Z_score = normal_scores(X_fit, X_score)
        folds, grid = contiguous_folds(len(X_fit), self.cv), BandwidthGrid.of_normal_scores()
        return CopulaRows(Z_fit, Z_score, KernelRows.of(Z_fit, Z_score, folds, grid))

    def to_tune(self, rows: CopulaRows, share: float) -> CopulaRows:
        return replace(rows, kernels=rows.kernels.to_tune(share))

    def with_tuned(self, rows: CopulaRows, tuned: Sequence[Tuned | None]) -> CopulaRows:
        return replace(rows, kernels=replace(rows.kernels, tuned=tuned[KERNELS]))

    def score(self, rows: CopulaRows, subsets: SubsetFamily, chunk: Chunk, means: Means) -> ChunkScores:
        if chunk.model == KERNELS:
            return self._kernels(rows, subsets, chunk, means)
        Z_fit, Z_score = rows.Z_fit, rows.Z_score
        if chunk.model == MAGNITUDES:
            Z_fit, Z_score = magnitude_scores(Z_fit), magnitude_scores(Z_score)
        gains = self._gaussians(Z_fit, Z_score, subsets, above_of(subsets, chunk))
        return ChunkScores.without_bandwidths(np.array(chunk.content), gains[chunk.content.start :])

    def cost(self, rows: CopulaRows, subsets: SubsetFamily, chunk: Chunk, means: Means) -> Cost:
        if chunk.model == KERNELS:
            return scoring.expected_cost(rows.kernels, subsets, chunk, means)
        return Cost(SECONDS_PER_SUBSET * (self.cv + 1) * len(subsets))

    def describe(self, subsets: SubsetFamily, n_fit: int, n_score: int) -> str:
        n_bandwidths = len(BandwidthGrid.of_normal_scores().values)
        return (
            f"{len(subsets):,} subsets of {subsets.n_columns} columns on the copula scale, {n_bandwidths} bandwidths "
            f"and two Gaussians, {n_fit:,} rows to fit on, {n_score:,} to score"
        )

    def _kernels(self, rows: CopulaRows, subsets: SubsetFamily, chunk: Chunk, means: Means) -> ChunkScores:
        """Kernels that keep the normal (see `engine.grid`), of a bandwidth up to 1, which is independence."""
        found = scoring.score_chunk(rows.kernels, subsets, chunk, means)
        if rows.kernels.held_out is None:
            return found
        independence = subsets.sum_over_members(_log_normal(rows.Z_score), found.positions)
        gains = np.where(found.bandwidths == 1, 0.0, found.scores - independence)
        gains[subsets.sizes[found.positions] == 1] = 0.0  # normal scores are normal: nothing to learn of a column alone
        return ChunkScores(found.positions, gains, found.bandwidths, np.zeros(len(gains), dtype=bool))

    def _gaussians(self, Z_fit: Matrix, Z_score: Matrix, subsets: SubsetFamily, above: int) -> Vector:
        """A Gaussian copula where it does better than independence on the rows to fit on."""
        cross_validated = sum(
            len(held_out) * log_gaussian_copula(Z_fit[fit], Z_fit[held_out], subsets, above)
            for fit, held_out in contiguous_folds(len(Z_fit), self.cv)
        )
        return np.where(cross_validated > 0, log_gaussian_copula(Z_fit, Z_score, subsets, above), 0.0)


def log_gaussian_copula(Z_fit: Matrix, Z_score: Matrix, subsets: SubsetFamily, above: int = 0) -> Vector:
    """Mean over the rows of Z_score of  log N(z_S; 0, R[S, S]) - sum_S log phi(z), R the correlations of Z_fit.

    0 for single columns; -inf where the correlations are singular; of at most `above` columns anything.
    """
    C = second_moment(Z_fit)
    spread = np.sqrt(np.diag(C))
    if not spread.all():  # one row, in the middle of its column: nothing can be said
        return np.where(subsets.sizes > 1, -np.inf, 0.0)
    joint = expected_log_densities(C / np.outer(spread, spread), second_moment(Z_score), subsets, above)
    gains = joint - subsets.sum_over_members(_log_normal(Z_score))
    gains[subsets.of_size(1)] = 0.0
    return gains


def magnitude_scores(Z: Matrix) -> Matrix:
    """Normal scores of |z|: standard normal where z is, and large where z is far out on either side.

    >>> magnitude_scores(np.array([[-1.96, -0.6745, 1.96]])).round(2).tolist()
    [[1.64, 0.0, 1.64]]
    """
    beyond = 2 * ndtr(-np.abs(Z))  # share of a normal farther out
    # The median among the rows to fit on has |z| = 0: half a rank from it, as its neighbours are a whole one.
    scores: Matrix = -ndtri(np.minimum(beyond, 1 - 0.5 / (len(Z) + 1)))
    return scores


def _log_normal(Z: Matrix) -> Vector:
    """Mean log-density of each column under the standard normal."""
    means: Vector = -0.5 * (Z**2).mean(axis=0) - 0.5 * np.log(2 * np.pi)
    return means
