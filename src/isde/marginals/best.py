"""Several families, of which each subset takes the one that scores best (`scores`), and each block the best for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from isde.errors import InputError
from isde.marginals.kde import contiguous_folds
from isde.marginals.marginal import Block, Marginal, MarginalScores, Matrix
from isde.progress import Advance
from isde.subsets import SubsetFamily


@dataclass(frozen=True)
class BestMarginal:
    """The best of several families, block by block."""

    by_ranks: ClassVar[bool] = False
    families: tuple[Marginal, ...]
    cv: int = 5

    @property
    def zero_mean(self) -> bool:
        """Whether the data's zero has a meaning for one of the families, and must be kept for all."""
        return any(getattr(marginal, "zero_mean", False) for marginal in self.families)

    def score_subsets(
        self, X_fit: Matrix, X_score: Matrix, family: SubsetFamily, *, n_jobs: int | None, advance: Advance
    ) -> tuple[MarginalScores, ...]:
        part = _shared(advance, len(self.families))
        found = (one.score_subsets(X_fit, X_score, family, n_jobs=n_jobs, advance=part) for one in self.families)
        return tuple(scores for models in found for scores in models)

    def announce(
        self, X_fit: Matrix, X_score: Matrix, family: SubsetFamily, *, n_splits: int, n_jobs: int | None
    ) -> str:
        each = (one.announce(X_fit, X_score, family, n_splits=n_splits, n_jobs=n_jobs) for one in self.families)
        return "; then ".join(each)

    def fit_block(self, X: Matrix, *, n_jobs: int | None) -> Block:
        """The family with the best cross-validated log-likelihood on the block's rows, fitted on all of them."""

        def held_out(marginal: Marginal) -> float:
            try:
                return sum(
                    float(marginal.fit_block(X[fit], n_jobs=n_jobs).score_samples(X[score], n_jobs).sum())
                    for fit, score in contiguous_folds(len(X), self.cv)
                )
            except InputError:  # a singular covariance, which scores -inf among subsets too
                return -np.inf

        return max(self.families, key=held_out).fit_block(X, n_jobs=n_jobs)


def _shared(advance: Advance, n: int) -> Advance:
    """Progress of one of `n` passes over the same subsets."""
    done = 0

    def step(subsets: int) -> None:
        nonlocal done
        before, done = done // n, done + subsets
        advance(done // n - before)

    return step
