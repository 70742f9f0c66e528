"""Columns to the copula scale: normal scores, learned on some rows and applied to others.

Which columns are independent does not change when each is transformed by an increasing function of its own. Only the
order of a column's values enters here, so that results are the same, to the bit, for any increasing transformation of
any column: skew, heavy tails, far rows and units have no say.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from isde.arrays import Matrix


def normal_scores(X_fit: Matrix, X_score: Matrix, seed: int = 0) -> tuple[Matrix, Matrix]:
    """Standard normal quantiles of each column's ranks, for the rows to fit on and for those to score.

    Row i to fit on, the r-th smallest of m, gets Phi^-1(r / (m + 1)). A row to score falls into one of the m + 1 gaps
    between them, and gets a random place in it, Phi^-1((gap + u) / (m + 1)): exactly standard normal, whatever the
    column is, as long as the two kinds of rows are alike; and never far out, however far the row is. Tied values, which
    have no order of their own, get a random one.

    >>> fitted, scored = normal_scores(np.array([[1.0], [2.0], [9.0]]), np.array([[1e9]]))
    >>> fitted.ravel().round(2).tolist(), bool(0.67 < scored[0, 0] < 4)
    ([-0.67, 0.0, 0.67], True)
    """
    rng = np.random.default_rng(seed)
    m = len(X_fit)
    Z_fit, Z_score = np.empty(X_fit.shape), np.empty(X_score.shape)
    for c in range(X_fit.shape[1]):
        order = np.lexsort((rng.random(m), X_fit[:, c]))
        Z_fit[order, c] = ndtri(np.arange(1, m + 1) / (m + 1))
        ascending, x = X_fit[order, c], X_score[:, c]
        first, last = np.searchsorted(ascending, x, "left"), np.searchsorted(ascending, x, "right")
        gap = first + np.floor(rng.random(len(x)) * (last - first + 1))
        Z_score[:, c] = ndtri((gap + rng.random(len(x))) / (m + 1))
    return Z_fit, Z_score
