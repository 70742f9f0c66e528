"""What a reader of the blocks should know, in sentences."""

from __future__ import annotations

import numpy as np

from isde.data.words import some
from isde.estimator import ISDE
from isde.scores import SubsetScores

FEW_ROWS_CORRELATION = 0.3
"""Where pairs pass only with a larger correlation than this, rows are few."""


def least_correlation(scores: SubsetScores) -> float:
    """The correlation of two columns whose dependence is worth what a pair is charged; 0 where nothing is."""
    return float(np.sqrt(-np.expm1(-2 * scores.dearest_pair)))


def notes(model: ISDE) -> list[str]:
    """What a reader of the blocks should know, each in a sentence with what to do."""
    found, least = [], least_correlation(model.subset_scores_)
    if least > FEW_ROWS_CORRELATION:
        found.append(
            f"Few rows: a pair passes only where its correlation is about {least:.2f} or more; give more rows to see "
            "weaker dependence."
        )
    if model.tied_:
        found.append(
            f"Repeated values in {', '.join(model.tied_[:5])}: blocks are found by ranks, ties in random order, which "
            "does no harm; log-densities say little there, unless noise of the size of the rounding is added."
        )
    unsettled = [model.subset_scores_.names[c] for c in model.subset_scores_.unsettled]
    if unsettled:
        found.append(
            f"The best bandwidth for {some(unsettled)} lies beyond the widest grid: repeated values or far outliers; "
            "leave the column out, transform it, or pass bandwidths=."
        )
    return found
