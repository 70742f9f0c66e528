"""Subsets that can never be needed: those that do not outweigh their own best split."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from isde.solvers.weights import FORBIDDEN, Weights
from isde.subsets import binomials


def undominated(weights: Weights) -> NDArray[np.bool_]:
    """Whether each subset may stand in a heaviest partition.

    best(S) = max(W(S), max over splits S = A u B of best(A) + best(B)), sizes ascending. Where a split weighs at
    least as much as S, putting the split in place of S makes any partition at least as heavy, with more blocks.
    """
    family = weights.family
    best, keep = weights.values.copy(), weights.values != FORBIDDEN
    offsets = np.array(family.offsets, dtype=np.int64)
    for size in range(2, family.max_size + 1):
        where = family.of_size(size)
        _split_all(family.members(size), offsets, binomials(family.n_columns, size), best, best[where], keep[where])
    return keep


@njit(cache=True, nogil=True)
def _split_all(
    members: NDArray[np.int16],  # in: the subsets of one size
    offsets: NDArray[np.int64],  # in: position of the first subset of each size
    choose: NDArray[np.int64],  # in: binomial coefficients
    best: NDArray[np.int64],  # in: best weight of every smaller subset, by position
    best_here: NDArray[np.int64],  # in, out: weight -> best weight of these subsets
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
