"""The paper's marginal: a spherical Gaussian kernel density, its bandwidth chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from isde.arrays import FrozenArrays, Matrix, Vector
from isde.contents import Layout, places, widths
from isde.data.checks import check_units
from isde.engine import direct, scoring, sums
from isde.engine.grid import BandwidthGrid
from isde.engine.scoring import KernelRows
from isde.marginals.bounds import UNBOUNDED, Bounds, RowsUsed
from isde.marginals.conditional import draw_centres, given_and_others
from isde.marginals.marginal import SavedBlock, TunedByFolds, checked_columns, of_columns
from isde.run.work import Chunk, ChunkScores, Cost, Means, Tuned
from isde.splits import contiguous_folds, warn_few_rows
from isde.subsets import SubsetFamily


@dataclass(frozen=True)
class KDEBlock(FrozenArrays, SavedBlock):
    """A kernel density: Gaussian kernels of standard deviation `bandwidth` around the rows of `centres`."""

    kind: ClassVar[str] = "kde"
    layout: ClassVar[Layout] = {"centres": places("n s"), "bandwidth": widths()}
    centres: Matrix
    bandwidth: float

    @property
    def n_columns(self) -> int:
        return self.centres.shape[1]

    def score_samples(self, X: Matrix, n_jobs: int | None = None) -> Vector:
        normaliser = direct.log_normaliser(X.shape[1], len(self.centres), np.array([self.bandwidth]))[0]
        log_density: Vector = sums.log_kernel_sums(X, self.centres, self.bandwidth, n_jobs) - normaliser
        return log_density

    def sample(self, n_samples: int, rng: np.random.RandomState) -> Matrix:
        chosen = self.centres[rng.randint(len(self.centres), size=n_samples)]
        return chosen + self.bandwidth * rng.standard_normal(chosen.shape)

    def marginal(self, columns: Sequence[int]) -> KDEBlock:
        own = checked_columns(columns, self.n_columns)
        return KDEBlock(of_columns(self.centres, own), self.bandwidth)

    def sample_given(self, columns: Sequence[int], values: Matrix, rng: np.random.RandomState) -> Matrix:
        """A centre, more likely the nearer it is to the values given, and its kernel for the other columns."""
        given, others = given_and_others(columns, values, self.n_columns)
        rows = np.empty((len(values), self.n_columns))
        rows[:, given] = values
        h, uniform = self.bandwidth, rng.uniform(size=len(values))
        chosen = self.centres[draw_centres(values / h, self.centres[:, given] / h, uniform)]
        rows[:, others] = chosen[:, others] + h * rng.standard_normal((len(values), len(others)))
        return rows

    def check(self) -> None:
        if 0 in self.centres.shape:
            raise ValueError("a kernel density needs a centre and a column")


@dataclass(frozen=True)
class KDEMarginal(TunedByFolds):
    """Spherical Gaussian kernel density; `bandwidths=None` is the paper's grid, growing where it must."""

    def chunks(self, subsets: SubsetFamily, above: int = 0) -> Sequence[Chunk]:
        return scoring.kernel_chunks(subsets, above)

    def prepare(self, X_fit: Matrix, X_score: Matrix) -> KernelRows:
        check_units(X_fit)
        return KernelRows.of(X_fit, X_score, contiguous_folds(len(X_fit), self.cv), BandwidthGrid.of(self.bandwidths))

    def to_tune(self, rows: KernelRows, share: float) -> KernelRows:
        return rows.to_tune(share)

    def with_tuned(self, rows: KernelRows, tuned: Sequence[Tuned | None]) -> KernelRows:
        return replace(rows, tuned=tuned[0])

    def score(self, rows: KernelRows, subsets: SubsetFamily, chunk: Chunk, means: Means) -> ChunkScores:
        return scoring.score_chunk(rows, subsets, chunk, means)

    def cost(self, rows: KernelRows, subsets: SubsetFamily, chunk: Chunk, means: Means) -> Cost:
        return scoring.expected_cost(rows, subsets, chunk, means)

    def describe(self, subsets: SubsetFamily, n_fit: int, n_score: int) -> str:
        return (
            f"{len(subsets):,} subsets of {subsets.n_columns} columns, {len(BandwidthGrid.of(self.bandwidths).values)} "
            f"bandwidths, {n_fit:,} rows to fit on, {n_score:,} to score"
        )

    def rows_used(self, n_rows: int, bounds: Bounds) -> RowsUsed:
        """As many as there may be centres: a bandwidth is the best for one number of them."""
        centres = bounds.used(n_rows).centres
        return RowsUsed(n_rows, centres, centres)

    def fit_blocks(
        self, X: Matrix, blocks: Sequence[Sequence[int]], *, n_jobs: int | None, bounds: Bounds = UNBOUNDED
    ) -> list[KDEBlock]:
        """All blocks in one search: its rounds are too small, one block at a time, to be shared by workers."""
        folds, grid = contiguous_folds(len(X), self.cv), BandwidthGrid.of(self.bandwidths)
        warn_few_rows(len(X), self.cv)
        bandwidths, _ = sums.choose_bandwidths(X, blocks, folds, grid, n_jobs)
        return [
            KDEBlock(of_columns(X, block), float(bandwidth))
            for block, bandwidth in zip(blocks, bandwidths, strict=True)
        ]
