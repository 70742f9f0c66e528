"""The slope heuristic: the price of a parameter, read from how the likelihood grows with the number of parameters.

As in capushe (Baudry, Maugis and Michel 2012): twice the smallest price at which models stop to be absurdly large, or
twice the slope of the log-likelihood over the dimension among large models.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from isde.arrays import Vector

LARGEST_SLOPE = 10.0
"""Log-likelihood for each parameter. Parameters that fit noise gain about a half each, the best few of many some more:
a steeper slope is signal, and no penalty can be read from it. The paper's code looks no further either."""

PLATEAU_SHARE = 0.15
"""Of the regressions: how many in a row must choose one partition, as in capushe."""

BISQUARE_TUNING, BISQUARE_STEPS, BISQUARE_TOLERANCE = 4.685, 20, 1e-4
"""Tukey's weights with 95 % efficiency, and when to stop reweighting, as in R's `MASS::rlm`."""


def slope_by_jump(dimensions: NDArray[np.int64], log_likelihoods: Vector) -> float:
    """The kappa at which the dimension that minimises  -log-likelihood + kappa D  drops most; 0 where it never does.

    Models are given with growing dimension. Of equal drops the last counts, as in capushe.
    """
    kappas, models = [0.0], [int(np.argmax(log_likelihoods))]
    while (m := models[-1]) > 0:
        slopes = (log_likelihoods[m] - log_likelihoods[:m]) / (dimensions[m] - dimensions[:m])
        if slopes.min() > LARGEST_SLOPE:
            break
        models.append(int(np.argmin(slopes)))
        kappas.append(float(slopes.min()))
    drops = [int(dimensions[before] - dimensions[after]) for before, after in pairwise(models)]
    if not drops:
        return 0.0
    last_largest = len(drops) - 1 - int(np.argmax(drops[::-1]))
    return kappas[last_largest + 1]


def slope_by_regression(dimensions: NDArray[np.int64], log_likelihoods: Vector) -> float:
    """The slope of the log-likelihood over the dimension among large models, as capushe's DDSE finds it.

    Regressions on all models, all but the smallest, and so on, each choose a model; of the models chosen by at least
    15 % of the regressions in a row, the one with the fewest models in its regressions gives the slope, in the
    middle of its run. Slopes are kept between 0 and 10.
    """
    n = len(dimensions)
    slopes = np.array([_robust_slope(dimensions[i:], log_likelihoods[i:]) for i in range(n - 1)])
    slopes = np.clip(slopes, 0, LARGEST_SLOPE)
    chosen = np.argmin(-log_likelihoods + 2 * slopes[:, None] * dimensions, axis=1)
    starts = np.flatnonzero(np.diff(chosen, prepend=-1))
    lengths = np.diff(starts, append=n - 1)
    long_enough = np.flatnonzero(lengths >= min(PLATEAU_SHARE * (n - 1), lengths.max()))
    run = long_enough[-1]
    return float(slopes[starts[run] + lengths[run] // 2])


def _robust_slope(dimensions: NDArray[np.int64], log_likelihoods: Vector) -> float:
    """Slope of a line by Tukey's bisquare, reweighted least squares from an ordinary fit."""
    x, y = dimensions.astype(np.float64), log_likelihoods
    weights, residuals, slope = np.ones(len(x)), y, 0.0
    for _ in range(BISQUARE_STEPS + 1):
        total = weights.sum()
        x_centred, y_centred = x - weights @ x / total, y - weights @ y / total
        slope = (weights * x_centred) @ y_centred / ((weights * x_centred) @ x_centred)
        before, residuals = residuals, y_centred - slope * x_centred
        spread = np.median(np.abs(residuals)) / 0.6745
        settled = np.linalg.norm(residuals - before) <= BISQUARE_TOLERANCE * np.linalg.norm(before)
        if settled or spread == 0:
            break
        weights = (1 - np.minimum(1, np.abs(residuals) / (BISQUARE_TUNING * spread)) ** 2) ** 2
    return float(slope)
