"""Any estimator with `fit` and `score_samples` as a marginal: cloned and fitted for each subset."""

from __future__ import annotations

import inspect
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from isde.arrays import Matrix, Vector
from isde.errors import InputError, ISDEError
from isde.marginals.bounds import UNBOUNDED, Bounds, RowsUsed
from isde.marginals.marginal import SharesNothing, Traits, WithoutBandwidth, of_columns
from isde.run.work import Chunk, ChunkScores, Cost, Means, cut_evenly
from isde.subsets import Subset, SubsetFamily

MOST_FITS = 8
"""In a chunk: one that is lost costs no more."""


@dataclass(frozen=True)
class EstimatorBlock(WithoutBandwidth):
    """A fitted foreign estimator."""

    kind: ClassVar[str] = "estimator"
    estimator: Any
    n_columns: int

    def score_samples(self, X: Matrix, n_jobs: int | None = None) -> Vector:
        return np.asarray(self.estimator.score_samples(X), dtype=np.float64)

    def sample(self, n_samples: int, rng: np.random.RandomState) -> Matrix:
        """Rows drawn by the estimator's own `sample`; scikit-learn's mixtures return (rows, components)."""
        if not hasattr(self.estimator, "sample"):
            raise ISDEError(f"{type(self.estimator).__name__} has no method 'sample': rows cannot be drawn.")
        estimator, seed = self.estimator, rng.randint(2**31 - 1)
        own = {"random_state": seed} if "random_state" in inspect.signature(estimator.sample).parameters else {}
        if "random_state" in getattr(estimator, "get_params", dict)():
            # A fitted mixture samples with its own fixed seed: every call, and every block, would draw the same.
            estimator.set_params(random_state=seed)
        drawn = estimator.sample(n_samples, **own)
        # A mixture returns its rows component by component; shuffled, they pair with other blocks independently.
        rows = np.asarray(drawn[0] if isinstance(drawn, tuple) else drawn, dtype=np.float64)
        return rows[rng.permutation(len(rows))]

    def marginal(self, columns: Sequence[int]) -> NoReturn:
        raise ISDEError(
            f"A block fitted by {type(self.estimator).__name__} has no marginal density that isde knows of: "
            "fit the estimator to these columns."
        )

    def sample_given(self, columns: Sequence[int], values: Matrix, rng: np.random.RandomState) -> NoReturn:
        raise ISDEError(
            f"A block fitted by {type(self.estimator).__name__} cannot draw some columns given others in a way that "
            "isde knows of: fit another family to these columns."
        )

    def to_arrays(self) -> Mapping[str, NDArray[Any]]:
        raise InputError(
            f"A block fitted by {type(self.estimator).__name__} cannot be saved without pickle: save "
            "model.subset_scores_ (it holds every score; the partition follows from it) and fit the blocks again."
        )


@dataclass(frozen=True)
class EstimatorMarginal(SharesNothing):
    """Clones of a scikit-learn style density estimator."""

    n_models: ClassVar[int] = 1
    estimator: Any

    @property
    def traits(self) -> Traits:
        return Traits(in_processes=True, without_marginals=type(self.estimator).__name__)

    def n_parameters(self, size: int) -> None:
        return None

    def chunks(self, subsets: SubsetFamily, above: int = 0) -> Sequence[Chunk]:
        return cut_evenly(len(subsets), MOST_FITS, subsets.offsets[above + 1])

    def warn_few_rows(self, n_fit: int) -> None:
        """The estimator's own business."""

    def prepare(self, X_fit: Matrix, X_score: Matrix) -> tuple[Matrix, Matrix]:
        return X_fit, X_score

    def score(self, rows: tuple[Matrix, Matrix], subsets: SubsetFamily, chunk: Chunk, means: Means) -> ChunkScores:
        scores = [_score(self.estimator, *rows, subsets[i]) for i in chunk.content]
        return ChunkScores.without_bandwidths(np.array(chunk.content), np.array(scores))

    def cost(self, rows: tuple[Matrix, Matrix], subsets: SubsetFamily, chunk: Chunk, means: Means) -> Cost:
        """Measured on one subset."""
        start = time.perf_counter()
        _score(self.estimator, *rows, subsets[chunk.content[-1]])
        return Cost((time.perf_counter() - start) * chunk.n_subsets)

    def describe(self, subsets: SubsetFamily, n_fit: int, n_score: int) -> str:
        return f"{len(subsets):,} fits of {type(self.estimator).__name__}"

    def rows_used(self, n_rows: int, bounds: Bounds) -> RowsUsed:
        """All: how many a foreign estimator can take is its user's to know."""
        return RowsUsed(n_rows, n_rows, 0)

    def fit_blocks(
        self, X: Matrix, blocks: Sequence[Sequence[int]], *, n_jobs: int | None, bounds: Bounds = UNBOUNDED
    ) -> list[EstimatorBlock]:
        return [EstimatorBlock(clone(self.estimator).fit(of_columns(X, block)), len(block)) for block in blocks]


def _score(estimator: Any, X_fit: Matrix, X_score: Matrix, subset: Subset) -> float:
    S, name = list(subset), type(estimator).__name__
    try:
        fitted = clone(estimator).fit(X_fit[:, S])
        log_density = np.asarray(fitted.score_samples(X_score[:, S]), dtype=np.float64)
    except Exception as error:
        raise ISDEError(f"{name} failed on columns {subset}: {error}") from error
    if log_density.shape != (len(X_score),) or np.isnan(log_density).any() or (log_density == np.inf).any():
        raise ISDEError(f"{name}.score_samples on columns {subset} must give a log-density for each row, never NaN.")
    return float(log_density.mean())
