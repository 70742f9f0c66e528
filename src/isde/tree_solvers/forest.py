"""Cliques of at most two columns: the best tree is a maximum spanning forest of the pairs that gain something."""

from __future__ import annotations

import numpy as np

from isde.tree_solvers.problem import TreeProblem, TreeTask
from isde.tree_solvers.solver import Found
from isde.trees import Edge


def refusal(task: TreeTask) -> str | None:
    if task.max_block_size > 2:
        return f"takes cliques of at most 2 columns, not {task.max_block_size}"
    return None if task.all_alone else "takes no column that scores -inf by itself"


def steps(task: TreeTask) -> float:
    return 100.0 * task.n_columns**2


def best(problem: TreeProblem) -> Found:
    """Kruskal's: pairs by gain, each where it joins two trees. Forests are a matroid, so that no forest is heavier."""
    if problem.subsets.max_size == 1:
        return Found((), problem.rounding)
    pairs, here = problem.subsets.members(2).tolist(), problem.subsets.of_size(2)
    weights = problem.weights[here]
    heaviest_first = sorted(np.flatnonzero(weights > 0).tolist(), key=lambda i: (-weights[i], pairs[i]))
    tree_of = list(range(problem.subsets.n_columns))
    edges: list[Edge] = []
    for a, b in (pairs[i] for i in heaviest_first):
        if tree_of[a] != tree_of[b]:
            edges.append((a, b))
            joined = tree_of[b]
            tree_of = [tree_of[a] if tree == joined else tree for tree in tree_of]
    return Found(tuple(edges), problem.rounding)
