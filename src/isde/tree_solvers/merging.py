"""The best tree of all whose edges some trees have: what single runs of annealing miss, they have between them.

A few edges for each column leave the linear program so few sets that it is solved in seconds, mostly with a proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import inf

import numpy as np
from numpy.typing import NDArray

from isde.subsets import SubsetFamily
from isde.tree_solvers.moebius import positions_within
from isde.tree_solvers.relaxation import Bound, Limits, upper_bound
from isde.trees import Edge

SETS = 3.0
"""To which edges may lead, in those of a tree whose cliques are all as large as they may be: of the edges given, the
first ones as far as that goes. With twice as many the program of 32 columns and cliques of four takes three times as
long."""

MISSING = np.iinfo(np.int64).max
"""The rank of a pair that is no edge, and of sets that hold one."""


def merged(
    subsets: SubsetFamily,
    weights: NDArray[np.float64],
    edges: Sequence[Edge],
    known: Sequence[Edge] | None,
    limits: Limits,
) -> Bound:
    """The best tree of such edges, the most promising first, and a bound for these trees; the known one may be one."""
    n, k = subsets.n_columns, subsets.max_size
    ranks, most = _ranks(subsets, list(dict.fromkeys(edges))), n + int(SETS * n * (2 ** (k - 1) - 1))
    # The set that is one too many, and all that come with its last edge.
    end = np.sort(ranks)[most] if len(ranks) > most else MISSING
    return upper_bound(np.where(ranks < end, weights, -inf), n, k, known, limits)


def _ranks(subsets: SubsetFamily, edges: Sequence[Edge]) -> NDArray[np.int64]:
    """Of each set, the place of the last of its pairs among the edges; -1 of a column alone."""
    ranks = np.full(len(subsets), -1, dtype=np.int64)
    ranks[subsets.n_columns :] = MISSING
    ranks[[subsets.index(edge) for edge in edges]] = np.arange(len(edges))
    for size in range(3, subsets.max_size + 1):
        pairs = [positions_within(subsets, size, pair) for pair in combinations(range(size), 2)]
        ranks[subsets.of_size(size)] = np.max([ranks[places] for places in pairs], axis=0)
    return ranks
