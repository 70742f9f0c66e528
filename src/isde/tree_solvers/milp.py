"""Good trees with a bound, for any number of columns: annealing finds one, a linear program says how far it can be.

Most tables of real data are proved so; where the bound stays above the tree, the gap is the answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

import numpy as np
from numpy.typing import NDArray

from isde.subsets import SubsetFamily
from isde.tree_solvers.annealing import best_of, trees_met
from isde.tree_solvers.merging import merged
from isde.tree_solvers.moebius import moebius_weights
from isde.tree_solvers.problem import TreeProblem, TreeTask
from isde.tree_solvers.relaxation import Limits, upper_bound
from isde.tree_solvers.solver import Found
from isde.tree_solvers.witness_file import as_plain
from isde.trees import Edge

LIMITS = Limits(seconds=60.0)
"""Of the linear programs. What they prove until then holds, and a tree that they found is kept."""

MERGING = Limits(seconds=10.0, branches=20)
"""Of the program of a few sets, in which trees are merged."""

STEPS_PER_PAIR = 1000
"""Of a run of annealing: what runs five times as long find is found sooner by merging these."""

STEPS = 3e9
"""Its cost as it is held against others: the recursion is preferred up to 16 columns, where it takes 6 s."""


def refusal(task: TreeTask) -> str | None:
    return None


def steps(task: TreeTask) -> float:
    return STEPS


def best(problem: TreeProblem) -> Found:
    """The better one of the trees that annealing and the linear programs found, and what the latter proved."""
    subsets, weights = problem.subsets, moebius_weights(problem.subsets, problem.gains)
    met = trees_met(problem, STEPS_PER_PAIR)
    annealed = _best_allowed(problem, best_of(met))

    def improve(known: Sequence[Edge], point: NDArray[np.float64]) -> Sequence[Edge]:
        return merged(subsets, weights, [*known, *_edges_of_point(subsets, point)], known, MERGING).edges

    of_all = merged(subsets, weights, _edges_of_trees(met), annealed, MERGING).edges
    known = _best_allowed(problem, annealed, of_all)
    bound = upper_bound(weights, subsets.n_columns, subsets.max_size, known, LIMITS, improve)
    edges = _best_allowed(problem, known, bound.edges)
    if edges is None:
        return Found(None, inf)
    return Found(edges, max(bound.value - problem.gain(edges), 0.0), as_plain(bound.witness))


def _best_allowed(problem: TreeProblem, *trees: tuple[Edge, ...] | None) -> tuple[Edge, ...] | None:
    """The tree that gains most; None where all need a subset of score -inf."""
    best = max((edges for edges in trees if edges is not None), key=problem.gain, default=None)
    return best if best is not None and problem.gain(best) > -inf else None


def _edges_of_trees(met: Mapping[tuple[Edge, ...], float]) -> list[Edge]:
    """Those of the best trees first."""
    return [edge for edges in sorted(met, key=lambda edges: -met[edges]) for edge in edges]


def _edges_of_point(subsets: SubsetFamily, point: NDArray[np.float64]) -> list[Edge]:
    """Those that it has most of first."""
    values = point[subsets.of_size(2)]
    some = np.argsort(-values, kind="stable")[: np.count_nonzero(values)]
    return [(a, b) for a, b in subsets.members(2)[some].tolist()]
