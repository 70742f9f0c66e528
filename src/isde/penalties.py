"""Penalised likelihood in place of held-out rows: a price for each parameter of a block.

Prices add up over blocks, as scores do, so that the same exact solvers serve. Only for families whose blocks have a
fixed number of parameters: all rows are fitted and scored at once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from isde.arrays import Vector
from isde.marginals.marginal import Marginal
from isde.partitions import Partition
from isde.scores import SubsetScores
from isde.slope import slope_by_jump
from isde.solvers import select_partition

PENALTY_NAMES = ("bic", "slope")


def check_penalty(penalty: str | None, split: Any, marginal: Marginal) -> None:
    """Raise unless the penalty is known, and nothing else is asked that it would not do."""
    if penalty is None:
        return
    if penalty not in PENALTY_NAMES:
        raise ValueError(f"penalty={penalty!r} is unknown: use {', '.join(map(repr, PENALTY_NAMES))} or None.")
    if split is not None:
        raise ValueError(f"penalty={penalty!r} fits and scores all rows: leave split={split!r} out, or the penalty.")
    if marginal.n_parameters(1) is None:
        raise ValueError(
            f"penalty={penalty!r} needs a family with a fixed number of parameters, such as marginal='gaussian'."
        )


def penalized(scores: SubsetScores, penalty: str, n_rows: int, marginal: Marginal) -> SubsetScores:
    """Scores of all rows on themselves, minus the price of each subset's parameters, nats per row."""
    dimensions = np.array([marginal.n_parameters(int(size)) for size in scores.subsets.sizes], dtype=np.float64)
    price = 0.5 * np.log(n_rows) if penalty == "bic" else 2 * _slope_price(scores, dimensions, n_rows)
    return replace(scores, scores=scores.scores - price * dimensions / n_rows)


def _slope_price(scores: SubsetScores, dimensions: Vector, n_rows: int) -> float:
    """The price of a parameter at which the best partition gets smaller by the most parameters."""

    def model(price: float) -> tuple[int, float, Partition]:
        priced = replace(scores, scores=scores.scores - price * dimensions / n_rows)
        partition = select_partition(priced).partition
        own = [scores.subsets.index(block) for block in partition]
        return int(dimensions[own].sum()), n_rows * float(scores.scores[own].sum()), partition

    def between(small: tuple[int, float, Partition], large: tuple[int, float, Partition]) -> None:
        """Every partition that is best at some price between those of two that are."""
        if large[0] <= small[0]:
            return
        found = model((large[1] - small[1]) / (large[0] - small[0]))
        if found[2] not in known:
            known[found[2]] = found
            between(small, found)
            between(found, large)

    alone = tuple((c,) for c in range(scores.n_columns))
    columns = slice(0, scores.n_columns)
    small = (int(dimensions[columns].sum()), n_rows * float(scores.scores[columns].sum()), alone)
    large = model(0.0)
    if not np.isfinite([small[1], large[1]]).all():  # a column without a density: no slope to be seen
        return 0.0
    known = {small[2]: small, large[2]: large}
    between(small, large)
    path = sorted((dimension, value) for dimension, value, _ in known.values())
    return slope_by_jump(np.array([d for d, _ in path]), np.array([value for _, value in path]))
