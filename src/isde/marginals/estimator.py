"""Any estimator with `fit` and `score_samples` as a marginal: cloned and fitted for each subset."""

from __future__ import annotations

import inspect
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import clone

from isde.errors import InputError, ISDEError
from isde.marginals.marginal import MarginalScores, Matrix, Vector, in_words
from isde.progress import Advance
from isde.subsets import Subset, SubsetFamily


@dataclass(frozen=True)
class EstimatorBlock:
    """A fitted foreign estimator."""

    kind: ClassVar[str] = "estimator"
    estimator: Any
    n_columns: int

    @property
    def bandwidth(self) -> float:
        return float("nan")

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

    def to_arrays(self) -> Mapping[str, NDArray[Any]]:
        raise InputError(
            f"A block fitted by {type(self.estimator).__name__} cannot be saved without pickle: save "
            "model.subset_scores_ (it holds every score; the partition follows from it) and fit the blocks again."
        )


@dataclass(frozen=True)
class EstimatorMarginal:
    """Clones of a scikit-learn style density estimator."""

    by_ranks: ClassVar[bool] = False
    estimator: Any

    def score_subsets(
        self, X_fit: Matrix, X_score: Matrix, family: SubsetFamily, *, n_jobs: int | None, advance: Advance
    ) -> tuple[MarginalScores]:
        scores = np.empty(len(family))
        parallel = Parallel(n_jobs=n_jobs, return_as="generator")
        jobs = (delayed(_score)(self.estimator, X_fit, X_score, subset) for subset in family)
        for i, score in enumerate(parallel(jobs)):
            scores[i] = score
            advance(1)
        return (MarginalScores(scores, np.full(len(family), np.nan), np.zeros(len(family), dtype=bool)),)

    def announce(
        self, X_fit: Matrix, X_score: Matrix, family: SubsetFamily, *, n_splits: int, n_jobs: int | None
    ) -> str:
        """Measured on one subset of the largest size."""
        start = time.perf_counter()
        _score(self.estimator, X_fit, X_score, family[-1])
        seconds = (time.perf_counter() - start) * len(family) / effective_n_jobs(n_jobs)
        return f"{len(family):,} fits of {type(self.estimator).__name__}: {in_words(seconds, n_splits)}"

    def fit_block(self, X: Matrix, *, n_jobs: int | None) -> EstimatorBlock:
        return EstimatorBlock(clone(self.estimator).fit(X), X.shape[1])


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
