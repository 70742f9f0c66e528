"""Density estimators side by side on the same rows: the paper's real-data experiment, for any estimators.

A draw takes training rows, and validation samples from the rows left. Every method is fitted on the training rows and
scored on every validation row once; all numbers of the comparison follow from these log-densities.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from isde.baselines.block_covariance import BlockDiagonalGaussian
from isde.baselines.covariance import EmpiricalGaussian
from isde.baselines.forest import ForestDensity
from isde.baselines.kernel import CVKDE
from isde.baselines.mixture import GaussianMixtureCV
from isde.baselines.vine import VineDensity, require_pyvinecopulib
from isde.data.checks import check_columns, check_finite
from isde.data.table import Table, default_names, frame_names
from isde.density import Scaling, as_matrix
from isde.density_estimator import LEAST_ROWS, DensityEstimator
from isde.errors import InputError, ISDEError
from isde.estimator import ISDE
from isde.marginals import DEFAULT_MARGINAL
from isde.progress import say

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
Rows = NDArray[np.intp]

TRAIN_ROWS, VALIDATION_ROWS = 5000, 2000
"""Of the paper's real-data experiment, where the table is large enough."""

PAPER_SPLIT = 0.6
"""ISDE there fits the marginals on 3,000 of 5,000 training rows, and scores subsets on the other 2,000."""

LOWEST_LOG = -745.1332191019412
"""log(2**-1075), half the smallest number of float64: a density with this logarithm, or a lower one, is 0.0 there."""

SCALE_NOTE = "nats per row, columns rescaled to [0, 1] by the range of the training rows"


# --- methods ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MethodOptions:
    """What the methods by name share."""

    max_block_size: int = 3
    n_jobs: int | None = None
    random_state: int | None = None
    verbose: int = 0


def _isde(options: MethodOptions, marginal: str, split: float | None = PAPER_SPLIT) -> ISDE:
    return ISDE(
        options.max_block_size,
        marginal=marginal,
        split=split,
        n_jobs=options.n_jobs,
        random_state=options.random_state,
        verbose=options.verbose,
    )


def _forest(options: MethodOptions) -> ForestDensity:
    return ForestDensity(
        split=PAPER_SPLIT, n_jobs=options.n_jobs, random_state=options.random_state, verbose=options.verbose
    )


def _mixture(options: MethodOptions) -> GaussianMixtureCV:
    return GaussianMixtureCV(n_jobs=options.n_jobs, random_state=options.random_state, verbose=options.verbose)


def _vine(options: MethodOptions) -> VineDensity:
    require_pyvinecopulib()  # now, not when the other methods have run
    return VineDensity(n_jobs=options.n_jobs)


METHODS: dict[str, Callable[[MethodOptions], Any]] = {
    "isde": lambda options: _isde(options, DEFAULT_MARGINAL, split=None),
    "isde-kde": lambda options: _isde(options, "kde"),
    "isde-stack": lambda options: _isde(options, "stack"),
    "isde-gaussian": lambda options: _isde(options, "gaussian"),
    "fde": _forest,
    "cvkde": lambda options: CVKDE(n_jobs=options.n_jobs),
    "gm": _mixture,
    "bdcs": lambda options: BlockDiagonalGaussian(),
    "gaussian": lambda options: EmpiricalGaussian(),
    "vine": _vine,
}
"""Builds the estimator that a name stands for."""


def build_methods(names: Sequence[str], options: MethodOptions | None = None) -> dict[str, Any]:
    """The estimators with these names, in their order; all but ISDE's default with the paper's split."""
    unknown = [name for name in names if name not in METHODS]
    if unknown:
        raise InputError(f"There is no method {unknown[0]!r}: the methods are {', '.join(METHODS)}.")
    twice = [name for i, name in enumerate(names) if name in names[:i]]
    if twice:
        raise InputError(f"The method {twice[0]!r} is named twice.")
    return {name: METHODS[name](options or MethodOptions()) for name in names}


# --- rows ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Draw:
    """Which rows fit, and which validate."""

    train: Rows
    samples: Rows  # the rows of each validation sample, (repeats, rows); none of them in train

    @cached_property
    def rows(self) -> Rows:
        """Every validation row once, in order: samples of one table overlap."""
        return np.unique(self.samples)

    @cached_property
    def positions(self) -> Rows:
        """Where in `rows` the rows of each sample are."""
        return np.searchsorted(self.rows, self.samples)

    @cached_property
    def shares(self) -> Vector:
        """What share each of `rows` has in the mean over all samples; they add up to 1."""
        return np.bincount(self.positions.ravel()) / self.samples.size


def draw_rows(
    n_rows: int,
    *,
    train_rows: int | None = None,
    validation_rows: int | None = None,
    repeats: int = 20,
    fits: int = 1,
    random_state: int = 0,
) -> list[Draw]:
    """`fits` draws of training rows, each with `repeats` validation samples of the rows left, as in the paper.

    A sample has no row twice; samples are drawn independently of each other, so that two may share rows. None means
    5,000 rows to train, or half of the table where that is less; and 2,000 to validate, or half of the rows left.
    """
    n_train, n_valid = _sizes(n_rows, train_rows, validation_rows)
    for name, value in (("repeats", repeats), ("fits", fits)):
        if value < 1:
            raise InputError(f"{name}={value} must be at least 1.")
    draws = []
    for seed in np.random.SeedSequence(random_state).spawn(fits):
        rng = np.random.default_rng(seed)
        order = rng.permutation(n_rows)
        left = order[n_train:]
        samples = np.array([rng.choice(left, n_valid, replace=False) for _ in range(repeats)])
        draws.append(Draw(order[:n_train], samples))
    return draws


def _sizes(n_rows: int, train_rows: int | None, validation_rows: int | None) -> tuple[int, int]:
    n_train = min(TRAIN_ROWS, n_rows // 2) if train_rows is None else train_rows
    n_valid = min(VALIDATION_ROWS, (n_rows - n_train) // 2) if validation_rows is None else validation_rows
    if train_rows is None and n_train < LEAST_ROWS:
        raise InputError(f"{n_rows:,} rows are too few to compare: give at least {2 * LEAST_ROWS}.")
    if validation_rows is None and n_valid < 1:
        raise InputError(
            f"train_rows={train_rows} leaves too few of {n_rows:,} rows to validate on: give at most {n_rows - 2:,}."
        )
    for what, value, least in (("training", n_train, LEAST_ROWS), ("validation", n_valid, 1)):
        if value < least:
            raise InputError(f"{value:,} {what} rows of {n_rows:,} are too few: at least {least} are needed.")
    if n_train + n_valid > n_rows:
        raise InputError(
            f"{n_train:,} training rows and {n_valid:,} validation rows are more than the {n_rows:,} rows there are."
        )
    return n_train, n_valid


# --- results ---------------------------------------------------------------------------------------------------


def underflows(log_density: ArrayLike) -> NDArray[np.bool_]:
    """Whether the density of a row is 0.0 in float64: the rows of extremely low density, which the paper drops.

    >>> underflows([-745.2, -745.1, -np.inf, 3.0]).tolist()
    [True, False, True, False]
    """
    return np.asarray(log_density) <= LOWEST_LOG


@dataclass(frozen=True, eq=False)
class MethodFit:
    """One method fitted to one draw."""

    log_densities: Vector  # of `Draw.rows`, every validation row once
    fit_seconds: float
    score_seconds: float  # for all of `Draw.rows`
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Record:
    """One method on one validation sample."""

    method: str
    fit: int  # which draw of training rows
    repeat: int  # which validation sample of it
    mean_log_likelihood: float  # nats per row, every row counted; -inf where a row has density zero
    paper_mean_log_likelihood: float  # the rows that underflow dropped before averaging; NaN where none is left
    n_rows: int  # of the sample
    n_underflow: int  # rows of extremely low density: those that the paper's way drops
    n_zero: int  # of these, rows whose log-density is -inf
    fit_seconds: float
    score_seconds: float  # for all validation rows of this draw


@dataclass(frozen=True)
class Difference:
    """What one method has over another on the same rows."""

    mean: float  # nats per row
    standard_error: float


@dataclass(frozen=True)
class MethodSummary:
    """One method over all validation samples."""

    method: str
    mean_log_likelihood: float  # over samples, every row counted
    sd: float  # of a sample's mean log-likelihood, over samples
    difference: float  # to the best method, on the same rows; 0 for the best itself
    difference_standard_error: float  # see `Comparison.difference`
    paper_mean_log_likelihood: float
    n_rows: int  # distinct validation rows, added over fits
    n_underflow: int  # of these
    n_zero: int  # of these
    fit_seconds: float  # mean over fits
    score_seconds: float  # mean over fits, for all validation rows of a fit


@dataclass(frozen=True, eq=False)
class Comparison:
    """Log-densities of the same validation rows under several methods, and what they say."""

    draws: list[Draw]
    scalings: list[Scaling]  # of each draw: the range of its training rows
    fitted: dict[str, list[MethodFit]]  # one for each draw; methods in the order given
    failures: dict[str, str]  # methods that could not be compared, and why

    @property
    def methods(self) -> list[str]:
        """The methods compared, the best mean log-likelihood first."""
        return sorted(self.fitted, key=lambda method: -float(self.samples(method).mean()))

    def samples(self, method: str) -> Matrix:
        """Mean log-likelihood of each validation sample, every row counted, (fits, repeats)."""
        return np.array([values.mean(axis=1) for values in self._values(method)])

    def paper_samples(self, method: str) -> Matrix:
        """The same, with the rows whose density underflows dropped before averaging; NaN where none is left."""
        return np.array([[_mean_without_underflow(sample) for sample in values] for values in self._values(method)])

    def _values(self, method: str) -> list[Matrix]:
        """Log-densities of the rows of each sample, for each draw."""
        return [one.log_densities[draw.positions] for draw, one in self._pairs(method)]

    def _pairs(self, method: str) -> list[tuple[Draw, MethodFit]]:
        return list(zip(self.draws, self.fitted[method], strict=True))

    def difference(self, method: str, reference: str) -> Difference:
        """Mean over samples of what `method` has over `reference` on the same rows, with its standard error.

        After one fit, the standard error is that over validation rows, given the fits: the spread of the difference
        from row to row, divided by the root of the effective number of rows. Samples overlap, so that the spread over
        samples would promise too much: 20 samples of 2,000 from 26,721 rows count as 16,500 rows, not 40,000. After
        several fits it is the spread of the mean difference over fits, divided by the root of their number; this one
        holds for new training rows too, though the training rows of two fits overlap.
        """
        means = self.samples(method), self.samples(reference)
        with np.errstate(invalid="ignore"):  # -inf from -inf
            by_fit = (means[0] - means[1]).mean(axis=1)
            if len(self.draws) > 1:
                error = float(by_fit.std(ddof=1) / np.sqrt(len(by_fit)))
            else:
                own, other = (self.fitted[name][0].log_densities for name in (method, reference))
                error = _weighted_error(own - other, self.draws[0].shares)
        return Difference(float(by_fit.mean()), error)

    def records(self) -> list[Record]:
        """One record for each method, fit and repeat; methods in the order given."""
        return [record for method in self.fitted for record in self._records_of(method)]

    def _records_of(self, method: str) -> list[Record]:
        means, paper = self.samples(method), self.paper_samples(method)
        return [
            Record(
                method=method,
                fit=f,
                repeat=r,
                mean_log_likelihood=float(means[f, r]),
                paper_mean_log_likelihood=float(paper[f, r]),
                n_rows=len(sample),
                n_underflow=int(underflows(sample).sum()),
                n_zero=int(np.isneginf(sample).sum()),
                fit_seconds=self.fitted[method][f].fit_seconds,
                score_seconds=self.fitted[method][f].score_seconds,
            )
            for f, values in enumerate(self._values(method))
            for r, sample in enumerate(values)
        ]

    def summaries(self) -> list[MethodSummary]:
        """One summary for each method, the best first."""
        methods = self.methods
        return [self._summary(method, methods[0]) for method in methods]

    def _summary(self, method: str, best: str) -> MethodSummary:
        means, fits = self.samples(method), self.fitted[method]
        values = np.concatenate([one.log_densities for one in fits])
        with np.errstate(invalid="ignore"):
            sd = float(means.std(ddof=1)) if means.size > 1 else np.nan
        difference = Difference(0.0, 0.0) if method == best else self.difference(method, best)
        return MethodSummary(
            method=method,
            mean_log_likelihood=float(means.mean()),
            sd=sd,
            difference=difference.mean,
            difference_standard_error=difference.standard_error,
            paper_mean_log_likelihood=float(self.paper_samples(method).mean()),
            n_rows=len(values),
            n_underflow=int(underflows(values).sum()),
            n_zero=int(np.isneginf(values).sum()),
            fit_seconds=float(np.mean([one.fit_seconds for one in fits])),
            score_seconds=float(np.mean([one.score_seconds for one in fits])),
        )

    def warnings(self) -> dict[str, list[str]]:
        """What the methods warned of, each text with the methods that said it."""
        said: dict[str, list[str]] = {}
        for method, fits in self.fitted.items():
            for text in dict.fromkeys(text for one in fits for text in one.warnings):
                said.setdefault(text, []).append(method)
        return said

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON; numbers that are not finite become None."""
        repeats, validation_rows = self.draws[0].samples.shape
        return {
            "scale": SCALE_NOTE,
            "paper_way": f"rows whose density underflows to zero (log-density below {LOWEST_LOG:.2f}) are dropped",
            "fits": len(self.draws),
            "repeats": repeats,
            "train_rows": len(self.draws[0].train),
            "validation_rows": validation_rows,
            # Added to a log-likelihood here, it gives the one in the units of the data.
            "to_data_units": [float(scaling.log_jacobian.sum()) for scaling in self.scalings],
            "methods": [_as_json(summary) for summary in self.summaries()],
            "failures": [{"method": method, "message": text} for method, text in self.failures.items()],
            "warnings": [{"methods": methods, "message": text} for text, methods in self.warnings().items()],
            "records": [_as_json(record) for record in self.records()],
        }


def _mean_without_underflow(sample: Vector) -> float:
    left = sample[~underflows(sample)]
    return float(left.mean()) if left.size else np.nan


def _weighted_error(differences: Vector, shares: Vector) -> float:
    """Standard error of  sum_i shares_i * differences_i  for independent rows: their sd times root(sum shares^2)."""
    if len(differences) < 2:
        return np.nan
    return float(differences.std(ddof=1) * np.sqrt((shares**2).sum()))


def _as_json(result: Record | MethodSummary) -> dict[str, Any]:
    return {
        name: None if isinstance(value, float) and not np.isfinite(value) else value
        for name, value in asdict(result).items()
    }


# --- the comparison --------------------------------------------------------------------------------------------


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
    matrix, names = _matrix_and_names(X)
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


def _matrix_and_names(X: Any) -> tuple[Matrix, tuple[str, ...]]:
    if isinstance(X, Table):
        check_finite(X.X, X.names)
        return X.X, X.names
    matrix = as_matrix(X)
    return matrix, frame_names(X) or default_names(matrix.shape[1])


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
