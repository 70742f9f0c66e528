"""The paper's marginal: a spherical Gaussian kernel density, its bandwidth chosen by cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.model_selection import KFold

from isde.engine import direct
from isde.errors import ISDEWarning
from isde.marginals.marginal import MarginalScores, Matrix, Vector
from isde.progress import Advance
from isde.subsets import Subset, SubsetFamily

PAPER_GRID = np.geomspace(0.01, 1, 30)
"""For data scaled to [0, 1]."""

GROWTH_LIMIT = 1000.0
"""How far beyond each end of the default grid a bandwidth is looked for: three decades."""


@dataclass(frozen=True)
class BandwidthGrid:
    """Candidate bandwidths, ascending; `grows` where the ends may be passed by steps of the same ratio."""

    values: Vector
    grows: bool

    @classmethod
    def of(cls, bandwidths: ArrayLike | None) -> BandwidthGrid:
        """The paper's grid, which grows, or the user's, which is used as it is."""
        if bandwidths is None:
            return cls(PAPER_GRID, grows=True)
        values = np.unique(np.asarray(bandwidths, dtype=np.float64))
        if values.size == 0 or not np.all(np.isfinite(values)) or values[0] <= 0:
            raise ValueError(f"bandwidths must be positive numbers, got {bandwidths!r}.")
        return cls(values, grows=False)

    @property
    def ratio(self) -> float:
        return float(self.values[1] / self.values[0])

    def step(self, k: int) -> float:
        """The grid continued: step(0) is the first value, step(-1) the one below it, and so on."""
        if 0 <= k < len(self.values):
            return float(self.values[k])
        edge = self.values[0] if k < 0 else self.values[-1]
        return float(edge * self.ratio ** (k if k < 0 else k - len(self.values) + 1))

    @property
    def reach(self) -> int:
        """How many steps it may grow on each side."""
        return int(np.log(GROWTH_LIMIT) / np.log(self.ratio)) if self.grows else 0


def contiguous_folds(n_rows: int, cv: int) -> direct.Folds:
    """`KFold(cv)` without shuffling, as in the paper; fewer folds, with a warning, where there are fewer rows."""
    if n_rows < 2:
        raise ValueError(f"Cross-validation needs at least 2 rows to fit on, got {n_rows}: give more rows.")
    if n_rows < cv:
        warnings.warn(
            f"Only {n_rows} rows to fit on for cv={cv} folds: {n_rows} folds are used; give more rows or a smaller cv.",
            ISDEWarning,
            stacklevel=3,
        )
    return list(KFold(min(cv, n_rows)).split(np.empty((n_rows, 1))))


def choose_bandwidth(X: Matrix, folds: direct.Folds, grid: BandwidthGrid) -> tuple[float, bool]:
    """The bandwidth with the best cross-validated log-likelihood, and whether it lies inside the grid.

    Where the best value is an end of a growing grid, one more step is tried on that side, until it is not.
    """
    scores = dict(enumerate(direct.cv_log_likelihood(X, folds, grid.values)))
    while True:
        best = max(scores, key=lambda k: scores[k])
        if not grid.grows or min(scores) < best < max(scores):
            return grid.step(best), True
        following = best + (1 if best == max(scores) else -1)
        if not -grid.reach <= following < len(grid.values) + grid.reach:
            return grid.step(best), False
        scores[following] = direct.cv_log_likelihood(X, folds, np.array([grid.step(following)]))[0]


@dataclass(frozen=True)
class KDEBlock:
    """A kernel density: Gaussian kernels of standard deviation `bandwidth` around the rows of `centres`."""

    kind: ClassVar[str] = "kde"
    centres: Matrix
    bandwidth: float

    @property
    def n_columns(self) -> int:
        return self.centres.shape[1]

    def score_samples(self, X: Matrix, n_jobs: int | None = None) -> Vector:
        h = np.array([self.bandwidth])
        normaliser = direct.log_normaliser(X.shape[1], len(self.centres), h)[0]
        log_density: Vector = direct.log_kernel_sums(X, self.centres, h)[0] - normaliser
        return log_density

    def sample(self, n_samples: int, rng: np.random.RandomState) -> Matrix:
        chosen = self.centres[rng.randint(len(self.centres), size=n_samples)]
        return chosen + self.bandwidth * rng.standard_normal(chosen.shape)

    def to_arrays(self) -> Mapping[str, NDArray[Any]]:
        return {"centres": self.centres, "bandwidth": np.array(self.bandwidth)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> KDEBlock:
        bandwidth = float(arrays["bandwidth"])
        if arrays["centres"].ndim != 2 or not bandwidth > 0 or not np.isfinite(arrays["centres"]).all():
            raise ValueError("a kernel density needs a matrix of finite centres and a positive bandwidth")
        return cls(arrays["centres"], bandwidth)


@dataclass(frozen=True)
class KDEMarginal:
    """Spherical Gaussian kernel density; `bandwidths=None` is the paper's grid, growing where it must."""

    bandwidths: Sequence[float] | None = None
    cv: int = 5

    def score_subsets(
        self, X_fit: Matrix, X_score: Matrix, family: SubsetFamily, *, n_jobs: int | None, advance: Advance
    ) -> MarginalScores:
        grid, folds = BandwidthGrid.of(self.bandwidths), contiguous_folds(len(X_fit), self.cv)

        def score(subset: Subset) -> tuple[float, float, bool]:
            S = list(subset)
            bandwidth, settled = choose_bandwidth(X_fit[:, S], folds, grid)
            return direct.mean_log_density(X_fit[:, S], X_score[:, S], bandwidth), bandwidth, not settled

        results = []
        parallel = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")
        for result in parallel(delayed(score)(subset) for subset in family):
            results.append(result)
            advance(1)
        scores, bandwidths, unsettled = map(np.array, zip(*results, strict=True))
        return MarginalScores(scores, bandwidths, unsettled)

    def fit_block(self, X: Matrix, *, n_jobs: int | None) -> KDEBlock:
        bandwidth, _ = choose_bandwidth(X, contiguous_folds(len(X), self.cv), BandwidthGrid.of(self.bandwidths))
        return KDEBlock(np.ascontiguousarray(X), bandwidth)
