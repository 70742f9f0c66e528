"""A convex combination of experts for each subset: kernel densities of several bandwidths and Gaussian mixtures.

Where a single bandwidth must serve the narrow and the wide parts of a density at once, and one far row can ruin a
score, a combination takes each where it is good. Weights come from held-out log-densities (`engine.stacking`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from isde.arrays import FrozenArrays, IntVector, Matrix, Vector
from isde.contents import Layout, check_reach, check_sum, covariances, places, shares, widths
from isde.data.checks import check_units
from isde.engine import direct, stacking, sums
from isde.engine.grid import BandwidthGrid
from isde.engine.mixtures import Mixtures
from isde.marginals.bounds import UNBOUNDED, Bounds
from isde.marginals.conditional import sample_mixture_given
from isde.marginals.kde import KDEBlock
from isde.marginals.marginal import (
    FittedBlock,
    SavedBlock,
    SharesNothing,
    TunedByFolds,
    WithoutBandwidth,
    checked_columns,
    of_columns,
)
from isde.marginals.mixture import MixtureBlock
from isde.run.executors import workers
from isde.run.work import Chunk, ChunkScores, Cost, Means, cut_evenly
from isde.splits import fold_numbers, warn_few_rows
from isde.subsets import SubsetFamily

NARROWEST, WIDEST = 0.005, 0.5
"""Kernel bandwidths on the rescaled data. Wider is the business of the Gaussians; narrower that of small components."""

SCORING_DOUBLINGS, FINAL_DOUBLINGS = 4, 5
"""A Gaussian and mixtures of 2, 4, 8 and 16 for each of many subsets; 32 too for the blocks that are kept.

Noisy circles lose half as much with 32; the paper's other families do not mind (experiments/marginals.py synthetic).
"""

ROWS_FOR_COMPONENT, MOST_DOUBLINGS = 400, 7
"""With many rows, mixtures of 64 and 128 components too, each where it has so many rows a component."""

SCORING_STEPS, FINAL_STEPS = 15, 60
"""Of expectation-maximisation for each mixture."""

MOST_RUNGS = 60
"""Halvings between the widest and the narrowest bandwidth: beyond, no kernel has a row but those on its centre."""

MOST_SUBSETS = 8
"""Of a chunk: about half a second with thousands of rows."""


@dataclass(frozen=True)
class StackBlock(FrozenArrays, SavedBlock, WithoutBandwidth):
    """sum_j kernel_weights[j] KDE(centres, bandwidths[j]) + sum_k weights[k] N(means[k], covariances[k]).

    There may be no kernel densities, or no Gaussians, but not neither.
    """

    kind: ClassVar[str] = "stack"
    layout: ClassVar[Layout] = {
        "centres": places("n s"),
        "bandwidths": widths("h"),
        "kernel_weights": shares("h"),
        "weights": shares("k"),
        "means": places("k s"),
        "covariances": covariances("k s s"),
    }
    centres: Matrix
    bandwidths: Vector  # of the kernel densities that have weight
    kernel_weights: Vector
    weights: Vector  # of the Gaussians that have weight, all mixtures together
    means: Matrix
    covariances: NDArray[np.float64]

    @property
    def n_columns(self) -> int:
        return self.centres.shape[1]

    def score_samples(self, X: Matrix, n_jobs: int | None = None) -> Vector:
        if not len(self.bandwidths):
            return self._gaussians(X, n_jobs)
        widest, rungs = float(self.bandwidths[0]), _rungs(self.bandwidths)
        of_ladder = sums.log_kernel_sums_of_ladder(X, self.centres, widest, int(rungs[-1]) + 1, n_jobs)[rungs]
        constants = np.log(self.kernel_weights) - direct.log_normaliser(X.shape[1], len(self.centres), self.bandwidths)
        logs = [of_ladder + constants[:, None]]
        if len(self.weights):
            logs.append(self._gaussians(X, n_jobs)[None])
        log_density: Vector = logsumexp(np.vstack(logs), axis=0)
        return log_density

    def _gaussians(self, X: Matrix, n_jobs: int | None) -> Vector:
        share = self.weights.sum()
        return MixtureBlock(self.weights / share, self.means, self.covariances).score_samples(X, n_jobs) + np.log(share)

    def sample(self, n_samples: int, rng: np.random.RandomState) -> Matrix:
        experts, shares = self._experts()
        chosen = rng.choice(len(shares), size=n_samples, p=shares / shares.sum())
        rows = np.empty((n_samples, self.n_columns))
        for e, expert in enumerate(experts):
            rows[chosen == e] = expert.sample(int((chosen == e).sum()), rng)
        return rows

    def sample_given(self, columns: Sequence[int], values: Matrix, rng: np.random.RandomState) -> Matrix:
        return sample_mixture_given(*self._experts(), columns, values, rng)

    def _experts(self) -> tuple[list[FittedBlock], Vector]:
        """Each kernel density, and all Gaussians as one mixture; and their shares."""
        experts: list[FittedBlock] = [KDEBlock(self.centres, float(h)) for h in self.bandwidths]
        if not len(self.weights):
            return experts, self.kernel_weights
        share = self.weights.sum()
        experts.append(MixtureBlock(self.weights / share, self.means, self.covariances))
        return experts, np.append(self.kernel_weights, share)

    def marginal(self, columns: Sequence[int]) -> StackBlock:
        own = checked_columns(columns, self.n_columns)
        means, covariances = self.means[:, own], self.covariances[:, own][:, :, own]
        centres = of_columns(self.centres, own)
        return StackBlock(centres, self.bandwidths, self.kernel_weights, self.weights, means, covariances)

    def check(self) -> None:
        check_sum(self.kernel_weights, self.weights)
        check_reach(self.means, self.covariances)
        if len(self.bandwidths) and not _is_ladder(self.bandwidths):
            raise ValueError("a stack needs bandwidths of which each is half of the one before, or half of that")
        if len(self.bandwidths) and not len(self.centres):
            raise ValueError("the kernels of a stack need centres")


@dataclass(frozen=True)
class StackMarginal(SharesNothing, TunedByFolds):
    """Kernel densities and Gaussian mixtures, combined; of `bandwidths` only the range matters."""

    def chunks(self, subsets: SubsetFamily, above: int = 0) -> Sequence[Chunk]:
        return cut_evenly(len(subsets), MOST_SUBSETS, subsets.offsets[above + 1])

    def prepare(self, X_fit: Matrix, X_score: Matrix) -> tuple[Matrix, Matrix]:
        check_units(X_fit)
        return X_fit, X_score

    def score(self, rows: tuple[Matrix, Matrix], subsets: SubsetFamily, chunk: Chunk, means: Means) -> ChunkScores:
        scores = list(means.run(self._score, ((*rows, list(subsets[i])) for i in chunk.content)))
        return ChunkScores.without_bandwidths(np.array(chunk.content), np.array(scores))

    def _score(self, X_fit: Matrix, X_score: Matrix, columns: list[int]) -> float:
        fold, ladder = self.folds(len(X_fit)), self.ladder()
        return stacking.score_subset(
            X_fit[:, columns], X_score[:, columns], fold, ladder, SCORING_DOUBLINGS, SCORING_STEPS
        )

    def cost(self, rows: tuple[Matrix, Matrix], subsets: SubsetFamily, chunk: Chunk, means: Means) -> Cost:
        """Measured on one subset, twice: the first time compiled code is loaded or made."""
        for _ in range(2):
            start = time.perf_counter()
            self._score(*rows, list(subsets[chunk.content[-1]]))
            seconds = time.perf_counter() - start
        return Cost(seconds * chunk.n_subsets)

    def describe(self, subsets: SubsetFamily, n_fit: int, n_score: int) -> str:
        return (
            f"{len(subsets):,} subsets of {subsets.n_columns} columns, {len(self.ladder())} bandwidths and "
            f"{SCORING_DOUBLINGS + 1} mixtures, {n_fit:,} rows to fit on, {n_score:,} to score"
        )

    def fit_blocks(
        self, X: Matrix, blocks: Sequence[Sequence[int]], *, n_jobs: int | None, bounds: Bounds = UNBOUNDED
    ) -> list[StackBlock]:
        """Blocks side by side: one alone has a single worker."""
        warn_few_rows(len(X), self.cv)
        with workers(n_jobs if len(blocks) > 1 else 1) as run:
            return list(run(self.fit_alone, ((of_columns(X, block), bounds) for block in blocks)))

    def fit_alone(self, X: Matrix, bounds: Bounds) -> StackBlock:
        """One block by one worker, without a word on few rows."""
        centres, doublings = bounds.centres(len(X)), final_doublings(len(X), bounds)
        stack = stacking.fit_stack(X, self.folds(len(X)), self.ladder(), doublings, FINAL_STEPS, centres)
        return stack_block(
            stacking.of_centres(X, centres),
            stack.bandwidths,
            stack.kernel_weights,
            stack.mixtures,
            stack.mixture_weights,
        )

    def folds(self, n_rows: int) -> IntVector:
        return fold_numbers(n_rows, self.cv)

    def ladder(self) -> Vector:
        if self.bandwidths is None:
            return stacking.bandwidth_ladder(NARROWEST, WIDEST)
        values = BandwidthGrid.of(self.bandwidths).values
        return stacking.bandwidth_ladder(float(values[0]), float(values[-1]))


def final_doublings(n_rows: int, bounds: Bounds) -> int:
    """More than `FINAL_DOUBLINGS` where there are rows enough, and not all of them are centres of kernels.

    >>> [final_doublings(n_rows, Bounds(max_centres=5000)) for n_rows in (5_000, 20_000, 50_000, 1_000_000)]
    [5, 5, 6, 7]
    """
    if bounds.n_centres(n_rows) == n_rows:
        return FINAL_DOUBLINGS
    paid_for = int(np.log2(n_rows / ROWS_FOR_COMPONENT))
    return min(max(paid_for, FINAL_DOUBLINGS), MOST_DOUBLINGS)


def stack_block(
    centres: Matrix, bandwidths: Vector, kernel_weights: Vector, mixtures: Mixtures, mixture_weights: Vector
) -> StackBlock:
    """The combination of those experts that have weight."""
    kept, sizes = kernel_weights > 0, np.flatnonzero(mixture_weights).tolist()
    s, parts = centres.shape[1], [mixtures.components(size) for size in sizes]
    weights = (mixture_weights[size] * own for size, (own, _, _) in zip(sizes, parts, strict=True))
    return StackBlock(
        centres,
        bandwidths[kept],
        kernel_weights[kept],
        np.concatenate([np.empty(0), *weights]),
        np.concatenate([np.empty((0, s)), *(means for _, means, _ in parts)]),
        np.concatenate([np.empty((0, s, s)), *(covariances for _, _, covariances in parts)]),
    )


def _rungs(bandwidths: Vector) -> NDArray[np.int64]:
    """How often each bandwidth is the first one halved."""
    return np.round(np.log2(bandwidths[0] / bandwidths)).astype(np.int64)


def _is_ladder(bandwidths: Vector) -> bool:
    rungs = _rungs(bandwidths)
    halved = np.allclose(bandwidths, bandwidths[0] / 2.0**rungs, rtol=1e-9, atol=0)
    return halved and bool((np.diff(rungs) > 0).all()) and int(rungs[-1]) <= MOST_RUNGS
