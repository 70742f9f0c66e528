"""A mixture of Gaussians as the density of a block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from isde.arrays import FrozenArrays, Matrix, Vector
from isde.contents import Layout, check_reach, check_sum, covariances, places, shares
from isde.marginals.conditional import sample_mixture_given
from isde.marginals.gaussian import GaussianBlock
from isde.marginals.marginal import SavedBlock, WithoutBandwidth, checked_columns

VALUES_AT_ONCE = 1 << 15
"""Of rows and components: some arrays of 256 kB."""


@dataclass(frozen=True)
class MixtureBlock(FrozenArrays, SavedBlock, WithoutBandwidth):
    """sum_k weights[k] N(means[k], covariances[k])."""

    kind: ClassVar[str] = "gaussian-mixture"
    layout: ClassVar[Layout] = {"weights": shares("k"), "means": places("k s"), "covariances": covariances("k s s")}
    weights: Vector  # (k,), positive, adding up to 1
    means: Matrix  # (k, s)
    covariances: NDArray[np.float64]  # (k, s, s)

    @property
    def n_columns(self) -> int:
        return self.means.shape[1]

    @property
    def components(self) -> list[GaussianBlock]:
        return [GaussianBlock(mean, cov) for mean, cov in zip(self.means, self.covariances, strict=True)]

    def score_samples(self, X: Matrix, n_jobs: int | None = None) -> Vector:
        """All components at once for some rows at a time: one by one, they would not stay in a cache."""
        factors = np.linalg.inv(np.linalg.cholesky(self.covariances))
        levels = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1) - 0.5 * self.n_columns * np.log(2 * np.pi)
        levels += np.log(self.weights)
        step = max(1, VALUES_AT_ONCE // len(self.weights))
        parts = [self._log_densities(X[i : i + step], factors, levels) for i in range(0, len(X), step)]
        return np.concatenate([np.empty(0), *parts])

    def _log_densities(self, X: Matrix, factors: NDArray[np.float64], levels: Vector) -> Vector:
        away = X.T[None] - self.means[:, :, None]  # (k, s, n)
        squares = np.zeros((len(levels), len(X)))
        for j in range(self.n_columns):
            whitened = factors[:, j, 0, None] * away[:, 0]
            for i in range(1, j + 1):
                whitened += factors[:, j, i, None] * away[:, i]
            squares += whitened**2
        log_density: Vector = logsumexp(levels[:, None] - 0.5 * squares, axis=0)
        return log_density

    def sample(self, n_samples: int, rng: np.random.RandomState) -> Matrix:
        chosen = rng.choice(len(self.weights), size=n_samples, p=self.weights / self.weights.sum())
        rows = np.empty((n_samples, self.n_columns))
        for k, component in enumerate(self.components):
            rows[chosen == k] = component.sample(int((chosen == k).sum()), rng)
        return rows

    def marginal(self, columns: Sequence[int]) -> MixtureBlock:
        own = checked_columns(columns, self.n_columns)
        return MixtureBlock(self.weights, self.means[:, own], self.covariances[:, own][:, :, own])

    def sample_given(self, columns: Sequence[int], values: Matrix, rng: np.random.RandomState) -> Matrix:
        return sample_mixture_given(self.components, self.weights, columns, values, rng)

    def check(self) -> None:
        check_sum(self.weights)
        check_reach(self.means, self.covariances)
