"""A mixture of Gaussians as the density of a block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from isde.arrays import FrozenArrays, Matrix, Vector
from isde.contents import Layout, check_reach, check_sum, covariances, places, shares
from isde.engine import sums
from isde.marginals.conditional import sample_mixture_given
from isde.marginals.gaussian import GaussianBlock
from isde.marginals.marginal import SavedBlock, WithoutBandwidth, checked_columns


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
        return sums.log_gaussian_sums(X, self.weights, self.means, self.covariances, n_jobs)

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
