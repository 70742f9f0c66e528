"""The comparison itself: each method fitted on the training rows of a draw, and scored on its validation rows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from isde.arrays import Matrix, Vector
from isde.comparison.draws import Draw, draw_rows
from isde.comparison.results import Comparison, MethodFit
from isde.data.checks import as_table, check_columns
from isde.data.table import Table
from isde.density import Scaling
from isde.density_estimator import DensityEstimator
from isde.errors import ISDEError
from isde.progress import say


def compare(
    X: Any,
    estimators: Mapping[str, Any],
    *,
    train_rows: int | None = None,
    validation_rows: int | None = None,
    repeats: int = 20,
    fits: int = 1,
    random_state: int = 0,
    verbose: int = 0,
) -> Comparison:
    """Fit estimators on the same training rows, and score them on the same validation samples.

    Columns are rescaled to [0, 1] by the range of the training rows, training and validation rows alike, and each
    estimator gets the rescaled rows. One that raises, or whose log-densities are no numbers, is reported by name in
    `Comparison.failures`; the others go on.

    Parameters
    ----------
    X : Table, data frame or array-like of shape (n rows, d columns)
    estimators : mapping of str to estimator
        Anything with `fit` and `score_samples`; cloned for each fit. `build_methods` gives those of the paper.
    train_rows, validation_rows, repeats, fits, random_state
        See `draw_rows`.
    verbose : int, default=0
        Above 0, one line for each method fitted goes to standard error.

    Examples
    --------
    >>> from isde.comparison import build_methods, compare
    >>> from isde.synthetic import make_structured
    >>> X, _ = make_structured([3, 1], n_samples=600, random_state=0)
    >>> compare(X, build_methods(["isde", "gaussian"])).methods
    ['isde', 'gaussian']
    """
    table = as_table(X)
    matrix, names = table.X, table.names
    draws = draw_rows(
        len(matrix),
        train_rows=train_rows,
        validation_rows=validation_rows,
        repeats=repeats,
        fits=fits,
        random_state=random_state,
    )
    scalings = [_scaling(matrix[draw.train], names) for draw in draws]
    fitted: dict[str, list[MethodFit]] = {method: [] for method in estimators}
    failures: dict[str, str] = {}
    for f, (draw, scaling) in enumerate(zip(draws, scalings, strict=True)):
        U_train, U_valid = (Table(scaling.transform(matrix[rows]), names) for rows in (draw.train, draw.rows))
        for method in [method for method in estimators if method not in failures]:
            label = method if fits == 1 else f"{method}, fit {f + 1} of {fits}"
            if verbose:
                say(f"{label}: fitting {len(draw.train):,} rows")
            try:
                fitted[method].append(_fit_and_score(estimators[method], U_train, U_valid))
            except Exception as error:
                failures[method] = _sentence(error)
            if verbose:
                say(f"{label}: {_outcome(draw, fitted[method], failures.get(method))}")
    done = {method: found for method, found in fitted.items() if method not in failures}
    if not done:
        told = "; ".join(f"{method}: {text}" for method, text in failures.items())
        raise ISDEError(f"No method could be compared ({told or 'none was given'}).")
    return Comparison(draws, scalings, done, failures)


def _scaling(X_train: Matrix, names: Sequence[str]) -> Scaling:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # each method says it again, and `Comparison.warnings` says it once
        check_columns(X_train, names)
    return Scaling.fit(X_train, "minmax")


def _fit_and_score(estimator: Any, train: Table, valid: Table) -> MethodFit:
    model = clone(estimator, safe=False)
    takes_names = isinstance(model, DensityEstimator)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", UserWarning)  # what a user can act on; a library's own worries are not
        start = time.perf_counter()
        model.fit(train if takes_names else train.X)
        fitted = time.perf_counter()
        log_densities = np.asarray(model.score_samples(valid if takes_names else valid.X), dtype=np.float64)
        scored = time.perf_counter()
    _check_log_densities(log_densities, len(valid.X))
    texts = dict.fromkeys(str(warning.message) for warning in caught)
    return MethodFit(log_densities, fitted - start, scored - fitted, tuple(texts))


def _check_log_densities(values: Vector, n_rows: int) -> None:
    if values.shape != (n_rows,):
        raise ISDEError(f"score_samples gave an array of shape {values.shape} for {n_rows:,} rows.")
    bad = np.isnan(values) | np.isposinf(values)
    if bad.any():
        raise ISDEError(f"score_samples gave {values[bad][0]} in {bad.sum():,} of {n_rows:,} rows.")


def _sentence(error: Exception) -> str:
    text = next(iter(str(error).strip().splitlines()), "")
    return text if isinstance(error, ISDEError) else f"{type(error).__name__}: {text}".removesuffix(": ")


def _outcome(draw: Draw, fits: list[MethodFit], failure: str | None) -> str:
    if failure is not None:
        return f"failed ({failure})"
    last = fits[-1]
    return (
        f"{last.log_densities @ draw.shares:.3f} nats per row; fitted in {last.fit_seconds:.1f} s, "
        f"{len(last.log_densities):,} rows scored in {last.score_seconds:.1f} s"
    )
