"""Good trees with a bound, for any number of columns: annealing finds one, a linear program says how far it can be.

Most tables of real data are proved so; where the bound stays above the tree, the gap is the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from isde.subsets import SubsetFamily
from isde.tree_solvers.annealing import MERGING, best_allowed, best_edges
from isde.tree_solvers.merging import merged
from isde.tree_solvers.moebius import moebius_weights
from isde.tree_solvers.problem import TreeProblem, TreeTask
from isde.tree_solvers.relaxation import Limits, upper_bound
from isde.tree_solvers.solver import Found
from isde.tree_solvers.witness_file import as_plain
from isde.trees import Edge

LIMITS = Limits(seconds=60.0)
"""Of the linear programs. What they prove until then holds, and a tree that they found is kept."""

IMPROVING = replace(MERGING, seconds=10.0)
"""Of those by which a tree is improved on the way: out of the seconds above."""

STEPS = 3e9
"""Its cost as it is held against others: the recursion is preferred up to 16 columns, where it takes 6 s."""


def refusal(task: TreeTask) -> str | None:
    return None


def steps(task: TreeTask) -> float:
    return STEPS


def best(problem: TreeProblem) -> Found:
    """The better one of the trees that annealing and the linear programs found, and what the latter proved."""
    subsets, weights = problem.subsets, moebius_weights(problem.subsets, problem.gains)

    def improve(known: Sequence[Edge], point: NDArray[np.float64]) -> Sequence[Edge]:
        return merged(subsets, weights, [*known, *_edges_of(subsets, point)], known, IMPROVING).edges

    known = best_edges(problem)
    bound = upper_bound(weights, subsets.n_columns, subsets.max_size, known, LIMITS, improve)
    edges = best_allowed(problem, known, bound.edges)
    if edges is None:
        return Found(None, inf)
    return Found(edges, max(bound.value - problem.gain(edges), 0.0), as_plain(bound.witness))


def _edges_of(subsets: SubsetFamily, point: NDArray[np.float64]) -> list[Edge]:
    """Those that it has most of first."""
    values = point[subsets.of_size(2)]
    some = np.argsort(-values, kind="stable")[: np.count_nonzero(values)]
    return [(a, b) for a, b in subsets.members(2)[some].tolist()]
