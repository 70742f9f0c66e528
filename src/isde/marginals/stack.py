"""A convex combination of experts for each subset: kernel densities of several bandwidths and Gaussian mixtures.

Where a single bandwidth must serve the narrow and the wide parts of a density at once, and one far row can ruin a
score, a combination takes each where it is good. Weights come from held-out log-densities (`engine.stacking`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from scipy.special import logsumexp

from isde.engine import direct, scoring, stacking
from isde.engine.direct import Folds
from isde.engine.grid import BandwidthGrid
from isde.engine.mixtures import Mixtures
from isde.marginals.kde import KDEBlock, contiguous_folds, warn_few_rows
from isde.marginals.marginal import Block, MarginalScores, Matrix, Vector, checked_columns, in_words
from isde.marginals.mixture import MixtureBlock
from isde.progress import Advance, say
from isde.subsets import Subset, SubsetFamily

NARROWEST, WIDEST = 0.005, 0.5
"""Kernel bandwidths on the rescaled data. Wider is the business of the Gaussians; narrower that of small components."""

SCORING_DOUBLINGS, FINAL_DOUBLINGS = 4, 5
"""A Gaussian and mixtures of 2, 4, 8 and 16 for each of many subsets; 32 too for the blocks that are kept.

Noisy circles lose half as much with 32; the paper's other families do not mind (experiments/marginals.py synthetic).
"""

SCORING_STEPS, FINAL_STEPS = 15, 60
"""Of expectation-maximisation for each mixture."""

SUBSETS_PER_TASK = 8


@dataclass(frozen=True)
class StackBlock:
    """sum_j kernel_weights[j] KDE(centres, bandwidths[j]) + sum_k weights[k] N(means[k], covariances[k]).

    There may be no kernel densities, or no Gaussians, but not neither.
    """

    kind: ClassVar[str] = "stack"
    centres: Matrix
    bandwidths: Vector  # of the kernel densities that have weight
    kernel_weights: Vector
    weights: Vector  # of the Gaussians that have weight, all mixtures together
    means: Matrix
    covariances: NDArray[np.float64]

    @property
    def bandwidth(self) -> float:
        """None of its own: there are several."""
        return float("nan")

    @property
    def n_columns(self) -> int:
        return self.centres.shape[1]

    def score_samples(self, X: Matrix, n_jobs: int | None = None) -> Vector:
        if not len(self.bandwidths):
            return self._gaussians(X)
        widest, rungs = float(self.bandwidths[0]), _rungs(self.bandwidths)
        sums = scoring.log_kernel_sums_of_ladder(X, self.centres, widest, int(rungs[-1]) + 1, n_jobs)[rungs]
        constants = np.log(self.kernel_weights) - direct.log_normaliser(X.shape[1], len(self.centres), self.bandwidths)
        logs = [sums + constants[:, None]]
        if len(self.weights):
            logs.append(self._gaussians(X)[None])
        log_density: Vector = logsumexp(np.vstack(logs), axis=0)
        return log_density

    def _gaussians(self, X: Matrix) -> Vector:
        share = self.weights.sum()
        return MixtureBlock(self.weights / share, self.means, self.covariances).score_samples(X) + np.log(share)

    def sample(self, n_samples: int, rng: np.random.RandomState) -> Matrix:
        shares = np.append(self.kernel_weights, self.weights.sum())
        experts: list[Block] = [KDEBlock(self.centres, float(h)) for h in self.bandwidths]
        if len(self.weights):
            experts.append(MixtureBlock(self.weights / shares[-1], self.means, self.covariances))
        chosen = rng.choice(len(shares), size=n_samples, p=shares / shares.sum())
        rows = np.empty((n_samples, self.n_columns))
        for e, expert in enumerate(experts):
            rows[chosen == e] = expert.sample(int((chosen == e).sum()), rng)
        return rows

    def marginal(self, columns: Sequence[int]) -> StackBlock:
        own = checked_columns(columns, self.n_columns)
        means, covariances = self.means[:, own], self.covariances[:, own][:, :, own]
        centres = np.ascontiguousarray(self.centres[:, own])
        return StackBlock(centres, self.bandwidths, self.kernel_weights, self.weights, means, covariances)

    def to_arrays(self) -> Mapping[str, NDArray[Any]]:
        names = ("centres", "bandwidths", "kernel_weights", "weights", "means", "covariances")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> StackBlock:
        gaussians = MixtureBlock.from_arrays(arrays)
        centres, bandwidths, kernel_weights = (arrays[name] for name in ("centres", "bandwidths", "kernel_weights"))
        if bandwidths.ndim != 1 or bandwidths.shape != kernel_weights.shape or not (kernel_weights > 0).all():
            raise ValueError("a stack needs as many positive weights as bandwidths")
        if not (bandwidths > 0).all() or centres.ndim != 2 or not np.isfinite(centres).all():
            raise ValueError("a stack needs positive bandwidths and a matrix of finite centres")
        if len(bandwidths) and not _is_ladder(bandwidths):
            raise ValueError("a stack needs bandwidths of which each is half of the one before, or half of that")
        if centres.shape[1] != gaussians.n_columns or len(centres) == 0 < len(bandwidths):
            raise ValueError("the centres of a stack have as many columns as its Gaussians")
        if not len(bandwidths) and not len(gaussians.weights):
            raise ValueError("a stack needs a kernel density or a Gaussian")
        return cls(centres, bandwidths, kernel_weights, *(arrays[n] for n in ("weights", "means", "covariances")))


@dataclass(frozen=True)
class StackMarginal:
    """Kernel densities and Gaussian mixtures, combined; of `bandwidths` only the range matters."""

    by_ranks: ClassVar[bool] = False
    bandwidths: Sequence[float] | None = None
    cv: int = 5

    def score_subsets(
        self, X_fit: Matrix, X_score: Matrix, family: SubsetFamily, *, n_jobs: int | None, advance: Advance
    ) -> tuple[MarginalScores]:
        warn_few_rows(len(X_fit), self.cv)
        scores: list[float] = []
        with scoring.workers(n_jobs) as run:
            for part in run(_score_subsets, self._tasks(X_fit, X_score, family)):
                scores += part
                advance(len(part))
        return (MarginalScores(np.array(scores), np.full(len(family), np.nan), np.zeros(len(family), dtype=bool)),)

    def announce(
        self, X_fit: Matrix, X_score: Matrix, family: SubsetFamily, *, n_splits: int, n_jobs: int | None
    ) -> str:
        say("Measuring (the first run on a machine compiles for some seconds)")
        middle = [family[len(family) // 2]]  # of the size that a subset has in the middle: most have that or more
        for _ in range(2):
            start = time.perf_counter()
            _score_subsets(X_fit, X_score, middle, self.folds(len(X_fit)), self.ladder())
            seconds = (time.perf_counter() - start) * len(family) / effective_n_jobs(n_jobs)
        return (
            f"{len(family):,} subsets of {family.n_columns} columns, {len(self.ladder())} bandwidths and "
            f"{SCORING_DOUBLINGS + 1} mixtures, {len(X_fit):,} rows to fit on, {len(X_score):,} to score: "
            f"{in_words(seconds, n_splits)}"
        )

    def fit_block(self, X: Matrix, *, n_jobs: int | None) -> StackBlock:
        return self.fit_blocks(X, [range(X.shape[1])], n_jobs=n_jobs)[0]

    def fit_blocks(self, X: Matrix, blocks: Sequence[Sequence[int]], *, n_jobs: int | None) -> list[StackBlock]:
        """Blocks side by side: one alone has a single worker."""
        warn_few_rows(len(X), self.cv)
        with scoring.workers(n_jobs if len(blocks) > 1 else 1) as run:
            return list(run(self.fit_alone, ((np.ascontiguousarray(X[:, list(block)]),) for block in blocks)))

    def fit_alone(self, X: Matrix) -> StackBlock:
        """One block by one worker, without a word on few rows."""
        ladder = self.ladder()
        stack = stacking.fit_stack(X, self.folds(len(X)), ladder, FINAL_DOUBLINGS, FINAL_STEPS)
        return stack_block(X, ladder, stack.kernel_weights, stack.mixtures, stack.mixture_weights)

    def _tasks(self, X_fit: Matrix, X_score: Matrix, family: SubsetFamily) -> Iterator[tuple[Any, ...]]:
        fold, ladder = self.folds(len(X_fit)), self.ladder()
        for start in range(0, len(family), SUBSETS_PER_TASK):
            yield X_fit, X_score, family[start : start + SUBSETS_PER_TASK], fold, ladder

    def folds(self, n_rows: int) -> NDArray[np.int64]:
        return _fold_numbers(contiguous_folds(n_rows, self.cv), n_rows)

    def ladder(self) -> Vector:
        if self.bandwidths is None:
            return stacking.bandwidth_ladder(NARROWEST, WIDEST)
        values = BandwidthGrid.of(self.bandwidths).values
        return stacking.bandwidth_ladder(float(values[0]), float(values[-1]))


def stack_block(
    X: Matrix, bandwidths: Vector, kernel_weights: Vector, mixtures: Mixtures, mixture_weights: Vector
) -> StackBlock:
    """The combination of those experts that have weight."""
    kept, sizes = kernel_weights > 0, np.flatnonzero(mixture_weights).tolist()
    s, parts = X.shape[1], [mixtures.components(size) for size in sizes]
    weights = (mixture_weights[size] * own for size, (own, _, _) in zip(sizes, parts, strict=True))
    return StackBlock(
        X,
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
    return halved and bool((np.diff(rungs) > 0).all())


def _fold_numbers(folds: Folds, n_rows: int) -> NDArray[np.int64]:
    numbers = np.empty(n_rows, dtype=np.int64)
    for number, (_, held_out) in enumerate(folds):
        numbers[held_out] = number
    return numbers


def _score_subsets(
    X_fit: Matrix, X_score: Matrix, subsets: Sequence[Subset], fold: NDArray[np.int64], ladder: Vector
) -> list[float]:
    return [
        stacking.score_subset(X_fit[:, subset], X_score[:, subset], fold, ladder, SCORING_DOUBLINGS, SCORING_STEPS)
        for subset in map(list, subsets)
    ]
