"""Several families, of which each subset takes the one that scores best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isde.errors import InputError
from isde.marginals.kde import contiguous_folds
from isde.marginals.marginal import Block, Marginal, MarginalScores, Matrix
from isde.progress import Advance
from isde.subsets import SubsetFamily


@dataclass(frozen=True)
class BestMarginal:
    """The best of several families, subset by subset."""

    families: tuple[Marginal, ...]
    cv: int = 5

    @property
    def zero_mean(self) -> bool:
        """Whether the data's zero has a meaning for one of the families, and must be kept for all."""
        return any(getattr(marginal, "zero_mean", False) for marginal in self.families)

    def score_subsets(
        self, X_fit: Matrix, X_score: Matrix, family: SubsetFamily, *, n_jobs: int | None, advance: Advance
    ) -> MarginalScores:
        tables = []
        for number, marginal in enumerate(self.families):
            last = number == len(self.families) - 1  # progress is that of the last: families differ widely in cost
            report = advance if last else _silently
            tables.append(marginal.score_subsets(X_fit, X_score, family, n_jobs=n_jobs, advance=report))
        scores = np.stack([table.scores for table in tables])
        best, every = np.argmax(scores, axis=0), np.arange(len(family))
        return MarginalScores(
            scores[best, every],
            np.stack([table.bandwidths for table in tables])[best, every],
            np.stack([table.unsettled for table in tables])[best, every],
        )

    def announce(self, X_fit: Matrix, X_score: Matrix, family: SubsetFamily, *, n_jobs: int | None) -> str:
        return "; then ".join(m.announce(X_fit, X_score, family, n_jobs=n_jobs) for m in self.families)

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


def _silently(_: int) -> None:
    """No progress to show."""
