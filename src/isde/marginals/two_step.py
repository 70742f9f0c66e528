"""One family to find the blocks, another to describe them.

Scoring thousands of subsets wants a family that is fast and pays for each column it does not need; the few blocks that
are kept want the best density there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from isde.arrays import Matrix
from isde.marginals.bounds import UNBOUNDED, Bounds, RowsUsed
from isde.marginals.marginal import BlockFitter, FittedBlock, SubsetScorer, Traits
from isde.run.work import Chunk, ChunkScores, Cost, Means, Tuned
from isde.subsets import SubsetFamily


@dataclass(frozen=True)
class TwoStepMarginal:
    """Subsets are scored by one family, blocks fitted by another."""

    scoring: SubsetScorer
    fitting: BlockFitter

    @property
    def traits(self) -> Traits:
        return self.scoring.traits

    @property
    def n_models(self) -> int:
        return self.scoring.n_models

    def n_parameters(self, size: int) -> None:
        return None

    def chunks(self, subsets: SubsetFamily, above: int = 0) -> Sequence[Chunk]:
        return self.scoring.chunks(subsets, above)

    def warn_few_rows(self, n_fit: int) -> None:
        self.scoring.warn_few_rows(n_fit)

    def prepare(self, X_fit: Matrix, X_score: Matrix) -> Any:
        return self.scoring.prepare(X_fit, X_score)

    def to_tune(self, rows: Any, share: float) -> Any:
        return self.scoring.to_tune(rows, share)

    def with_tuned(self, rows: Any, tuned: Sequence[Tuned | None]) -> Any:
        return self.scoring.with_tuned(rows, tuned)

    def score(self, rows: Any, subsets: SubsetFamily, chunk: Chunk, means: Means) -> ChunkScores:
        return self.scoring.score(rows, subsets, chunk, means)

    def cost(self, rows: Any, subsets: SubsetFamily, chunk: Chunk, means: Means) -> Cost:
        return self.scoring.cost(rows, subsets, chunk, means)

    def describe(self, subsets: SubsetFamily, n_fit: int, n_score: int) -> str:
        return self.scoring.describe(subsets, n_fit, n_score)

    def rows_used(self, n_rows: int, bounds: Bounds) -> RowsUsed:
        return self.fitting.rows_used(n_rows, bounds)

    def fit_blocks(
        self, X: Matrix, blocks: Sequence[Sequence[int]], *, n_jobs: int | None, bounds: Bounds = UNBOUNDED
    ) -> Sequence[FittedBlock]:
        return self.fitting.fit_blocks(X, blocks, n_jobs=n_jobs, bounds=bounds)
