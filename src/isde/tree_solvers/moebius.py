"""Weights of complete sets: a tree's objective as a sum over all sets of columns that stand together in a clique.

With  w(S) = g(S) - sum of w over the proper subsets of S,  the sum of g over cliques minus that over separators is the
sum of w over the complete sets of the tree's graph: no junction tree is needed to say what a graph gains.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from math import inf

import numpy as np
from numpy.typing import NDArray

from isde.subsets import SubsetFamily, binomials

Floats = NDArray[np.float64]
Positions = NDArray[np.intp]


def moebius_weights(subsets: SubsetFamily, gains: Floats) -> Floats:
    """The weight of each subset, in the order of the table; -inf where no tree that is allowed holds it.

    A subset of the largest size that gains -inf is in no such tree. A smaller one may be part of a larger clique: it
    weighs 0, which takes nothing from trees that are allowed, and may let one pass that is not.

    >>> moebius_weights(SubsetFamily(3, 3), np.array([0.0, 0.0, 0.0, 1.0, 0.5, 0.0, 2.0])).tolist()
    [0.0, 0.0, 0.0, 1.0, 0.5, 0.0, 0.5]
    """
    weights = gains.astype(np.float64)
    weights[: subsets.n_columns][weights[: subsets.n_columns] == -inf] = 0.0
    for size in range(2, subsets.max_size + 1):
        here = subsets.of_size(size)
        for smaller in range(1, size):
            for chosen in combinations(range(size), smaller):
                weights[here] -= weights[positions_within(subsets, size, chosen)]
        if size < subsets.max_size:
            weights[here][weights[here] == -inf] = 0.0
    return weights


def positions_within(subsets: SubsetFamily, size: int, chosen: tuple[int, ...]) -> Positions:
    """For each subset of a size, the position of the subset of its members at the places chosen."""
    return _positions_within(subsets.n_columns, subsets.max_size, size, chosen)


@lru_cache(maxsize=64)
def _positions_within(n_columns: int, max_size: int, size: int, chosen: tuple[int, ...]) -> Positions:
    subsets = SubsetFamily(n_columns, max_size)
    members, terms = subsets.members(size), binomials(n_columns, len(chosen))
    ranks = sum(terms[members[:, place], i] for i, place in enumerate(chosen, start=1))
    return np.asarray(ranks + subsets.offsets[len(chosen)], dtype=np.intp)
