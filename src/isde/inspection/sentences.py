"""What a reader of the blocks should know, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from isde.data.words import in_braces, some
from isde.scores import SubsetScores
from isde.structure_estimator import StructureEstimator
from isde.tree_estimator import TreeISDE

FEW_ROWS_CORRELATION = 0.3
"""Where pairs of a lower correlation than this are mostly missed, rows are few."""


def least_correlation(scores: SubsetScores) -> float:
    """The correlation below which a pair of columns is missed more often than found; 0 where nothing is charged.

    A held-out gain is the dependence, -log(1 - rho^2) / 2, minus what fitting costs, and has to pass the charge.
    Fitting costs about as much as is charged: `experiments/structure.py least` counts what is found there.
    """
    return float(np.sqrt(-np.expm1(-2 * 2 * scores.dearest_pair)))


def notes(model: StructureEstimator) -> list[str]:
    """What a reader of the blocks should know, each in a sentence with what to do."""
    found, least = [], least_correlation(model.subset_scores_)
    if least > FEW_ROWS_CORRELATION:
        found.append(
            f"Few rows: a correlation below about {least:.2f} is missed more often than found; give more rows to see "
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
    return [*found, *_rearranged(model)]


def _rearranged(model: StructureEstimator) -> Iterator[str]:
    """Of a tree: where its scores are by stacks, and why."""
    for found in (model.rearrangements_ or ()) if isinstance(model, TreeISDE) else ():
        if found.is_taken:
            names = in_braces(model.subset_scores_.names[column] for column in found.columns)
            yield (
                f"The tree of {names} was rearranged by stacks, whose scores these are: its density is "
                f"{found.gain:.3g} +- {found.error:.2g} nats a row above that of the tree before, on "
                f"{found.n_rows:,} rows that had no say in it."
            )
