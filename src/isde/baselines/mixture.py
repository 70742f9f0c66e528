"""GM: a mixture of Gaussians, the number of components chosen by cross-validation or BIC."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from isde.archive import Arrays, over, under
from isde.arrays import FrozenArrays, Matrix, Vector
from isde.callbacks import CallbackSupport, heard_by_callbacks
from isde.density import ProductDensity, Scaling
from isde.density_estimator import DensityEstimator, one_of
from isde.errors import InputError, warn
from isde.marginals.mixture import MixtureBlock
from isde.partitions import RandomState
from isde.progress import progress_bar
from isde.splits import Folds, contiguous_folds, shuffled, warn_few_rows

WORSE_IN_A_ROW = 5
STANDARD_ERRORS = 2.0
"""The search ends after this many larger sizes in a row, each worse than the best by this many standard errors."""


@dataclass(frozen=True)
class ComponentSearch(FrozenArrays):
    """What the search for the number of components found, sizes in the order tried."""

    n_components: NDArray[np.int64]  # the sizes tried: 1, 2, ... up to where the search ended
    scores: Vector  # held-out mean log-density over the folds, or -BIC / (2 rows): nats per row, in the data's units
    errors: Vector  # standard error of the score over the folds; NaN for BIC
    converged: NDArray[np.bool_]  # whether every fit of that size converged

    @property
    def best(self) -> int:
        """The size with the best score, the smallest of equal ones."""
        return int(self.n_components[np.argmax(self.scores)])


class GaussianMixtureCV(CallbackSupport, DensityEstimator):  # type: ignore[misc]
    """Mixture of Gaussians with full covariances, the number of components by cross-validated log-likelihood.

    scikit-learn's `GaussianMixture`, fitted for 1, 2, ... components; the search ends early where five larger sizes
    in a row score worse than the best so far by more than two standard errors. All sizes share their folds, so that the
    standard error is that of the paired difference over the folds. The paper tries all sizes up to 30.

    Parameters
    ----------
    max_components : int, default=30
        Largest number of components tried.
    criterion : "cv" or "bic", default="cv"
        "cv": held-out mean log-density, averaged over the folds. "bic": Bayesian information criterion on all rows; it
        has no standard error, and every size is tried.
    cv : int, default=5
        Folds: runs of the rows once they are shuffled, always in the same way. The paper's are runs in the order given;
        where that follows time or class, each fold is scored by a mixture of rows that are not like it.
    scale : "minmax", "standard" or None, default="minmax"
        Rescaling of each column before anything else. Results are in the units of the data given, whatever it is. It
        decides what scikit-learn's 1e-6 on the diagonal of each covariance means.
    max_iter : int, default=100
        Steps of EM for each fit.
    n_jobs : int or None, default=None
        Workers, as in joblib: sizes and folds are shared out. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Draws where EM starts; each fit starts from the same number.
    verbose : int, default=0
        Above 0, progress goes to standard error.

    Attributes
    ----------
    n_components_ : int
        The number of components chosen.
    weights_, means_, covariances_ : ndarray
        The mixture, in the units of the data.
    path_ : ComponentSearch
        The sizes tried, with their scores.
    density_ : ProductDensity
        The fitted density, one block.

    Examples
    --------
    >>> import numpy as np
    >>> from isde import GaussianMixtureCV
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 2)) + 8 * rng.integers(2, size=(400, 1))
    >>> GaussianMixtureCV(max_components=4, random_state=0).fit(X).n_components_
    2
    """

    archive_kind = "GaussianMixtureCV"

    def __init__(
        self,
        max_components: int = 30,
        *,
        criterion: str = "cv",
        cv: int = 5,
        scale: str | None = "minmax",
        max_iter: int = 100,
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.max_components = max_components
        self.criterion = criterion
        self.cv = cv
        self.scale = scale
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @heard_by_callbacks
    def fit(self, X: Any, y: Any = None) -> GaussianMixtureCV:
        """Score each number of components, fit the best one on all rows."""
        X = self._check(X, reset=True)
        scaling = Scaling.fit(X, self.scale)
        U, seed = scaling.transform(X), self._seed()
        self.path_ = self._search(U, seed, float(scaling.log_jacobian.sum()))
        mixture = _fit_mixture(U, self.path_.best, self.max_iter, seed)
        self._warn_unconverged(mixture)
        block = MixtureBlock(mixture.weights_, mixture.means_, mixture.covariances_)
        self.density_ = ProductDensity((tuple(range(X.shape[1])),), (block,), scaling, self._names())
        return self

    def _check_params(self) -> None:
        one_of("criterion", self.criterion, ("cv", "bic"))
        for name in ("max_components", "max_iter"):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or value < 1:
                raise ValueError(f"{name}={value!r} must be a whole number of at least 1.")
        if self.cv < 2:
            raise ValueError(f"cv={self.cv} must be at least 2 folds.")

    def _seed(self) -> int:
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _search(self, U: Matrix, seed: int, log_jacobian: float) -> ComponentSearch:
        """Fits in batches that keep the workers busy; sizes beyond the end of the search do not count."""
        folds = _every_row(len(U)) if self.criterion == "bic" else _shuffled_folds(len(U), self.cv)
        if self.criterion == "cv":
            warn_few_rows(len(U), self.cv)
        fewest_rows = min(len(fit) for fit, _ in folds)
        sizes = range(1, min(self.max_components, fewest_rows) + 1)
        per_batch = -(-2 * effective_n_jobs(self.n_jobs) // len(folds))
        fold_scores: list[list[float]] = []
        converged: list[bool] = []
        with progress_bar(len(sizes), f"Fitting up to {len(sizes)} mixtures", show=self.verbose > 0) as advance:
            for start in range(0, len(sizes), per_batch):
                for scores, settled in self._score_sizes(U, folds, sizes[start : start + per_batch], seed):
                    if not self._has_ended(fold_scores):
                        fold_scores.append(scores)
                        converged.append(settled)
                        advance(1)
                if self._has_ended(fold_scores):
                    break
        table = np.array(fold_scores) + log_jacobian
        if not np.isfinite(table).all(axis=1).any():
            raise InputError(
                f"No mixture can be fitted to {len(U)} rows of {U.shape[1]} columns, a covariance is singular: "
                "give more rows, or leave out columns that others determine."
            )
        tried = np.arange(1, len(table) + 1)
        return ComponentSearch(tried, table.mean(axis=1), _standard_errors(table), np.array(converged))

    def _score_sizes(self, U: Matrix, folds: Folds, sizes: range, seed: int) -> Iterator[tuple[list[float], bool]]:
        found = Parallel(n_jobs=self.n_jobs)(
            delayed(_score_size)(self.criterion, U[fit], U[held_out], size, self.max_iter, seed)
            for size in sizes
            for fit, held_out in folds
        )
        for i in range(0, len(found), len(folds)):
            scores, settled = zip(*found[i : i + len(folds)], strict=True)
            yield list(scores), all(settled)

    def _has_ended(self, fold_scores: list[list[float]]) -> bool:
        return self.criterion == "cv" and search_has_ended(np.array(fold_scores))

    def _warn_unconverged(self, mixture: GaussianMixture) -> None:
        if not mixture.converged_:
            warn(
                f"EM did not converge within max_iter={self.max_iter} steps for the {mixture.n_components} components "
                "chosen: raise max_iter."
            )

    @property
    def n_components_(self) -> int:
        return len(self._block().weights)

    @property
    def weights_(self) -> Vector:
        return self._block().weights

    @property
    def means_(self) -> Matrix:
        means = self._block().means
        return self.density_.scaling.inverse(means)

    @property
    def covariances_(self) -> NDArray[np.float64]:
        covariances, scale = self._block().covariances, self.density_.scaling.scale
        return covariances * np.outer(scale, scale)

    def _block(self) -> MixtureBlock:
        check_is_fitted(self)
        block = self.density_.blocks[0]
        assert isinstance(block, MixtureBlock)
        return block

    def _extra_to_archive(self) -> tuple[dict[str, Any], Arrays]:
        names = ("n_components", "scores", "errors", "converged")
        return {}, over("path.", {name: getattr(self.path_, name) for name in names})

    def _extra_from_archive(self, header: Mapping[str, Any], arrays: Arrays) -> None:
        self.path_ = ComponentSearch(**under("path.", arrays))
        if self.path_.best != self.n_components_:
            raise ValueError("the search chooses another number of components than the density has")


def search_has_ended(fold_scores: NDArray[np.float64]) -> bool:
    """Whether the last five sizes all score more than two standard errors below the best one.

    `fold_scores` has a row for each size and a column for each fold; standard errors are those of the difference from
    the best size over the folds. A size that could not be fitted counts as worse.
    """
    if len(fold_scores) <= WORSE_IN_A_ROW:
        return False
    best = int(np.argmax(fold_scores.mean(axis=1)))
    if not np.isfinite(fold_scores[best]).all():
        return False
    with np.errstate(invalid="ignore"):  # -inf minus -inf, for a size that could not be fitted
        behind = fold_scores[best] - fold_scores[-WORSE_IN_A_ROW:]
        clearly = behind.mean(axis=1) > STANDARD_ERRORS * _standard_errors(behind)
    return bool((clearly | np.isinf(behind).any(axis=1)).all())


def _standard_errors(table: NDArray[np.float64]) -> Vector:
    """Standard error of the mean of each row; NaN where it has one value or an infinite one."""
    n = table.shape[1]
    if n == 1:
        return np.full(len(table), np.nan)
    with np.errstate(invalid="ignore"):
        errors: Vector = table.std(axis=1, ddof=1) / np.sqrt(n)
    return errors


def _shuffled_folds(n_rows: int, cv: int) -> Folds:
    order = shuffled(n_rows)
    return [(order[fit], order[held_out]) for fit, held_out in contiguous_folds(n_rows, cv)]


def _every_row(n_rows: int) -> Folds:
    return [(np.arange(n_rows), np.arange(n_rows))]


def _score_size(
    criterion: str, fit: Matrix, held_out: Matrix, size: int, max_iter: int, seed: int
) -> tuple[float, bool]:
    """Score of one size on one fold, and whether EM converged."""
    try:
        mixture = _fit_mixture(fit, size, max_iter, seed)
    except ValueError:  # a component collapsed: its covariance is singular
        return -np.inf, True
    score = mixture.score(held_out) if criterion == "cv" else -mixture.bic(fit) / (2 * len(fit))
    return float(score), bool(mixture.converged_)


def _fit_mixture(U: Matrix, size: int, max_iter: int, seed: int) -> GaussianMixture:
    # One thread: EM's many small products lose by sharing (20 components on 4,000 x 13 rows: 4.5 s on two, 1.3 s on one
    # of a busy machine's cores), and sizes and folds run beside each other anyway.
    # One warning about the mixture chosen, with its remedy, instead of one for each fit of the search.
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return GaussianMixture(size, max_iter=max_iter, random_state=seed).fit(U)
