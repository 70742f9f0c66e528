"""What blocks are worth on rows left out."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from isde.arrays import Vector
from isde.data.checks import as_table
from isde.errors import ISDEWarning
from isde.inspection.gains import blocks_of, is_tree
from isde.solvers import select_partition
from isde.splits import shuffled
from isde.structure_estimator import StructureEstimator
from isde.subsets import Subset
from isde.tree_density import fit_tree

MOST_ROWS = 50_000
"""Of which four fifths fit and the others score."""


@dataclass(frozen=True)
class HeldOut:
    """The density of a model's blocks beside that of its columns alone, on rows that neither was fitted on."""

    n_fitted: int
    n_scored: int
    blocks: float  # mean log-density, nats a row
    independence: float
    gain: float  # blocks minus independence
    error: float  # standard error of the gain
    tree: float | None = None  # of a tree: its density, beside that of the best blocks by the same table
    tree_gain: float | None = None  # tree minus blocks: whether independent blocks would do
    tree_error: float | None = None  # standard error of that


def held_out(model: StructureEstimator, X: Any, *, share: float = 0.2, random_state: int = 0) -> HeldOut:
    """Fit the blocks of a model again, and its columns alone, without a `share` of the rows, and score these.

    Of a `TreeISDE` its tree, and the best blocks by the same table. The densities have not seen the rows; the structure
    has, if they were among those it was selected by. Of more than 50,000 rows so many are drawn: two densities are
    fitted, and the error of a gain is far below anything of interest.
    """
    matrix = as_table(X).X
    if len(matrix) > MOST_ROWS:
        matrix = matrix[shuffled(len(matrix))[:MOST_ROWS]]
    fit, score = train_test_split(matrix, test_size=share, random_state=random_state)
    alone = tuple((c,) for c in range(matrix.shape[1]))

    def log_densities(cliques: tuple[Subset, ...]) -> Vector:
        density = fit_tree(
            fit,
            cliques,
            model.marginal,
            model.bandwidths,
            cv=model.cv,
            scale=model.scale,
            n_jobs=model.n_jobs,
            max_fit_rows=model.max_fit_rows,
            max_centres=model.max_centres,
        )
        return density.score_samples(score, model.n_jobs)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ISDEWarning)  # said when the model was fitted
        overlap = is_tree(model)
        partition = select_partition(model.subset_scores_).partition if overlap else model.partition_
        blocks, independence = log_densities(partition), log_densities(alone)
        tree = log_densities(blocks_of(model)) if overlap else None
    means = float(blocks.mean()), float(independence.mean())
    found = HeldOut(len(fit), len(score), *means, *_mean_and_error(blocks - independence))
    if tree is None:
        return found
    gain, error = _mean_and_error(tree - blocks)
    return replace(found, tree=float(tree.mean()), tree_gain=gain, tree_error=error)


def _mean_and_error(values: Vector) -> tuple[float, float]:
    error = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan
    return float(values.mean()), error
