"""The two protocols: how samples are rescaled, which rows count, and the densities as the author's code had them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors

from isde.arrays import Matrix
from isde.baselines.forest import Edge, ForestDensity, heaviest_forest, pair_gains
from isde.comparison import underflows
from isde.density import Scaling
from isde.density_estimator import DensityEstimator
from isde.errors import InputError
from isde.marginals import resolve_marginal
from isde.marginals.kde import KDEBlock
from isde.marginals.marginal import FittedBlock, fit_shuffled
from isde.partitions import Partition
from isde.progress import progress_bar
from isde.scores import SubsetScores
from isde.scoring import score_subsets
from isde.splits import resolve_split
from isde.subsets import Subset

Samples = NDArray[np.float64]  # (samples, rows, columns)

BLOCKS_AT_ONCE = 64
"""Fitted in one search: its rounds are then full, and its memory bounded."""


def rescale(train: Matrix, samples: Samples, protocol: str) -> tuple[Matrix, Samples]:
    """Training rows and validation samples on [0, 1]: by the training rows' range, or ("paper") each by its own."""
    scaling = _scaling(train)
    if protocol == "clean":
        return scaling.transform(train), np.stack([scaling.transform(sample) for sample in samples])
    return scaling.transform(train), np.stack([_scaling(sample).transform(sample) for sample in samples])


def _scaling(rows: Matrix) -> Scaling:
    if not np.ptp(rows, axis=0).all():
        raise InputError("A sample has a column with the same value in every row: leave it out, or take more rows.")
    return Scaling.fit(rows, "minmax")


def sample_scores(log_densities: NDArray[np.float64], protocol: str) -> list[dict[str, Any]]:
    """Mean log-likelihood of each sample, and the rows dropped before: none, or ("paper") those that underflow."""
    kept = ~underflows(log_densities) if protocol == "paper" else np.ones(log_densities.shape, dtype=bool)
    return [
        {"log_likelihood": float(values[keep].mean()) if keep.any() else np.nan, "dropped_rows": int((~keep).sum())}
        for values, keep in zip(log_densities, kept, strict=True)
    ]


def one_split_scores(
    U: Matrix, k: int, *, split: Any, bandwidths: Sequence[float] | None, seed: int, jobs: int | None, verbose: int = 0
) -> SubsetScores:
    """Step 1 of ISDE on rescaled rows: W fits, Z scores, one split; every row counts."""
    fit, score = _fit_and_score(U, split, seed)
    return score_subsets(fit, score, max_block_size=k, bandwidths=bandwidths, n_jobs=jobs, verbose=verbose)


def without_underflows(table: SubsetScores, U: Matrix, *, split: Any, seed: int) -> SubsetScores:
    """The scores as the author's code averages them: each subset without its own rows of Z whose density underflows.

    A row can only underflow in a subset where its distance to the row of W next to it in all columns is large: the
    density is at least what that one kernel gives. Rows that this does not clear are evaluated.
    """
    fit, score = _fit_and_score(U, split, seed)
    nearest = fit[NearestNeighbors(n_neighbors=1).fit(fit).kneighbors(score, return_distance=False)[:, 0]]
    squares, scores = (score - nearest) ** 2, table.scores.copy()
    for place, (subset, h) in enumerate(zip(table.subsets, table.bandwidths.tolist(), strict=True)):
        columns = list(subset)
        level = np.log(len(fit)) + len(columns) * (np.log(h) + 0.5 * np.log(2 * np.pi))
        suspects = underflows(-squares[:, columns].sum(axis=1) / (2 * h**2) - level)
        if suspects.any():
            logs = KDEBlock(np.ascontiguousarray(fit[:, columns]), h).score_samples(score[suspects][:, columns], 1)
            dropped = logs[underflows(logs)]
            left = len(score) - len(dropped)
            scores[place] = (scores[place] * len(score) - dropped.sum()) / left if left else -np.inf
    return replace(table, scores=scores)


def _fit_and_score(U: Matrix, split: Any, seed: int) -> tuple[Matrix, Matrix]:
    """The paper's W and Z."""
    ((fit, score),) = resolve_split(split, seed).split(U)
    return U[fit], U[score]


class BlockDensities:
    """Log-densities of validation rows in blocks of columns, each block fitted once: partitions share blocks.

    With `scores` a block has the bandwidth chosen on W and kernels around all rows, as in the author's code. Without,
    bandwidth and kernels come from all rows, as in `ISDE`.
    """

    def __init__(
        self,
        train: Matrix,
        samples: Samples,
        *,
        bandwidths: Sequence[float] | None,
        scores: SubsetScores | None,
        jobs: int | None,
        verbose: int = 0,
    ) -> None:
        self.train, self.bandwidths, self.scores = train, bandwidths, scores
        self.jobs, self.verbose = jobs, verbose
        self.shape = samples.shape[:2]
        self.rows = np.ascontiguousarray(samples.reshape(-1, samples.shape[2]))
        self.marginal = resolve_marginal("kde", bandwidths=bandwidths, cv=5)
        self.known: dict[Subset, NDArray[np.float64]] = {}

    def of_partition(self, partition: Partition) -> NDArray[np.float64]:
        """Log-density of every row of every sample, (samples, rows)."""
        self.add(partition)
        return np.sum([self.known[block] for block in partition], axis=0).reshape(self.shape)

    def of_forest(self, n_columns: int, edges: Iterable[Edge]) -> NDArray[np.float64]:
        """The paper's product along a forest: f_ij / (f_i f_j) for each edge, times f_k for each column."""
        pairs = [tuple(sorted(edge)) for edge in edges]
        alone = [(c,) for c in range(n_columns)]
        self.add([*alone, *pairs])
        total = np.sum([self.known[block] for block in alone], axis=0)
        for i, j in pairs:
            total = total + self.known[i, j] - self.known[(i,)] - self.known[(j,)]
        return total.reshape(self.shape)

    def add(self, blocks: Iterable[Subset]) -> None:
        """Fit and evaluate the blocks that are not known yet."""
        missing = [block for block in dict.fromkeys(blocks) if block not in self.known]
        label = f"Fitting {len(missing)} blocks, {len(self.rows):,} rows to score"
        with progress_bar(len(missing), label, show=self.verbose > 0 and len(missing) > BLOCKS_AT_ONCE) as advance:
            for start in range(0, len(missing), BLOCKS_AT_ONCE):
                some = missing[start : start + BLOCKS_AT_ONCE]
                for block, density in zip(some, self._fit(some), strict=True):
                    self.known[block] = density.score_samples(np.ascontiguousarray(self.rows[:, block]), self.jobs)
                    advance(1)

    def _fit(self, blocks: Sequence[Subset]) -> Sequence[FittedBlock]:
        if self.scores is None:
            return fit_shuffled(self.marginal, self.train, blocks, n_jobs=self.jobs)
        table = self.scores
        return [
            KDEBlock(np.ascontiguousarray(self.train[:, block]), float(table.bandwidths[table.subsets.index(block)]))
            for block in blocks
        ]


def along_forest(
    densities: BlockDensities, samples: Samples, scores: SubsetScores, protocol: str
) -> tuple[NDArray[np.float64], tuple[Edge, ...]]:
    """FDE: log-densities of every row of every sample, and the edges; ("paper") the published product, no density."""
    if protocol == "paper":
        edges = heaviest_forest(pair_gains(scores)).edges
        return densities.of_forest(densities.train.shape[1], edges), edges
    model = ForestDensity(bandwidths=densities.bandwidths, n_jobs=densities.jobs)
    model.fit(densities.train, subset_scores=scores)
    return of_samples(model, samples), model.edges_


def of_samples(model: DensityEstimator, samples: Samples) -> NDArray[np.float64]:
    """Log-densities of every row of every sample under a fitted model, (samples, rows)."""
    return model.score_samples(samples.reshape(-1, samples.shape[2])).reshape(samples.shape[:2])
