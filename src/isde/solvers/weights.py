"""Scores as integers: sums are exact, ties are ties, and every solver breaks them in the same way.

Scores are first turned into gains (score minus the scores of the columns alone), which shifts every partition by the
same constant, then rounded to a multiple of `unit`, at most 2^-40 nats (1e-12) where their range allows. A block weighs

    W(S) = (d + 1) * gain(S) / unit + 1

so that the heaviest partition is the best one and, among equals, the one with the most blocks. What is still tied
goes to the partition that comes first in Python's order of tuples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isde.arrays import FrozenArrays
from isde.partitions import Partition
from isde.scores import SubsetScores
from isde.subsets import SubsetFamily

FINEST_BITS = 40
FORBIDDEN = np.iinfo(np.int64).min // 2
"""The weight of a subset that must never be a block."""


@dataclass(frozen=True)
class Weights(FrozenArrays):
    """An exact set-partitioning problem: choose disjoint subsets that cover all columns and weigh the most."""

    subsets: SubsetFamily
    values: NDArray[np.int64]  # weight of each subset
    unit: float  # nats that (d + 1) weight units stand for
    max_blocks: int | None = None  # of a partition; None: no limit

    def of(self, partition: Partition) -> int:
        """The weight of a partition."""
        return sum(int(self.values[self.subsets.index(block)]) for block in partition)

    def nats(self, weight: int, bound: int) -> float:
        """How much more than `weight` a partition can score that weighs at most `bound`; blocks only cut ties."""
        return (self._gain(bound) - self._gain(weight)) * self.unit

    def next_gain(self, weight: int) -> int:
        """The least that a partition weighs which gains more than one of this weight."""
        return (self._gain(weight) + 1) * (self.subsets.n_columns + 1) + 1

    def _gain(self, weight: int) -> int:
        """The gain in units of a partition: of gain G, it weighs (d + 1) G plus 1 to d for its blocks."""
        return (weight - 1) // (self.subsets.n_columns + 1)


def gains_of(scores: SubsetScores, sense: str) -> NDArray[np.float64]:
    """What each subset adds to the columns alone, charges taken off; with `sense="min"` what it takes away.

    -inf stays -inf.
    """
    if sense not in ("max", "min"):
        raise ValueError(f"sense={sense!r} is unknown: use 'max' or 'min'.")
    if scores.dependence is not None:
        gains = scores.dependence - scores.charges
    else:
        alone = scores.scores[: scores.n_columns]
        gains = scores.objectives - scores.subsets.sum_over_members(np.where(np.isfinite(alone), alone, 0.0))
    return gains if sense == "max" else np.where(np.isfinite(gains), -gains, -np.inf)


def integer_weights(
    subsets: SubsetFamily,
    gains: NDArray[np.float64],
    *,
    floor: float | None = 0.0,
    allowed: NDArray[np.bool_] | None = None,
    max_blocks: int | None = None,
) -> Weights:
    """The problem whose heaviest partition has the largest sum of gains.

    Partitions that gain at least `floor` are weighed exactly. Blocks that cannot be part of one all weigh the same,
    too little to matter: one hopeless score, or -inf, must not coarsen the unit for the others. Without a floor the
    unit suits all finite gains, and -inf costs more than all finite differences together.
    """
    d, possible = subsets.n_columns, np.isfinite(gains)
    allowed = np.ones(len(subsets), dtype=bool) if allowed is None else allowed
    gains = np.where(possible & allowed, gains, 0.0)
    if floor is None:
        gains[~possible] = -(2 * d + 1) * max(float(np.abs(gains).max()), 1.0)
    else:
        hopeless = floor - _most_gain(subsets, gains) - 1.0
        gains = np.where(possible, np.maximum(gains, hopeless), hopeless)
    gains[~allowed] = 0.0
    largest = float(np.abs(gains).max()) or 1.0
    # The sum of d weights, and 128 times that (prices are finer), must stay below 2^61.
    bits = min(FINEST_BITS, int(np.floor(53 - np.log2(largest * d * (d + 1)))))
    units = np.rint(np.ldexp(gains, bits)).astype(np.int64)
    # The largest unit that serves: tied scores become small numbers, whose ties a linear program can see.
    common = int(np.gcd.reduce(units)) or 1
    values = np.where(allowed, units // common * (d + 1) + 1, FORBIDDEN)
    return Weights(subsets, values, float(np.ldexp(common, -bits)), max_blocks)


def _most_gain(subsets: SubsetFamily, gains: NDArray[np.float64]) -> float:
    """No partition gains more: each column takes its share of the best block that it could be in."""
    best = np.zeros(subsets.n_columns)
    for size in range(1, subsets.max_size + 1):
        shares = gains[subsets.of_size(size)] / size
        for column in subsets.members(size).T:
            np.maximum.at(best, column, shares)
    return float(best.sum())
