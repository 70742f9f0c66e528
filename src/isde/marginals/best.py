"""Several families, of which each subset takes the one that scores best (`joined_tables`), and each block its best."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np

from isde.arrays import Matrix
from isde.errors import InputError
from isde.marginals.bounds import UNBOUNDED, Bounds, RowsUsed
from isde.marginals.marginal import FittedBlock, Marginal, Traits, of_columns
from isde.run.work import Chunk, ChunkScores, Cost, Means, Tuned
from isde.splits import contiguous_folds
from isde.subsets import SubsetFamily


@dataclass(frozen=True)
class BestMarginal:
    """The best of several families, block by block."""

    families: tuple[Marginal, ...]
    cv: int = 5

    @property
    def traits(self) -> Traits:
        """Where the data's zero has a meaning for one of the families, it must be kept for all."""
        own = [family.traits for family in self.families]
        return Traits(
            keeps_zero=any(traits.keeps_zero for traits in own),
            in_processes=any(traits.in_processes for traits in own),
            without_marginals=next((name for name in (traits.without_marginals for traits in own) if name), None),
        )

    @property
    def n_models(self) -> int:
        return sum(family.n_models for family in self.families)

    def n_parameters(self, size: int) -> None:
        """Those of one family are no price for another's."""
        return

    def chunks(self, subsets: SubsetFamily, above: int = 0) -> Sequence[Chunk]:
        """Those of each family, which they name, since their own names may be the same."""
        return [
            replace(chunk, key=f"{number}-{chunk.key}", model=first + chunk.model)
            for number, (first, family) in enumerate(zip(self._first_models(), self.families, strict=True))
            for chunk in family.chunks(subsets, above)
        ]

    def warn_few_rows(self, n_fit: int) -> None:
        for family in self.families:
            family.warn_few_rows(n_fit)

    def prepare(self, X_fit: Matrix, X_score: Matrix) -> list[Any]:
        return [family.prepare(X_fit, X_score) for family in self.families]

    def to_tune(self, rows: list[Any], share: float) -> list[Any]:
        return [family.to_tune(own, share) for family, own in zip(self.families, rows, strict=True)]

    def with_tuned(self, rows: list[Any], tuned: Sequence[Tuned | None]) -> list[Any]:
        firsts = zip(self.families, rows, self._first_models(), strict=True)
        return [family.with_tuned(own, tuned[first : first + family.n_models]) for family, own, first in firsts]

    def score(self, rows: list[Any], subsets: SubsetFamily, chunk: Chunk, means: Means) -> ChunkScores:
        number, own = self._of_family(chunk)
        return self.families[number].score(rows[number], subsets, own, means)

    def cost(self, rows: list[Any], subsets: SubsetFamily, chunk: Chunk, means: Means) -> Cost:
        number, own = self._of_family(chunk)
        return self.families[number].cost(rows[number], subsets, own, means)

    def describe(self, subsets: SubsetFamily, n_fit: int, n_score: int) -> str:
        return "; then ".join(family.describe(subsets, n_fit, n_score) for family in self.families)

    def rows_used(self, n_rows: int, bounds: Bounds) -> RowsUsed:
        """The same for all families: they are compared on them."""
        return bounds.used(n_rows)

    def fit_blocks(
        self, X: Matrix, blocks: Sequence[Sequence[int]], *, n_jobs: int | None, bounds: Bounds = UNBOUNDED
    ) -> list[FittedBlock]:
        return [self._fit(of_columns(X, block), n_jobs, bounds) for block in blocks]

    def _fit(self, X: Matrix, n_jobs: int | None, bounds: Bounds) -> FittedBlock:
        """The family with the best cross-validated log-likelihood on the block's rows, fitted on all of them."""
        whole = [range(X.shape[1])]

        def fitted(family: Marginal, rows: Matrix) -> FittedBlock:
            taken = rows[: family.rows_used(len(rows), bounds).fitted]
            return family.fit_blocks(taken, whole, n_jobs=n_jobs, bounds=bounds)[0]

        def held_out(family: Marginal) -> float:
            try:
                return sum(
                    float(fitted(family, X[fit]).score_samples(X[score], n_jobs).sum())
                    for fit, score in contiguous_folds(len(X), self.cv)
                )
            except InputError:  # a singular covariance, which scores -inf among subsets too
                return -np.inf

        return fitted(max(self.families, key=held_out), X)

    def _first_models(self) -> Iterator[int]:
        """The number of each family's first model."""
        return accumulate((family.n_models for family in self.families[:-1]), initial=0)

    def _of_family(self, chunk: Chunk) -> tuple[int, Chunk]:
        """Which family a chunk belongs to, and the chunk as that one knows it."""
        number, _, key = chunk.key.partition("-")
        first = list(self._first_models())[int(number)]
        return int(number), replace(chunk, key=key, model=chunk.model - first)
