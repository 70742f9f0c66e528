"""Subsets against their own best division: those that do not outweigh it can never be needed."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isde.solvers.weights import FORBIDDEN, Weights
from isde.subsets import SubsetFamily, binomials

SUBSETS_AT_ONCE = 1 << 14
"""What is known of so many stays in the cache from one way to split them to the next."""


def undominated(weights: Weights) -> NDArray[np.bool_]:
    """Whether each subset may stand in a heaviest partition.

    best(S) = max(W(S), max over splits S = A u B of best(A) + best(B)), sizes ascending. Where a split weighs at
    least as much as S, putting the split in place of S makes any partition at least as heavy, with more blocks.
    """
    subsets = weights.subsets
    best, keep = weights.values.copy(), weights.values != FORBIDDEN
    for size in range(2, subsets.max_size + 1):
        where = subsets.of_size(size)
        _split_all(subsets, size, best, best[where], keep[where])
    return keep


def best_divisions(subsets: SubsetFamily, scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """The best total of any partition of each subset into smaller ones; -inf for single columns."""
    best, divided = scores.copy(), np.full(len(subsets), -np.inf)
    unused = np.empty(len(subsets), dtype=np.bool_)
    for size in range(2, subsets.max_size + 1):
        where = subsets.of_size(size)
        _split_all(subsets, size, best, divided[where], unused[where])
        best[where] = np.maximum(best[where], divided[where])
    return divided


def _split_all(
    subsets: SubsetFamily,
    size: int,
    best: NDArray[Any],  # in: best weight of every smaller subset, by position
    best_here: NDArray[Any],  # in, out: weight -> best weight of the subsets of this size
    keep: NDArray[np.bool_],  # out: False where a subset does not outweigh its best split
) -> None:
    """Some subsets at a time, all of them in one way to split after the other: as fast as a compiled loop."""
    # The last one of each size stands for all that are not here (-1).
    smaller = [np.append(best[subsets.of_size(s)], _never(best)) for s in range(1, size)]
    allowed = [weights != _never(best) for weights in smaller]
    any_forbidden = not all(each[:-1].all() for each in allowed) or subsets.complete < size - 1
    choose = np.ascontiguousarray(binomials(subsets.n_columns, size).T)
    for start in range(0, len(best_here), SUBSETS_AT_ONCE):
        here = slice(start, start + SUBSETS_AT_ONCE)
        # Of each column of the subsets: what it adds to the rank of a part as the part's first, second, ... column.
        columns = subsets.members(size)[here].T.astype(np.intp)
        ranks = [[choose[s][column] for s in range(1, min(i + 2, size))] for i, column in enumerate(columns)]
        for chosen in range(2, 1 << size, 2):  # bit i sends column i to B; the first column stays in A
            parts: tuple[list[Any], list[Any]] = [], []
            for i in range(size):
                parts[chosen >> i & 1].append(ranks[i])
            a, b = (reduce(np.add, (rank[i] for i, rank in enumerate(part))) for part in parts)
            size_a, size_b = map(len, parts)
            a, b = subsets.places(size_a, a), subsets.places(size_b, b)
            both = smaller[size_a - 1][a] + smaller[size_b - 1][b]
            better = both >= best_here[here]
            if any_forbidden:
                better &= allowed[size_a - 1][a] & allowed[size_b - 1][b]
            np.copyto(best_here[here], both, where=better)
            np.copyto(keep[here], False, where=better)


def _never(best: NDArray[Any]) -> Any:
    """The weight, or the score, of what can be no part."""
    return FORBIDDEN if best.dtype.kind == "i" else -np.inf
