"""One Gaussian for all columns, and the Kullback-Leibler divergence between Gaussians."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg
from sklearn.utils.validation import check_is_fitted

from isde.arrays import Matrix, Vector
from isde.density import ProductDensity, fit_product, scaling_for
from isde.density_estimator import DensityEstimator, one_of
from isde.marginals import resolve_marginal


class GaussianEstimator(DensityEstimator):
    """What every product of Gaussian blocks can say of itself: mean and covariance, in the units of the data."""

    density_: ProductDensity

    @property
    def mean_(self) -> Vector:
        check_is_fitted(self)
        return gaussian_moments(self.density_)[0]

    @property
    def covariance_(self) -> Matrix:
        check_is_fitted(self)
        return gaussian_moments(self.density_)[1]


class EmpiricalGaussian(GaussianEstimator):
    """A Gaussian with the mean and the covariance of the rows: the maximum-likelihood fit without any structure.

    Parameters
    ----------
    scale : "minmax", "standard" or None, default="minmax"
        Rescaling of each column while fitting, against columns in extreme units. The density is the same for each.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        The mean, in the units of the data.
    covariance_ : ndarray of shape (n_features, n_features)
        The covariance (sums divided by the number of rows), in the units of the data.
    density_ : ProductDensity
        The fitted density, one block.

    Examples
    --------
    >>> from isde import EmpiricalGaussian
    >>> from isde.synthetic import make_block_gaussian
    >>> X, _ = make_block_gaussian([2, 1], n_samples=300, random_state=0)
    >>> EmpiricalGaussian().fit(X).covariance_.shape
    (3, 3)
    """

    archive_kind = "EmpiricalGaussian"

    def __init__(self, *, scale: str | None = "minmax") -> None:
        self.scale = scale

    def fit(self, X: Any, y: Any = None) -> EmpiricalGaussian:
        """Mean and covariance of all rows."""
        X = self._check(X, reset=True)
        marginal = resolve_marginal("gaussian")
        all_columns = (tuple(range(X.shape[1])),)
        scaling = scaling_for(X, self.scale, marginal)
        self.density_ = fit_product(X, all_columns, marginal, scaling, self._names(), n_jobs=None)
        return self


def gaussian_moments(density: ProductDensity) -> tuple[Vector, Matrix]:
    """Mean and covariance of a product of Gaussian blocks, in the units of the data."""
    d = len(density.names)
    mean, covariance = np.empty(d), np.zeros((d, d))
    for columns, block in zip(density.partition, density.blocks, strict=True):
        moments = block.to_arrays()
        mean[list(columns)] = moments["mean"]
        covariance[np.ix_(columns, columns)] = moments["covariance"]
    scale = density.scaling.scale
    return density.scaling.inverse(mean), covariance * np.outer(scale, scale)


def gaussian_kl(
    covariance: ArrayLike,
    other_covariance: ArrayLike,
    *,
    mean_difference: ArrayLike | None = None,
    formula: Literal["eigenvalues", "trace"] = "eigenvalues",
) -> float:
    """The Kullback-Leibler divergence KL(N(m1, S1) || N(m2, S2)), nats.

    `"eigenvalues"` is the paper's  sum_v (v - log(1 + v)) / 2  over the eigenvalues v of (S2^-1 - S1^-1) S1; it
    keeps its digits where the two are close. `"trace"` is its  (log det S2 - log det S1 + tr(S2^-1 S1) - d) / 2.
    Means that differ, m2 - m1 = `mean_difference`, add  (m2 - m1)' S2^-1 (m2 - m1) / 2.

    >>> round(gaussian_kl([[1.0]], [[2.0]]), 6), round(gaussian_kl([[1.0]], [[2.0]], formula="trace"), 6)
    (0.096574, 0.096574)
    """
    one_of("formula", formula, ("eigenvalues", "trace"))
    S1, S2 = (np.asarray(S, dtype=np.float64) for S in (covariance, other_covariance))
    if S1.ndim != 2 or S1.shape != S2.shape or S1.shape[0] != S1.shape[1]:
        raise ValueError(f"Two covariance matrices of one size are needed, got shapes {S1.shape} and {S2.shape}.")
    for S in (S1, S2):
        if not np.allclose(S, S.T) or np.linalg.eigvalsh(S)[0] <= 0:
            raise ValueError("A covariance matrix is symmetric and positive definite; one of the two is not.")
    divergence = _kl_by_eigenvalues(S1, S2) if formula == "eigenvalues" else _kl_by_trace(S1, S2)
    if mean_difference is not None:
        delta = np.asarray(mean_difference, dtype=np.float64)
        divergence += float(delta @ np.linalg.solve(S2, delta)) / 2
    return divergence


def _kl_by_eigenvalues(S1: Matrix, S2: Matrix) -> float:
    # Generalised eigenvalues of the pair (S1 - S2, S2) are those of S2^-1 S1 - I, the paper's matrix, and real.
    v = linalg.eigh(S1 - S2, S2, eigvals_only=True)
    return float((v - np.log1p(v)).sum()) / 2


def _kl_by_trace(S1: Matrix, S2: Matrix) -> float:
    log_ratio = np.linalg.slogdet(S2)[1] - np.linalg.slogdet(S1)[1]
    return float(log_ratio + np.trace(np.linalg.solve(S2, S1)) - len(S1)) / 2
