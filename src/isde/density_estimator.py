"""What every estimator of isde shares: the scikit-learn contract around its density, names, saving."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from sklearn import model_selection
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from isde.archive import Arrays, over, under, write_archive
from isde.arrays import Matrix, Vector
from isde.data.checks import check_columns, check_finite, check_input
from isde.data.table import Table, default_names
from isde.density import DensityAlongTree, ProductDensity, Scaling
from isde.errors import InputError, ResourceError, warn
from isde.marginals import MARGINAL_NAMES
from isde.partitions import RandomState
from isde.run.folder import data_facts, run_folder
from isde.scores import SubsetScores, warn_unsettled
from isde.scoring import Scoring
from isde.screening import EXHAUSTIVE
from isde.splits import DEFAULT_SPLIT, TurnedFolds

MOST_JOBS = 1 << 16
"""That a file may ask for."""

MODEL_FILE, SCORES_FILE = "model.isde", "scores.isde"
"""What the model is called inside a run folder, and the score table of a model that cannot be saved."""

LEAST_ROWS = 5
"""Two rows to fit on, for two folds, by the default split; and as many as there are folds in "density"."""


class DensityEstimator(DensityMixin, BaseEstimator):  # type: ignore[misc]
    """A density estimator whose `fit` leaves a density of type `density_type` in `density_`.

    A subclass writes `__init__` and `fit`; where it learns more than the density, also `_extra_to_archive` and
    `_extra_from_archive`.
    """

    archive_kind: ClassVar[str]
    """What its saved files call it."""

    density_type: ClassVar[type[DensityAlongTree]] = ProductDensity
    density_: DensityAlongTree
    n_features_in_: int
    n_jobs: int | None = None  # a parameter of those whose log-densities take long

    @property
    def block_names_(self) -> tuple[tuple[str, ...], ...]:
        check_is_fitted(self)
        return tuple(tuple(self._names()[c] for c in block) for block in self.density_.tree.components)

    def score_samples(self, X: Any) -> Vector:
        """Log-density of each row, in the units of the data; finite however far the row is."""
        total: Vector = self.score_blocks(X).sum(axis=1)
        return total

    def score_blocks(self, X: Any) -> Matrix:
        """Log-density of each row in each block, shape (n rows, n blocks); adds up to `score_samples`."""
        check_is_fitted(self)
        return self.density_.log_densities(self._check(X, reset=False), self.n_jobs)

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
        write_archive(path, self.archive_kind, *self.to_archive())

    def _repr_html_inner(self) -> str:
        return self._repr_mimebundle_()["text/html"]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """What notebooks show: scikit-learn's diagram and, once fitted, the blocks by name."""
        shown: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in shown:
            shown["text/html"] += import_module("isde.notebook").blocks_html(self)
        return shown

    # --- input -------------------------------------------------------------------------------------------------

    def _check(self, X: Any, *, reset: bool, ties: bool = True) -> Matrix:
        """The rows as float64, by scikit-learn's rules; a `Table` brings its names without a data frame library.

        With `reset`, columns that have no density are refused, and, with `ties`, repeated values warned of.
        """
        check_input(X)
        least = LEAST_ROWS if reset else 1
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
            self._check_params()
            check_columns(matrix, self._names(), ties=ties)
        return matrix

    def _check_params(self) -> None:
        """Raise for constructor parameters that no later step would refuse in time."""

    def _names(self) -> tuple[str, ...]:
        return tuple(getattr(self, "feature_names_in_", default_names(self.n_features_in_)))

    # --- on disk -----------------------------------------------------------------------------------------------

    def to_archive(self) -> tuple[dict[str, Any], Arrays]:
        """Everything learned, and the parameters, as JSON and arrays."""
        density, density_arrays = self.density_.to_archive()
        extra, extra_arrays = self._extra_to_archive()
        header = {
            "params": _params_to_json(self.get_params(deep=False)),
            "has_names": hasattr(self, "feature_names_in_"),
            "density": density,
        }
        return header | extra, over("density.", density_arrays) | extra_arrays

    @classmethod
    def from_archive(cls, header: Mapping[str, Any], arrays: Arrays) -> Self:
        model = cls(**_params_from_json(header["params"]))
        model._check_params()
        model.density_ = cls.density_type.from_archive(header["density"], under("density.", arrays))
        model.n_features_in_ = len(model.density_.names)
        if header["has_names"] is True:
            model.feature_names_in_ = np.array(model.density_.names, dtype=object)
        model._extra_from_archive(header, arrays)
        return model

    def _extra_to_archive(self) -> tuple[dict[str, Any], Arrays]:
        """What was learned besides the density."""
        return {}, {}

    def _extra_from_archive(self, header: Mapping[str, Any], arrays: Arrays) -> None:
        """Undo `_extra_to_archive` on a model that has its density."""


class SubsetScoreEstimator(DensityEstimator):
    """A density estimator that chooses its structure from a table of subset scores.

    With a parameter `checkpoint`, a folder, and a `fit` under `kept_in_run`, scores are kept there as they come, and
    the model at the end.
    """

    checkpoint: str | Path | None = None

    def _subset_scores(self, X: Matrix, scaling: Scaling, scoring: Scoring, given: SubsetScores | None) -> SubsetScores:
        """The table in the units of the data: scored on the rescaled rows, or the one given."""
        if given is None:
            if scoring.marginal.traits.by_ranks:  # rescaling could round the order of values away
                return self._score(scoring, X, X)
            scores = self._score(scoring, X, scaling.transform(X))
            warn_unsettled(scores)
            return scores.shifted(scaling.log_jacobian)
        if given.n_columns != self.n_features_in_:
            raise ValueError(f"The table has {given.n_columns} columns, X has {self.n_features_in_}.")
        unnamed = default_names(given.n_columns)
        if given.names != self._names() and unnamed not in (given.names, self._names()):
            raise ValueError(f"The table has the columns {list(given.names)}, X has {list(self._names())}.")
        return given.restrict(min(scoring.max_block_size, self.n_features_in_))

    def _score(self, scoring: Scoring, X: Matrix, rows: Matrix) -> SubsetScores:
        """Score the rows made of X; in the run folder, where there is one."""
        if self.checkpoint is None:
            return scoring.score(rows, self._names())
        with run_folder(self.checkpoint) as run:
            facts = data_facts(X, self._names()) | self._score_facts(scoring)
            return scoring.score_in(run, facts, rows, self._names())

    def _score_facts(self, scoring: Scoring) -> dict[str, Any]:
        """The parameters that scores depend on, as JSON; splits and the largest block are told apart from these."""
        names = ["marginal", "bandwidths", "cv", "penalty", "scale", "max_split_rows"]
        if scoring.marginal.traits.by_ranks:
            names.remove("scale")
        facts = {name: _described(getattr(self, name)) for name in names}
        return facts if scoring.search == EXHAUSTIVE else facts | {"search": scoring.search}

    def _save_in(self, folder: Path) -> None:
        """The model beside its scores; where its blocks cannot be saved without pickle, the score table alone."""
        try:
            try:
                self.save(folder / MODEL_FILE)
            except InputError:
                self.subset_scores_.save(folder / SCORES_FILE)
                warn(
                    f"These blocks cannot be saved without pickle: {folder / SCORES_FILE} holds every score, and "
                    "fit(X, subset_scores=...) fits the blocks again without scoring."
                )
        except OSError as error:
            raise ResourceError(
                f"{error.filename or folder / MODEL_FILE} cannot be written ({error.strerror or error}): the model is "
                f"fitted, but in memory only; the scores are kept in {folder}, and the same call goes on from there."
            ) from error


def kept_in_run(fit: Callable[..., Any]) -> Callable[..., Any]:
    """A `fit` that holds the folder `checkpoint` for itself, and leaves the model there."""

    @wraps(fit)
    def kept(self: Any, X: Any, y: Any = None, *, subset_scores: SubsetScores | None = None) -> Any:
        if self.checkpoint is None:
            return fit(self, X, y, subset_scores=subset_scores)
        if not isinstance(self.checkpoint, str | Path):
            raise TypeError(f"checkpoint={self.checkpoint!r} is no folder: give its name, or None.")
        if subset_scores is not None:
            raise ValueError(
                f"checkpoint={str(self.checkpoint)!r} keeps what is scored, and with subset_scores nothing is: leave "
                "one of them out."
            )
        with run_folder(self.checkpoint) as run:
            fit(self, X, y)
            self._save_in(run.path)
        return self

    return kept


def _described(value: Any) -> Any:
    """A parameter as JSON, the same for the same value: objects by class and parameters."""
    if isinstance(value, bool | int | str | None):
        return value
    if isinstance(value, float | np.floating):
        return float(value)
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, list | tuple | np.ndarray):
        return [_described(one) for one in value]
    if hasattr(value, "get_params"):
        kind = type(value)
        return {f"{kind.__module__}.{kind.__qualname__}": {k: _described(v) for k, v in value.get_params().items()}}
    return repr(value)


def one_of(name: str, value: Any, allowed: Sequence[str]) -> None:
    """Raise, listing what is allowed, unless `value` is one of the words `allowed` for the parameter `name`."""
    if value not in allowed:
        raise ValueError(f"{name}={value!r} is unknown: use {', '.join(map(repr, allowed))}.")


def _params_to_json(params: Mapping[str, Any]) -> dict[str, Any]:
    """Constructor parameters as JSON: numbers and names as they are, a splitter by its class and parameters."""
    result = dict(params)
    if "checkpoint" in result:
        result["checkpoint"] = None  # a model that is loaded and fitted again must not write into the folder it is from
    marginal = result.get("marginal", "")
    if not all(isinstance(one, str) for one in (marginal if isinstance(marginal, list | tuple) else [marginal])):
        raise InputError(
            f"A model whose blocks are {type(marginal).__name__} cannot be saved without pickle: save "
            f"model.subset_scores_, and fit again from it; {', '.join(MARGINAL_NAMES)} can be saved."
        )
    if not isinstance(result.get("bandwidths"), str | None):
        result["bandwidths"] = np.ravel(result["bandwidths"]).astype(float).tolist()
    if not isinstance(result.get("random_state"), int | np.integer | None):
        result["random_state"] = None
    split = result.get("split")
    if not isinstance(split, float | str | None):
        result["split"] = _splitter_to_json(split)
        if result["split"] is None:
            warn(
                f"split={split!r} cannot be saved: the model read from the file has its density and scores, but "
                f"set its split before `fit` or `stability`, which use {DEFAULT_SPLIT!r} otherwise."
            )
    return {name: v.item() if isinstance(v, np.generic) else v for name, v in result.items()}


def _params_from_json(params: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(params)
    n_jobs = result.get("n_jobs")
    if n_jobs is not None and not (type(n_jobs) is int and 0 < abs(n_jobs) <= MOST_JOBS):
        raise ValueError(f"n_jobs={n_jobs!r} is no number of workers")
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
    own = {TurnedFolds.__name__: TurnedFolds}
    kind = own.get(saved["class"]) or getattr(model_selection, str(saved["class"]), None)
    return kind(**saved["params"]) if inspect.isclass(kind) and hasattr(kind, "split") else None
