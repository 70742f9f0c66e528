"""Good trees with a bound, for any number of columns: annealing finds one, a linear program says how far it can be.

Most tables of real data are proved so; where the bound stays above the tree, the gap is the answer.
"""

from __future__ import annotations

from math import inf

from isde.tree_solvers.annealing import best_edges, led
from isde.tree_solvers.moebius import moebius_weights
from isde.tree_solvers.problem import TreeProblem, TreeTask
from isde.tree_solvers.relaxation import Limits, upper_bound
from isde.tree_solvers.solver import Found
from isde.tree_solvers.witness_file import as_plain

LIMITS = Limits(seconds=60.0)
"""Of the linear programs. What they prove until then holds, and a tree that they found is kept."""

STEPS = 3e9
"""Its cost as it is held against others: the recursion is preferred up to 16 columns, where it takes 6 s."""


def refusal(task: TreeTask) -> str | None:
    return None


def steps(task: TreeTask) -> float:
    return STEPS


def best(problem: TreeProblem) -> Found:
    """The better one of the trees that annealing and the linear programs found, and what the latter proved."""
    annealed = best_edges(problem)
    known = annealed if problem.gain(annealed) > -inf else None
    weights = moebius_weights(problem.subsets, problem.gains)
    d, k = problem.subsets.n_columns, problem.subsets.max_size
    bound = upper_bound(weights, d, k, known, LIMITS, lambda edges, point, seed: led(problem, edges, point, seed))
    edges = max(annealed, bound.edges, key=problem.gain)
    gain = problem.gain(edges)
    if gain == -inf:
        return Found(None, inf)
    return Found(edges, max(bound.value - gain, 0.0), as_plain(bound.witness))
