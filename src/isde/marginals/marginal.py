"""What isde asks of a family of marginal densities: score subsets, chunk by chunk; fit the blocks that are kept.

Rows to fit on come in a random order: folds are runs of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from isde.arrays import Matrix, Vector
from isde.contents import Layout, check_layout
from isde.marginals.bounds import UNBOUNDED, Bounds, RowsUsed
from isde.run.work import Chunk, ChunkScores, Cost, Means, Tuned
from isde.splits import check_folds, shuffled, warn_few_rows
from isde.subsets import SubsetFamily


@dataclass(frozen=True)
class Traits:
    """What there is to know of a family before anything is scored."""

    by_ranks: bool = False  # scores are of dependence alone, and only the order of a column's values enters
    keeps_zero: bool = False  # the zero of the data has a meaning: rescaling must not move it
    in_processes: bool = False  # its code holds Python's interpreter: workers are processes, not threads
    without_marginals: str | None = None  # by name: what fits blocks of which no exact marginal density is known


class FittedBlock(Protocol):
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

    def marginal(self, columns: Sequence[int]) -> FittedBlock:
        """The exact density of some of its columns, in the order given; families without one raise ISDEError."""
        ...

    def sample_given(self, columns: Sequence[int], values: Matrix, rng: np.random.RandomState) -> Matrix:
        """Complete rows whose `columns` are `values`, the others drawn given these; or ISDEError, as `marginal`."""
        ...

    def to_arrays(self) -> Mapping[str, NDArray[Any]]:
        """Everything needed to build the block again, as arrays; a foreign estimator raises InputError.

        Kinds that can be saved undo it by `from_arrays`, which believes nothing (`SavedBlock`).
        """
        ...


class SavedBlock:
    """A fitted block whose files hold the arrays of its layout: its fields, by name.

    What loads a block checks it: first each array by the layout, then, in `check`, what they are to each other.
    """

    layout: ClassVar[Layout]

    def to_arrays(self) -> Mapping[str, NDArray[Any]]:
        return {name: np.asarray(getattr(self, name)) for name in self.layout}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        check_layout(arrays, cls.layout)
        block = cls(**{name: array if array.ndim else array.item() for name, array in arrays.items()})
        block.check()
        return block

    def check(self) -> None:
        """Raise ValueError where arrays that are sound by themselves make no density together."""


class WithoutBandwidth:
    """A fitted block that has no bandwidth, or several."""

    @property
    def bandwidth(self) -> float:
        return float("nan")


class BlockFitter(Protocol):
    """What fits the densities of blocks."""

    def rows_used(self, n_rows: int, bounds: Bounds) -> RowsUsed:
        """How many of the rows blocks are learned from, and how many of these are centres of kernels."""
        ...

    def fit_blocks(
        self, X: Matrix, blocks: Sequence[Sequence[int]], *, n_jobs: int | None, bounds: Bounds = UNBOUNDED
    ) -> Sequence[FittedBlock]:
        """The density of the columns of each block, tuning included, on the rows given: those of `rows_used`."""
        ...


class SubsetScorer(Protocol):
    """What scores subsets of columns, by one model or by several; each subset takes the one that is best over splits.

    Chunks do not depend on the rows, nor on who does them; rows are prepared once for all chunks of a split. Several
    splits share what is tuned for the subsets of a chunk that says so (`Chunk.tuned`): some of them are tuned, by
    `score` of their rows `to_tune`, and the mean of what they found is handed to the rows of all.
    """

    @property
    def traits(self) -> Traits: ...

    @property
    def n_models(self) -> int: ...

    def chunks(self, subsets: SubsetFamily, above: int = 0) -> Sequence[Chunk]:
        """All that there is to do for one split: every subset of more than `above` columns once for each model."""
        ...

    def warn_few_rows(self, n_fit: int) -> None:
        """Say what follows where there are too few rows to fit on."""
        ...

    def prepare(self, X_fit: Matrix, X_score: Matrix) -> Any:
        """The rows of a split, as `score` takes them."""
        ...

    def to_tune(self, rows: Any, share: float) -> Any:
        """The rows of a split for tuning alone, by a share of those to fit on; `score` takes them."""
        ...

    def with_tuned(self, rows: Any, tuned: Sequence[Tuned | None]) -> Any:
        """The rows of a split with what was tuned for each model; None for a model that shares nothing."""
        ...

    def score(self, rows: Any, subsets: SubsetFamily, chunk: Chunk, means: Means) -> ChunkScores:
        """Fit on X_fit[:, S], average the log-density over X_score[:, S], for every S of the chunk."""
        ...

    def cost(self, rows: Any, subsets: SubsetFamily, chunk: Chunk, means: Means) -> Cost:
        """What `score` is expected to take, from a short measurement."""
        ...

    def describe(self, subsets: SubsetFamily, n_fit: int, n_score: int) -> str:
        """What there is to do, in words."""
        ...


class SharesNothing:
    """A scorer whose splits have nothing in common but their subsets."""

    def to_tune(self, rows: Any, share: float) -> Any:
        return rows

    def with_tuned(self, rows: Any, tuned: Sequence[Tuned | None]) -> Any:
        return rows


@runtime_checkable
class Marginal(SubsetScorer, BlockFitter, Protocol):
    """Densities, one for each subset of columns: scores subsets, fits blocks."""

    def n_parameters(self, size: int) -> int | None:
        """Of a block of so many columns; None where their number is not fixed."""
        ...


@dataclass(frozen=True)
class TunedByFolds:
    """What families share that are tuned over `cv` folds, with bandwidths of a grid or of its range."""

    traits: ClassVar[Traits] = Traits()
    n_models: ClassVar[int] = 1
    bandwidths: Sequence[float] | None = None
    cv: int = 5

    @classmethod
    def with_options(cls, bandwidths: Sequence[float] | None, cv: int) -> Self:
        check_folds(cv)
        return cls(bandwidths, cv)

    def n_parameters(self, size: int) -> None:
        return None

    def warn_few_rows(self, n_fit: int) -> None:
        warn_few_rows(n_fit, self.cv)

    def rows_used(self, n_rows: int, bounds: Bounds) -> RowsUsed:
        return bounds.used(n_rows)


def whole_chunk(name: str, subsets: SubsetFamily, above: int) -> Chunk:
    """All subsets of more than `above` columns as one chunk; `content` is their range."""
    every = range(subsets.offsets[above + 1], len(subsets))
    return Chunk(f"{name}-{above + 1}-{subsets.max_size}", len(every), len(every), content=every)


def above_of(subsets: SubsetFamily, chunk: Chunk) -> int:
    """Of how many columns the largest subsets are that a `whole_chunk` leaves out."""
    return int(subsets.sizes[chunk.content.start]) - 1 if chunk.n_subsets else subsets.max_size


def of_columns(X: Matrix, columns: Sequence[int]) -> Matrix:
    """Some columns, row by row in memory."""
    return np.ascontiguousarray(X[:, list(columns)])


def checked_columns(columns: Sequence[int], n_columns: int) -> list[int]:
    """Columns of a block as a list: at least one, none twice, all there."""
    own = [int(column) for column in columns]
    if not own or len(set(own)) < len(own) or not set(own) <= set(range(n_columns)):
        raise ValueError(f"columns={own} must be some of the block's columns 0 to {n_columns - 1}, none of them twice.")
    return own


def fit_shuffled(
    marginal: BlockFitter,
    X: Matrix,
    blocks: Sequence[Sequence[int]],
    *,
    n_jobs: int | None,
    bounds: Bounds = UNBOUNDED,
    transform: Callable[[Matrix], Matrix] = lambda rows: rows,
) -> list[FittedBlock]:
    """The density of each block, its rows shuffled: folds are runs of rows. Only those taken are transformed."""
    rows = X[shuffled(len(X))[: marginal.rows_used(len(X), bounds).fitted]]
    return list(marginal.fit_blocks(transform(rows), blocks, n_jobs=n_jobs, bounds=bounds))
