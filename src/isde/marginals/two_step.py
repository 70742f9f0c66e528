"""One family to find the blocks, another to describe them.

Scoring thousands of subsets wants a family that is fast and pays for each column it does not need; the few blocks that
are kept want the best density there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from isde.marginals.marginal import Block, BlockFamily, MarginalScores, Matrix, SubsetScorer, fit_in_order
from isde.progress import Advance
from isde.subsets import SubsetFamily


@dataclass(frozen=True)
class TwoStepMarginal:
    """Subsets are scored by one family, blocks fitted by another."""

    scoring: SubsetScorer
    fitting: BlockFamily

    @property
    def by_ranks(self) -> bool:
        return self.scoring.by_ranks

    def score_subsets(
        self, X_fit: Matrix, X_score: Matrix, family: SubsetFamily, *, n_jobs: int | None, advance: Advance
    ) -> tuple[MarginalScores, ...]:
        return self.scoring.score_subsets(X_fit, X_score, family, n_jobs=n_jobs, advance=advance)

    def announce(
        self, X_fit: Matrix, X_score: Matrix, family: SubsetFamily, *, n_splits: int, n_jobs: int | None
    ) -> str:
        return self.scoring.announce(X_fit, X_score, family, n_splits=n_splits, n_jobs=n_jobs)

    def fit_block(self, X: Matrix, *, n_jobs: int | None) -> Block:
        return self.fitting.fit_block(X, n_jobs=n_jobs)

    def fit_blocks(self, X: Matrix, blocks: Sequence[Sequence[int]], *, n_jobs: int | None) -> list[Block]:
        return fit_in_order(self.fitting, X, blocks, n_jobs=n_jobs)
