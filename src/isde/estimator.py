"""ISDE as a scikit-learn estimator: its `fit` reads like the algorithm box of the paper."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import model_selection
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.model_selection import ShuffleSplit
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from isde.archive import Arrays, write_archive
from isde.density import ProductDensity, fit_product, scaling_for
from isde.errors import InputError, ISDEWarning
from isde.marginals import MARGINAL_NAMES, resolve_marginal
from isde.partitions import RandomState
from isde.scores import SubsetScores, average_scores, score_subsets, warn_unsettled
from isde.selection import certify
from isde.solvers import check_solver, select_partition
from isde.tables import Table, check_columns, check_finite, check_numeric_frame, default_names

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]


class ISDE(DensityMixin, BaseEstimator):  # type: ignore[misc]
    """Independence Structure Density Estimation.

    Finds the partition of the columns into independent blocks of at most `max_block_size` that maximises the held-out
    log-likelihood, and the density that is the product of the block densities.

    Parameters
    ----------
    max_block_size : int, default=3
        Largest block allowed, the paper's k. Larger than the number of columns means all columns.
    marginal : str or estimator, default="kde"
        Density family of a block: "kde" (Gaussian kernels, bandwidth by cross-validation), "gaussian",
        "gaussian-zero-mean" (as in the paper), or any estimator with `fit` and `score_samples`, cloned per subset.
    split : float, splitter or None, default=None
        Which rows fit the marginals and which score them: a share of rows to fit on, or any scikit-learn splitter, over
        whose splits scores are averaged. None is the paper's `ShuffleSplit(1, train_size=0.5)`.
    bandwidths : sequence of float or None, default=None
        Grid for "kde" on the rescaled data. None is the paper's 30 values from 0.01 to 1, which grow by the same ratio
        where the best one is an end; a grid given is used as it is.
    cv : int, default=5
        Folds that choose a bandwidth: contiguous, unshuffled, as in the paper.
    scale : "minmax", "standard" or None, default="minmax"
        Rescaling of each column before anything else. Results are in the units of the data given, whatever it is.
    solver : "auto", "exhaustive", "dynamic" or "milp", default="auto"
        How the best partition is found; all are exact.
    n_jobs : int or None, default=None
        Workers, as in joblib. The result does not depend on it.
    random_state : int, RandomState or None, default=None
        Draws the split.
    verbose : int, default=0
        Above 0, progress goes to standard error.

    Attributes
    ----------
    partition_ : tuple of tuples of int
        The blocks.
    block_names_ : tuple of tuples of str
        The blocks by name.
    subset_scores_ : SubsetScores
        The score of every subset, in the units of the data.
    selection_ : Selection
        Partition, score, and the bound that proves it optimal.
    density_ : ProductDensity
        The fitted density.
    bandwidths_ : ndarray
        Bandwidth of each block on the rescaled data; NaN where the family has none.

    Examples
    --------
    >>> from isde import ISDE
    >>> from isde.synthetic import make_structured
    >>> X, truth = make_structured([3, 1], n_samples=600, random_state=0)
    >>> model = ISDE(max_block_size=4, random_state=0).fit(X)
    >>> model.partition_ == truth
    True
    """

    def __init__(
        self,
        max_block_size: int = 3,
        *,
        marginal: Any = "kde",
        split: Any = None,
        bandwidths: Sequence[float] | None = None,
        cv: int = 5,
        scale: str | None = "minmax",
        solver: str = "auto",
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: int = 0,
    ) -> None:
        self.max_block_size = max_block_size
        self.marginal = marginal
        self.split = split
        self.bandwidths = bandwidths
        self.cv = cv
        self.scale = scale
        self.solver = solver
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, *, subset_scores: SubsetScores | None = None) -> ISDE:
        """Score every subset, select the best partition, fit its blocks on all rows.

        With `subset_scores`, a table in the units of `X` (another model's `subset_scores_`, or a file loaded), nothing
        is scored again: the partition is selected from the table.
        """
        X = self._check(X, reset=True)
        marginal = resolve_marginal(self.marginal, bandwidths=self.bandwidths, cv=self.cv)
        scaling = scaling_for(X, self.scale, marginal)
        if subset_scores is None:
            scaled = self._score_subsets(scaling.transform(X))
            self.subset_scores_ = scaled.shifted(scaling.log_jacobian)
        else:
            self.subset_scores_ = self._restricted(subset_scores)
        self.selection_ = select_partition(self.subset_scores_, solver=self.solver)
        self.partition_ = self.selection_.partition
        self.density_ = fit_product(X, self.partition_, marginal, scaling, self._names(), n_jobs=self.n_jobs)
        self._warn_largest_blocks()
        return self

    @property
    def block_names_(self) -> tuple[tuple[str, ...], ...]:
        check_is_fitted(self)
        return tuple(tuple(self._names()[c] for c in block) for block in self.partition_)

    @property
    def bandwidths_(self) -> Vector:
        check_is_fitted(self)
        return self.density_.bandwidths

    def score_samples(self, X: Any) -> Vector:
        """Log-density of each row, in the units of the data; finite however far the row is."""
        total: Vector = self.score_blocks(X).sum(axis=1)
        return total

    def score_blocks(self, X: Any) -> Matrix:
        """Log-density of each row in each block, shape (n rows, n blocks); adds up to `score_samples`."""
        check_is_fitted(self)
        return self.density_.score_blocks(self._check(X, reset=False), self.n_jobs)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-density, nats per row."""
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1, random_state: RandomState = None) -> Matrix:
        """Rows drawn from the density."""
        check_is_fitted(self)
        return self.density_.sample(n_samples, random_state)

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file, arrays and JSON; `isde.load` reads it."""
        check_is_fitted(self)
        write_archive(path, "model", *self.to_archive())

    # --- stages ------------------------------------------------------------------------------------------------

    def _check(self, X: Any, *, reset: bool) -> Matrix:
        """The rows as float64, by scikit-learn's rules; a `Table` brings its names without a data frame library."""
        check_numeric_frame(X)
        least = 4 if reset else 1  # two rows to fit on, for two folds, and two to score
        rules = {"dtype": np.float64, "ensure_all_finite": False, "ensure_min_samples": least}
        matrix: Matrix
        if not isinstance(X, Table):
            matrix = validate_data(self, X, reset=reset, **rules)
        elif reset:
            matrix = validate_data(self, X.X, reset=True, **rules)
            self.feature_names_in_ = np.array(X.names, dtype=object)
        elif X.names == self._names():
            matrix = check_array(X.X, **rules)
        else:
            raise InputError(f"The data have the columns {list(X.names)}, the model has {list(self._names())}.")
        check_finite(matrix, self._names())
        if reset:
            check_solver(self.solver)
            if not isinstance(self.max_block_size, int | np.integer) or self.max_block_size < 1:
                raise ValueError(f"max_block_size={self.max_block_size!r} must be a whole number of at least 1.")
            check_columns(matrix, self._names())
        return matrix

    def _names(self) -> tuple[str, ...]:
        return tuple(getattr(self, "feature_names_in_", default_names(self.n_features_in_)))

    def _score_subsets(self, U: Matrix) -> SubsetScores:
        tables = [
            score_subsets(
                U[fit],
                U[score],
                max_block_size=self.max_block_size,
                marginal=self.marginal,
                bandwidths=self.bandwidths,
                cv=self.cv,
                n_jobs=self.n_jobs,
                names=self._names(),
                verbose=self.verbose,
            )
            for fit, score in self._splits(U)
        ]
        scores = average_scores(tables)
        warn_unsettled(scores)
        return scores

    def _splits(self, U: Matrix) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        if self.split is None or isinstance(self.split, float):
            share = 0.5 if self.split is None else self.split
            if not 0 < share < 1:
                raise ValueError(f"split={share} must be a share of the rows between 0 and 1.")
            splitter: Any = ShuffleSplit(1, train_size=share, random_state=self.random_state)
        elif hasattr(self.split, "split") and not isinstance(self.split, str):
            splitter = self.split
        else:
            raise TypeError(f"split={self.split!r} is neither a share of rows nor a scikit-learn splitter.")
        yield from splitter.split(U)

    def _restricted(self, scores: SubsetScores) -> SubsetScores:
        if scores.n_columns != self.n_features_in_:
            raise ValueError(f"The table has {scores.n_columns} columns, X has {self.n_features_in_}.")
        return scores.restrict(min(self.max_block_size, scores.max_block_size, self.n_features_in_))

    def _warn_largest_blocks(self) -> None:
        k = self.subset_scores_.max_block_size
        largest = [names for names in self.block_names_ if len(names) == k]
        if 1 < k < self.n_features_in_ and largest:
            warnings.warn(
                f"{{{', '.join(largest[0])}}} is as large as max_block_size={k} allows, and may be part of a larger "
                f"block: try max_block_size={k + 1}.",
                ISDEWarning,
                stacklevel=3,
            )

    # --- on disk -----------------------------------------------------------------------------------------------

    def to_archive(self) -> tuple[dict[str, Any], Arrays]:
        """Everything learned, and the parameters, as JSON and arrays."""
        density, density_arrays = self.density_.to_archive()
        scores, score_arrays = self.subset_scores_.to_archive()
        header = {
            "params": _params_to_json(self.get_params(deep=False)),
            "has_names": hasattr(self, "feature_names_in_"),
            "density": density,
            "scores": scores,
            "solver": self.selection_.solver,
            "gap": self.selection_.gap,
        }
        arrays = {f"density.{name}": array for name, array in density_arrays.items()}
        return header, arrays | {f"scores.{name}": array for name, array in score_arrays.items()}

    @classmethod
    def from_archive(cls, header: Mapping[str, Any], arrays: Arrays) -> ISDE:
        model = cls(**_params_from_json(header["params"]))
        model.density_ = ProductDensity.from_archive(header["density"], _under("density.", arrays))
        model.subset_scores_ = SubsetScores.from_archive(header["scores"], _under("scores.", arrays))
        model.partition_ = model.density_.partition
        model.selection_ = certify(model.subset_scores_, model.partition_, float(header["gap"]), str(header["solver"]))
        model.n_features_in_ = len(model.density_.names)
        if header["has_names"]:
            model.feature_names_in_ = np.array(model.density_.names, dtype=object)
        return model


def _under(prefix: str, arrays: Arrays) -> Arrays:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _params_to_json(params: Mapping[str, Any]) -> dict[str, Any]:
    """Constructor parameters as JSON: numbers and names as they are, a splitter by its class and parameters."""
    result = dict(params)
    if not isinstance(result["marginal"], str):
        raise InputError(
            f"A model whose blocks are {type(result['marginal']).__name__} cannot be saved without pickle: save "
            f"model.subset_scores_, and fit again from it; {', '.join(MARGINAL_NAMES)} can be saved."
        )
    if result["bandwidths"] is not None:
        result["bandwidths"] = np.ravel(result["bandwidths"]).astype(float).tolist()
    if not isinstance(result["random_state"], int | np.integer):
        result["random_state"] = None
    if result["split"] is not None and not isinstance(result["split"], float):
        result["split"] = _splitter_to_json(result["split"])
    return {name: int(v) if isinstance(v, np.integer) else v for name, v in result.items()}


def _params_from_json(params: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(params)
    if isinstance(result.get("split"), dict):
        result["split"] = _splitter_from_json(result["split"])
    return result


def _splitter_to_json(splitter: Any) -> dict[str, Any] | None:
    """Class and parameters of a scikit-learn splitter; None where they do not build the same one again.

    The fitted model does not need its splitter: one of the user's own, or with an array inside, is left out.
    """
    names = inspect.signature(type(splitter)).parameters
    known = {**getattr(splitter, "cvargs", {}), **vars(splitter)}
    params = {name: known[name] for name in names if isinstance(known.get(name), int | float | bool | None)}
    params = {name: value for name, value in params.items() if name in known}
    saved = {"class": type(splitter).__name__, "params": params}
    try:
        same = repr(_splitter_from_json(saved)) == repr(splitter)
    except (TypeError, ValueError):
        return None
    return saved if same else None


def _splitter_from_json(saved: Mapping[str, Any]) -> Any:
    kind = getattr(model_selection, str(saved["class"]), None)
    return kind(**saved["params"]) if inspect.isclass(kind) and hasattr(kind, "split") else None
