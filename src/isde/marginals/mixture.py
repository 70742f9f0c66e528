"""A mixture of Gaussians as the density of a block."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from isde.arrays import FrozenArrays, Matrix, Vector
from isde.marginals.conditional import sample_mixture_given
from isde.marginals.gaussian import GaussianBlock
from isde.marginals.marginal import WithoutBandwidth, checked_columns

VALUES_AT_ONCE = 1 << 15
"""Of rows and components: some arrays of 256 kB."""


@dataclass(frozen=True)
class MixtureBlock(FrozenArrays, WithoutBandwidth):
    """sum_k weights[k] N(means[k], covariances[k])."""

    kind: ClassVar[str] = "gaussian-mixture"
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

    def to_arrays(self) -> Mapping[str, NDArray[Any]]:
        return {"weights": self.weights, "means": self.means, "covariances": self.covariances}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> MixtureBlock:
        weights, means, covariances = (arrays[name] for name in ("weights", "means", "covariances"))
        fits = weights.ndim == 1 and means.ndim == 2 and covariances.shape == (*means.shape, means.shape[1])
        if not fits or len(weights) != len(means) or not (weights > 0).all():
            raise ValueError("a mixture needs positive weights, and as many means and covariance matrices")
        if not np.isfinite(means).all() or not np.isfinite(covariances).all():
            raise ValueError("the means and covariances of a mixture are finite")
        return cls(weights, means, covariances)
