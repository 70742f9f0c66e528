"""What ISDE asks of a family of marginal densities: score these subsets, fit this block.

Rows to fit on come in a random order: folds are runs of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from isde.progress import Advance
from isde.subsets import SubsetFamily

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]


@dataclass(frozen=True)
class MarginalScores:
    """What a family says of every subset, aligned with the family of subsets."""

    scores: Vector  # mean log-density on the scoring rows, nats
    bandwidths: Vector  # the bandwidth chosen; NaN where the family has none
    unsettled: NDArray[np.bool_]  # the best bandwidth lies on the edge of the widest grid allowed


def in_words(seconds: float, n_splits: int) -> str:
    """What so many splits take, for people.

    >>> in_words(0.2, 1), in_words(42, 1), in_words(30, 20)
    ('less than a second', 'about 42 s', 'about 10 minutes in all')
    """
    total, scope = seconds * n_splits, " in all" if n_splits > 1 else ""
    if total < 1:
        return f"less than a second{scope}"
    return (f"about {total:.0f} s" if total < 90 else f"about {total / 60:.0f} minutes") + scope


def checked_columns(columns: Sequence[int], n_columns: int) -> list[int]:
    """Columns of a block as a list: at least one, none twice, all there."""
    own = [int(column) for column in columns]
    if not own or len(set(own)) < len(own) or not set(own) <= set(range(n_columns)):
        raise ValueError(f"columns={own} must be some of the block's columns 0 to {n_columns - 1}, none of them twice.")
    return own


class Block(Protocol):
    """A fitted density on the columns of one block."""

    kind: ClassVar[str]

    @property
    def n_columns(self) -> int:
        """How many columns it has."""
        ...

    @property
    def bandwidth(self) -> float:
        """The bandwidth; NaN where the family has none."""
        ...

    def score_samples(self, X: Matrix, n_jobs: int | None = None) -> Vector:
        """Log-density of each row."""
        ...

    def sample(self, n_samples: int, rng: np.random.RandomState) -> Matrix:
        """Rows drawn from the density."""
        ...

    def marginal(self, columns: Sequence[int]) -> Block:
        """The exact density of some of its columns, in the order given; families without one raise ISDEError."""
        ...

    def to_arrays(self) -> Mapping[str, NDArray[Any]]:
        """Everything needed to build the block again, as arrays; a foreign estimator raises InputError."""
        ...


class BlockFamily(Protocol):
    """What fits the density of a block."""

    def fit_block(self, X: Matrix, *, n_jobs: int | None) -> Block:
        """Fit the density of one block on all its rows, tuning parameters included."""
        ...


class SubsetScorer(Protocol):
    """What scores subsets of columns, by one model or by several."""

    @property
    def by_ranks(self) -> bool:
        """Whether scores are of dependence alone, and only the order of a column's values enters: the copula scale."""
        ...

    def score_subsets(
        self, X_fit: Matrix, X_score: Matrix, family: SubsetFamily, *, n_jobs: int | None, advance: Advance
    ) -> tuple[MarginalScores, ...]:
        """Fit on X_fit[:, S], average the log-density over X_score[:, S], for every S of the family, by each model.

        Each subset takes the model that scores best over all splits; `advance` is called with its number of subsets.
        """
        ...

    def announce(
        self, X_fit: Matrix, X_score: Matrix, family: SubsetFamily, *, n_splits: int, n_jobs: int | None
    ) -> str:
        """What `score_subsets` is about to do, and what it will cost for all splits, in a sentence."""
        ...


@runtime_checkable
class Marginal(SubsetScorer, BlockFamily, Protocol):
    """Densities, one for each subset of columns: scores subsets, fits blocks."""


def fit_each_block(
    marginal: BlockFamily, X: Matrix, blocks: Sequence[Sequence[int]], *, n_jobs: int | None
) -> list[Block]:
    """The density of each block, its rows shuffled: folds are runs of rows."""
    return fit_in_order(marginal, X[shuffled(len(X))], blocks, n_jobs=n_jobs)


def fit_in_order(
    marginal: BlockFamily, X: Matrix, blocks: Sequence[Sequence[int]], *, n_jobs: int | None
) -> list[Block]:
    """Together where the family has a `fit_blocks`, else one by one."""
    together = getattr(marginal, "fit_blocks", None)
    if together is not None:
        return list(together(X, blocks, n_jobs=n_jobs))
    return [marginal.fit_block(np.ascontiguousarray(X[:, list(block)]), n_jobs=n_jobs) for block in blocks]


def shuffled(n_rows: int) -> NDArray[np.intp]:
    """The same permutation for as many rows.

    Bandwidths and weights are chosen over folds that are runs of rows: where these are sorted, by time or class, each
    fold would be scored by rows that are not like it.
    """
    return np.random.RandomState(0).permutation(n_rows)
