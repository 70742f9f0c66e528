"""Dependence alone, on the copula scale: what a subset's columns say together, beyond what each says by itself.

The score of a subset is the mean log copula density of its rows, on normal scores learned on the rows to fit on
(`normal_scores`): the log-density of the normal scores minus that of independent standard normals. A single column
scores 0, and so does independence: every model here holds it, and is used for a subset only where cross-validation on
the rows to fit on prefers it. Each model answers for its own kind of dependence: Gaussians for correlation, and, of
the magnitudes, for a common scale, at the price of one parameter a pair; kernels for all the rest, at a higher one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import ndtr, ndtri

from isde.engine import scoring
from isde.engine.grid import BandwidthGrid
from isde.marginals.gaussian import expected_log_densities, second_moment
from isde.marginals.kde import contiguous_folds, warn_few_rows
from isde.marginals.marginal import MarginalScores, Matrix, Vector, in_words
from isde.normal_scores import normal_scores
from isde.progress import Advance, say
from isde.subsets import SubsetFamily


@dataclass(frozen=True)
class CopulaScorer:
    """Dependence by kernels, by correlation, and by correlation of magnitudes; `cv` folds choose where to use each."""

    by_ranks: ClassVar[bool] = True
    cv: int = 5

    def score_subsets(
        self, X_fit: Matrix, X_score: Matrix, family: SubsetFamily, *, n_jobs: int | None, advance: Advance
    ) -> tuple[MarginalScores, ...]:
        warn_few_rows(len(X_fit), self.cv)
        Z_fit, Z_score = normal_scores(X_fit, X_score)
        kernels = self._kernels(Z_fit, Z_score, family, n_jobs=n_jobs, advance=advance)
        gaussians = self._gaussians(Z_fit, Z_score, family)
        return kernels, gaussians, self._gaussians(magnitude_scores(Z_fit), magnitude_scores(Z_score), family)

    def announce(
        self, X_fit: Matrix, X_score: Matrix, family: SubsetFamily, *, n_splits: int, n_jobs: int | None
    ) -> str:
        folds, grid = contiguous_folds(len(X_fit), self.cv), BandwidthGrid.of_normal_scores()
        say("Measuring (the first run on a machine compiles for some seconds)")
        seconds, memory = scoring.expected_cost(*normal_scores(X_fit, X_score), folds, family, grid, n_jobs)
        return (
            f"{len(family):,} subsets of {family.n_columns} columns on the copula scale, {len(grid.values)} bandwidths "
            f"and two Gaussians, {len(X_fit):,} rows to fit on, {len(X_score):,} to score: "
            f"{in_words(seconds, n_splits)}, {memory / 2**20:,.0f} MB"
        )

    def _kernels(
        self, Z_fit: Matrix, Z_score: Matrix, family: SubsetFamily, *, n_jobs: int | None, advance: Advance
    ) -> MarginalScores:
        """Kernels that keep the normal (see `engine.grid`), of a bandwidth up to 1, which is independence."""
        folds, grid = contiguous_folds(len(Z_fit), self.cv), BandwidthGrid.of_normal_scores()
        found = scoring.score_family(Z_fit, Z_score, folds, family, grid, n_jobs=n_jobs, advance=advance)
        scores, bandwidths, unsettled = found
        gains = np.where(bandwidths == 1, 0.0, scores - family.sum_over_members(_log_normal(Z_score)))
        gains[: family.n_columns] = 0.0  # normal scores are normal: nothing to be learned of a column alone
        return MarginalScores(gains, bandwidths, np.zeros_like(unsettled))

    def _gaussians(self, Z_fit: Matrix, Z_score: Matrix, family: SubsetFamily) -> MarginalScores:
        """A Gaussian copula where it does better than independence on the rows to fit on."""
        cross_validated = sum(
            len(held_out) * log_gaussian_copula(Z_fit[fit], Z_fit[held_out], family)
            for fit, held_out in contiguous_folds(len(Z_fit), self.cv)
        )
        gains = np.where(cross_validated > 0, log_gaussian_copula(Z_fit, Z_score, family), 0.0)
        return MarginalScores(gains, np.full(len(family), np.nan), np.zeros(len(family), dtype=bool))


def log_gaussian_copula(Z_fit: Matrix, Z_score: Matrix, family: SubsetFamily) -> Vector:
    """Mean over the rows of Z_score of  log N(z_S; 0, R[S, S]) - sum_S log phi(z), R the correlations of Z_fit.

    0 for single columns; -inf where the correlations are singular.
    """
    C = second_moment(Z_fit)
    spread = np.sqrt(np.diag(C))
    if not spread.all():  # one row, in the middle of its column: nothing can be said
        return np.where(family.sizes > 1, -np.inf, 0.0)
    joint = expected_log_densities(C / np.outer(spread, spread), second_moment(Z_score), family)
    gains = joint - family.sum_over_members(_log_normal(Z_score))
    gains[: family.n_columns] = 0.0
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
