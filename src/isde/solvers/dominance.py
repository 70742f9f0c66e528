"""Subsets against their own best division: those that do not outweigh it can never be needed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isde.engine.jit import loop
from isde.solvers.weights import FORBIDDEN, Weights
from isde.subsets import SubsetFamily, binomials


def undominated(weights: Weights) -> NDArray[np.bool_]:
    """Whether each subset may stand in a heaviest partition.

    best(S) = max(W(S), max over splits S = A u B of best(A) + best(B)), sizes ascending. Where a split weighs at
    least as much as S, putting the split in place of S makes any partition at least as heavy, with more blocks.
    """
    subsets = weights.subsets
    best, keep = weights.values.copy(), weights.values != FORBIDDEN
    offsets = np.array(subsets.offsets, dtype=np.int64)
    for size in range(2, subsets.max_size + 1):
        where = subsets.of_size(size)
        _split_all(subsets.members(size), offsets, binomials(subsets.n_columns, size), best, best[where], keep[where])
    return keep


def best_divisions(subsets: SubsetFamily, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """The best total of any partition of each subset into smaller ones; -inf for single columns."""
    best, divided = scores.copy(), np.full(len(subsets), -np.inf)
    offsets, unused = np.array(subsets.offsets, dtype=np.int64), np.empty(len(subsets), dtype=np.bool_)
    for size in range(2, subsets.max_size + 1):
        where = subsets.of_size(size)
        _split_all(
            subsets.members(size), offsets, binomials(subsets.n_columns, size), best, divided[where], unused[where]
        )
        best[where] = np.maximum(best[where], divided[where])
    return divided


@loop
def _split_all(
    members: NDArray[np.int16],  # in: the subsets of one size
    offsets: NDArray[np.int64],  # in: position of the first subset of each size
    choose: NDArray[np.int64],  # in: binomial coefficients
    best: NDArray[Any],  # in: best weight of every smaller subset, by position
    best_here: NDArray[Any],  # in, out: weight -> best weight of these subsets
    keep: NDArray[np.bool_],  # out: whether the subset outweighs its best split
) -> Any:
    size = members.shape[1]
    for row in range(len(members)):
        for chosen in range(1, 1 << (size - 1)):
            # The first column stays in A; bit i of `chosen` sends column i + 1 to B.
            rank_a, rank_b, size_a, size_b = choose[members[row, 0], 1], 0, 1, 0
            for i in range(1, size):
                if chosen >> (i - 1) & 1:
                    size_b += 1
                    rank_b += choose[members[row, i], size_b]
                else:
                    size_a += 1
                    rank_a += choose[members[row, i], size_a]
            a, b = best[offsets[size_a] + rank_a], best[offsets[size_b] + rank_b]
            if a != FORBIDDEN and b != FORBIDDEN and a + b >= best_here[row]:
                best_here[row] = a + b
                keep[row] = False
