"""What blocks are worth on rows left out."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from isde.arrays import Vector
from isde.data.checks import as_table
from isde.density import fit_blocks
from isde.errors import ISDEWarning
from isde.estimator import ISDE
from isde.partitions import Partition


@dataclass(frozen=True)
class HeldOut:
    """The density of a model's blocks beside that of its columns alone, on rows that neither was fitted on."""

    n_fitted: int
    n_scored: int
    blocks: float  # mean log-density, nats a row
    independence: float
    gain: float  # blocks minus independence
    error: float  # standard error of the gain


def held_out(model: ISDE, X: Any, *, share: float = 0.2, random_state: int = 0) -> HeldOut:
    """Fit the blocks of a model again, and its columns alone, without a `share` of the rows, and score these.

    The densities have not seen the rows; the partition has, if they were among those it was selected by.
    """
    matrix = as_table(X).X
    fit, score = train_test_split(matrix, test_size=share, random_state=random_state)
    alone = tuple((c,) for c in range(matrix.shape[1]))

    def log_densities(partition: Partition) -> Vector:
        density = fit_blocks(
            fit,
            partition,
            model.marginal,
            model.bandwidths,
            cv=model.cv,
            scale=model.scale,
            n_jobs=model.n_jobs,
        )
        return density.score_samples(score, model.n_jobs)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ISDEWarning)  # said when the model was fitted
        blocks, independence = log_densities(model.partition_), log_densities(alone)
    difference = blocks - independence
    error = float(difference.std(ddof=1) / np.sqrt(len(score))) if len(score) > 1 else np.nan
    return HeldOut(
        len(fit), len(score), float(blocks.mean()), float(independence.mean()), float(difference.mean()), error
    )
