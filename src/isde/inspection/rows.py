"""Rows of low density, and the block to blame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from isde.arrays import Matrix, Vector
from isde.density_estimator import DensityEstimator
from isde.inspection.gains import blocks_of
from isde.subsets import Subset


@dataclass(frozen=True)
class LowRow:
    """A row that a density finds unlikely."""

    row: int  # its place in the table, from 0
    log_density: float
    block: Subset  # the block in which it falls farthest below what is usual there
    shortfall: float  # by so many nats below the median of the rows


def lowest_rows(model: DensityEstimator, X: Any, n: int = 10) -> list[LowRow]:
    """The `n` rows of `X` with the lowest density, the lowest first, each with the block to blame."""
    if n < 1:
        raise ValueError(f"n={n} must be at least 1.")
    total, shortfalls = _shortfalls(model, X)
    blocks = blocks_of(model)
    lowest = np.argsort(total, kind="stable")[:n]
    worst = shortfalls.argmax(axis=1)
    return [LowRow(int(i), float(total[i]), blocks[worst[i]], float(shortfalls[i, worst[i]])) for i in lowest]


def blame(model: DensityEstimator, X: Any, share: float = 0.01) -> dict[Subset, int]:
    """Of the `share` of rows with the lowest density, how many have each block to blame; an aggregate of rows."""
    if not 0 < share <= 1:
        raise ValueError(f"share={share} must be above 0 and at most 1.")
    total, _ = found = _shortfalls(model, X)
    n = max(1, round(share * len(total)))
    worst = found[1].argmax(axis=1)[np.argsort(total, kind="stable")[:n]]
    return {block: int((worst == i).sum()) for i, block in enumerate(blocks_of(model))}


def _shortfalls(model: DensityEstimator, X: Any) -> tuple[Vector, Matrix]:
    """Log-density of each row, and by how much it is below the median in each block."""
    parts: Matrix = model.score_blocks(X)
    return parts.sum(axis=1), np.median(parts, axis=0) - parts
