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
    finite = np.isfinite(gains)
    largest = float(np.abs(gains[finite]).max(initial=0.0)) or 1.0
    penalty_room = 1 if finite.all() else 2 * d + 2
    # The sum of d weights, penalties included, and 128 times that (prices are finer) must stay below 2^61.
    bits = min(FINEST_BITS, int(np.floor(53 - np.log2(largest * penalty_room * d * (d + 1)))))
    units = np.rint(np.ldexp(np.where(finite, gains, 0.0), bits)).astype(np.int64)
    if sense == "min":
        units = -units
    units[~finite] = -(2 * d + 1) * max(int(np.abs(units).max(initial=0)), 1)
    return Weights(family, units * (d + 1) + 1, float(np.ldexp(1.0, -bits)))
