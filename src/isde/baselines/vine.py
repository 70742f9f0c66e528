"""A vine copula with kernel margins, by pyvinecopulib: the rival that models all columns together."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from isde.arrays import Matrix, Vector
from isde.errors import InputError

DEEPEST_TREE = 20
"""Trees of the vine, and pair copulas of the family "tll": the settings of pyvinecopulib's own `VineDensity`."""


class VineDensity(DensityMixin, BaseEstimator):  # type: ignore[misc]
    """Kernel densities of the columns, joined by a vine of nonparametric pair copulas.

    log f(x) = log c(F_1(x_1), ..., F_d(x_d)) + sum_j log f_j(x_j),  c and F_j by pyvinecopulib's two-step estimator.

    Its kernel margins end a little outside the training rows: a row beyond has density zero, log-density -inf.

    Parameters
    ----------
    n_jobs : int or None, default=None
        Threads, as in joblib. The result does not depend on it.

    Attributes
    ----------
    distribution_ : pyvinecopulib.core.Vinedist
        The fitted distribution.
    """

    def __init__(self, *, n_jobs: int | None = None) -> None:
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any = None) -> VineDensity:
        """Fit each column's density, then the copula of what they leave."""
        core = require_pyvinecopulib()
        matrix: Matrix = validate_data(self, X, dtype=np.float64, ensure_min_samples=4, ensure_min_features=2)
        controls = core.FitControlsVinecop(
            family_set=[import_module("pyvinecopulib.families").tll],
            trunc_lvl=DEEPEST_TREE,
            num_threads=effective_n_jobs(self.n_jobs),
        )
        self.distribution_ = core.Vinedist.from_data(np.asfortranarray(matrix), controls=controls)
        return self

    def score_samples(self, X: Any) -> Vector:
        """Log-density of each row, -inf where a column is farther out than its kernels reach."""
        check_is_fitted(self)
        matrix: Matrix = validate_data(self, X, reset=False, dtype=np.float64)
        with np.errstate(divide="ignore"):  # log(0) is what it means here
            return np.asarray(self.distribution_.logpdf(np.asfortranarray(matrix)), dtype=np.float64)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-density, nats per row."""
        return float(self.score_samples(X).mean())


def require_pyvinecopulib() -> Any:
    """The module `pyvinecopulib.core`, or one sentence how to get it."""
    try:
        core = import_module("pyvinecopulib.core")
    except ImportError:
        core = None
    if not hasattr(core, "Vinedist"):  # versions before 1.0 have copulas, but no margins
        raise InputError("The method vine needs pyvinecopulib 1.0 or later: pip install pyvinecopulib.")
    return core
