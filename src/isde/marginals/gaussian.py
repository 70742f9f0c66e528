"""Gaussian marginals in closed form: two d x d matrices score every subset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from isde.errors import InputError
from isde.marginals.marginal import MarginalScores, Matrix, Vector
from isde.progress import Advance
from isde.subsets import SubsetFamily

SINGULAR = 1e-12
"""A correlation matrix with a smaller eigenvalue counts as singular: it has no density."""

SUBSETS_AT_ONCE = 1 << 15


@dataclass(frozen=True)
class GaussianBlock:
    """A Gaussian with the given mean and covariance."""

    kind: ClassVar[str] = "gaussian"
    mean: Vector
    covariance: Matrix

    @property
    def bandwidth(self) -> float:
        return float("nan")

    @property
    def n_columns(self) -> int:
        return len(self.mean)

    def score_samples(self, X: Matrix, n_jobs: int | None = None) -> Vector:
        factor = np.linalg.cholesky(self.covariance)
        whitened = np.linalg.solve(factor, (X - self.mean).T)
        log_det = 2 * np.log(np.diag(factor)).sum()
        log_density: Vector = -0.5 * ((whitened**2).sum(axis=0) + log_det + len(factor) * np.log(2 * np.pi))
        return log_density

    def sample(self, n_samples: int, rng: np.random.RandomState) -> Matrix:
        factor = np.linalg.cholesky(self.covariance)
        return self.mean + rng.standard_normal((n_samples, len(factor))) @ factor.T

    def to_arrays(self) -> Mapping[str, NDArray[Any]]:
        return {"mean": self.mean, "covariance": self.covariance}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> GaussianBlock:
        mean, covariance = arrays["mean"], arrays["covariance"]
        if mean.ndim != 1 or covariance.shape != (len(mean), len(mean)) or not np.isfinite(covariance).all():
            raise ValueError("a Gaussian needs a mean vector and a square covariance matrix")
        return cls(mean, covariance)


@dataclass(frozen=True)
class GaussianMarginal:
    """Gaussian with the empirical covariance, about the empirical mean or (as in the paper) about zero."""

    zero_mean: bool = False

    def n_parameters(self, size: int) -> int:
        """Of a block: covariances, and means where they are fitted."""
        return size * (size + 1) // 2 + (0 if self.zero_mean else size)

    def score_subsets(
        self, X_fit: Matrix, X_score: Matrix, family: SubsetFamily, *, n_jobs: int | None, advance: Advance
    ) -> MarginalScores:
        """l(S) = -1/2 (log det C[S,S] + tr(C[S,S]^-1 D[S,S]) + |S| log 2 pi), -inf where C[S,S] is singular.

        C is the covariance of the fitting rows, D that of the scoring rows about the *fitting* rows' mean.
        """
        centre = self._mean(X_fit)
        C, D = _second_moment(X_fit - centre), _second_moment(X_score - centre)
        scores = []
        for size in range(1, family.max_size + 1):
            members = family.members(size)
            for start in range(0, len(members), SUBSETS_AT_ONCE):
                rows = members[start : start + SUBSETS_AT_ONCE]
                scores.append(_expected_log_density(C, D, rows))
                advance(len(rows))
        n = len(family)
        return MarginalScores(np.concatenate(scores), np.full(n, np.nan), np.zeros(n, dtype=bool))

    def announce(self, X_fit: Matrix, X_score: Matrix, family: SubsetFamily, *, n_jobs: int | None) -> str:
        return f"{len(family):,} subsets of {family.n_columns} columns in closed form"

    def fit_block(self, X: Matrix, *, n_jobs: int | None) -> GaussianBlock:
        mean = self._mean(X)
        covariance = _second_moment(X - mean)
        spread = np.sqrt(np.diag(covariance))
        if not spread.all() or np.isnan(log_determinants(covariance / np.outer(spread, spread))):
            raise InputError(
                f"The covariance of a block of {X.shape[1]} columns over {len(X)} rows is singular: "
                "give more rows, or leave out columns that others determine."
            )
        return GaussianBlock(mean, covariance)

    def _mean(self, X: Matrix) -> Vector:
        return np.zeros(X.shape[1]) if self.zero_mean else X.mean(axis=0)


def _second_moment(centred: Matrix) -> Matrix:
    moment: Matrix = centred.T @ centred / len(centred)
    return moment


def _expected_log_density(C: Matrix, D: Matrix, subsets: NDArray[np.int16]) -> Vector:
    """Mean log-density of rows with second moment D under Gaussians with covariance C, for each row of `subsets`."""
    spread = np.sqrt(np.diag(C))
    # Correlations, so that "singular" does not depend on the columns' units; a constant column is singular whatever.
    unit = np.outer(*2 * [np.where(spread > 0, spread, 1.0)])
    R, Q = C / unit, D / unit
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
