"""The paper's marginal: a spherical Gaussian kernel density, its bandwidth chosen by cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold

from isde.engine import direct, scoring
from isde.engine.grid import BandwidthGrid
from isde.errors import ISDEWarning
from isde.marginals.marginal import MarginalScores, Matrix, Vector, checked_columns, in_words
from isde.progress import Advance, say
from isde.subsets import SubsetFamily


def contiguous_folds(n_rows: int, cv: int) -> direct.Folds:
    """`KFold(cv)` without shuffling, as in the paper; fewer folds where there are fewer rows."""
    if n_rows < 2:
        raise ValueError(f"Cross-validation needs at least 2 rows to fit on, got {n_rows}: give more rows.")
    return list(KFold(min(cv, n_rows)).split(np.empty((n_rows, 1))))


def warn_few_rows(n_rows: int, cv: int) -> None:
    """Warn where there are fewer rows than folds."""
    if n_rows < cv:
        warnings.warn(
            f"Only {n_rows} rows to fit on for cv={cv} folds: {n_rows} folds are used; give more rows or a smaller cv.",
            ISDEWarning,
            stacklevel=3,
        )


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
        normaliser = direct.log_normaliser(X.shape[1], len(self.centres), np.array([self.bandwidth]))[0]
        log_density: Vector = scoring.log_kernel_sums(X, self.centres, self.bandwidth, n_jobs) - normaliser
        return log_density

    def sample(self, n_samples: int, rng: np.random.RandomState) -> Matrix:
        chosen = self.centres[rng.randint(len(self.centres), size=n_samples)]
        return chosen + self.bandwidth * rng.standard_normal(chosen.shape)

    def marginal(self, columns: Sequence[int]) -> KDEBlock:
        own = checked_columns(columns, self.n_columns)
        return KDEBlock(np.ascontiguousarray(self.centres[:, own]), self.bandwidth)

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

    by_ranks: ClassVar[bool] = False
    bandwidths: Sequence[float] | None = None
    cv: int = 5

    def score_subsets(
        self, X_fit: Matrix, X_score: Matrix, family: SubsetFamily, *, n_jobs: int | None, advance: Advance
    ) -> tuple[MarginalScores]:
        grid, folds = BandwidthGrid.of(self.bandwidths), contiguous_folds(len(X_fit), self.cv)
        warn_few_rows(len(X_fit), self.cv)
        found = scoring.score_family(X_fit, X_score, folds, family, grid, n_jobs=n_jobs, advance=advance)
        return (MarginalScores(*found),)

    def announce(
        self, X_fit: Matrix, X_score: Matrix, family: SubsetFamily, *, n_splits: int, n_jobs: int | None
    ) -> str:
        grid, folds = BandwidthGrid.of(self.bandwidths), contiguous_folds(len(X_fit), self.cv)
        what = (
            f"{len(family):,} subsets of {family.n_columns} columns, {len(grid.values)} bandwidths, "
            f"{len(X_fit):,} rows to fit on, {len(X_score):,} to score"
        )
        say("Measuring (the first run on a machine compiles for some seconds)")
        seconds, memory = scoring.expected_cost(X_fit, X_score, folds, family, grid, n_jobs)
        return f"{what}: {in_words(seconds, n_splits)}, {memory / 2**20:,.0f} MB"

    def fit_block(self, X: Matrix, *, n_jobs: int | None) -> KDEBlock:
        return self.fit_blocks(X, [range(X.shape[1])], n_jobs=n_jobs)[0]

    def fit_blocks(self, X: Matrix, blocks: Sequence[Sequence[int]], *, n_jobs: int | None) -> list[KDEBlock]:
        """All blocks in one search: its rounds are too small, one block at a time, to be shared by workers."""
        folds, grid = contiguous_folds(len(X), self.cv), BandwidthGrid.of(self.bandwidths)
        warn_few_rows(len(X), self.cv)
        bandwidths, _ = scoring.choose_bandwidths(X, blocks, folds, grid, n_jobs)
        return [
            KDEBlock(np.ascontiguousarray(X[:, list(block)]), float(bandwidth))
            for block, bandwidth in zip(blocks, bandwidths, strict=True)
        ]
