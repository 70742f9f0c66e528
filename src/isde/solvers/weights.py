"""Scores as integers: sums are exact, ties are ties, and every solver breaks them in the same way.

Scores are first turned into gains (score minus the scores of the columns alone), which shifts every partition by the
same constant, then rounded to a multiple of `unit`, at most 2^-40 nats (1e-12). A block then weighs

    W(S) = (d + 1) * gain(S) / unit + 1

so that the heaviest partition is the best one and, among equals, the one with the most blocks. What is still tied
goes to the partition that comes first in Python's order of tuples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isde.scores import SubsetScores
from isde.subsets import SubsetFamily

FINEST_BITS = 40
FORBIDDEN = np.iinfo(np.int64).min // 2
"""The weight of a subset that must never be a block."""


@dataclass(frozen=True)
class Weights:
    """An exact set-partitioning problem: choose disjoint subsets that cover all columns and weigh the most."""

    family: SubsetFamily
    values: NDArray[np.int64]  # weight of each subset
    unit: float  # nats that (d + 1) weight units stand for

    def nats(self, weight: int) -> float:
        """A difference of two partitions' weights in nats, rounded down to whole units."""
        return weight // (self.family.n_columns + 1) * self.unit


def integer_weights(scores: SubsetScores, sense: str = "max") -> Weights:
    """The problem whose heaviest partition is the best (`sense="max"`) or the worst (`"min"`) by the table.

    A score of -inf becomes a penalty larger than any finite difference: in both senses such a subset is chosen only
    where nothing else exists.
    """
    if sense not in ("max", "min"):
        raise ValueError(f"sense={sense!r} is unknown: use 'max' or 'min'.")
    d, family = scores.n_columns, scores.subsets
    alone = np.where(np.isfinite(scores.scores[:d]), scores.scores[:d], 0.0)
    gains = scores.scores - family.sum_over_members(alone)
    possible = np.isfinite(gains)
    gains = np.where(possible, gains if sense == "max" else -gains, 0.0)
    if possible[:d].all():
        # All columns alone gain 0. What gains less than this loses to that, whatever the other blocks are, and one such
        # score, or -inf, must not coarsen the unit for the others.
        hopeless = -_most_gain(family, gains) - 1.0
        gains = np.where(possible, np.maximum(gains, hopeless), hopeless)
    else:
        gains[~possible] = -(2 * d + 1) * max(float(np.abs(gains).max()), 1.0)
    largest = float(np.abs(gains).max()) or 1.0
    # The sum of d weights, and 128 times that (prices are finer), must stay below 2^61.
    bits = min(FINEST_BITS, int(np.floor(53 - np.log2(largest * d * (d + 1)))))
    units = np.rint(np.ldexp(gains, bits)).astype(np.int64)
    return Weights(family, units * (d + 1) + 1, float(np.ldexp(1.0, -bits)))


def _most_gain(family: SubsetFamily, gains: NDArray[np.float64]) -> float:
    """No partition gains more: each column takes its share of the best block that it could be in."""
    best = np.zeros(family.n_columns)
    for size in range(1, family.max_size + 1):
        shares = gains[family.of_size(size)] / size
        for column in family.members(size).T:
            np.maximum.at(best, column, shares)
    return float(best.sum())
