"""The best tree by a table of scores, with the bound that says how far it can be from that."""

from __future__ import annotations

from itertools import combinations
from math import inf

from isde.scores import SubsetScores, check_is_scores
from isde.solvers import select_partition
from isde.solvers.registry import AUTO
from isde.tree_selection import TreeSelection, certify_tree
from isde.tree_solvers.problem import TreeProblem
from isde.tree_solvers.registry import choose, solver_named


def select_tree(scores: SubsetScores, max_block_size: int | None = None, solver: str = AUTO) -> TreeSelection:
    """The tree of blocks with the highest sum of scores over cliques minus sum over separators.

    A table that charges for chance has the charges taken off both, a clique's no less than those of its pairs
    (`SubsetScores.charged_by_edge`); one without is taken as it is. `max_block_size` restricts the cliques further than
    the table does. Up to 16 columns, and for pairs, the best tree is found exactly: scores closer than 1e-12 count as
    equal, and ties go to a tree with fewer edges. Beyond, a good tree is found and bounded. It is proved to be the best
    where `is_optimal`; otherwise `gap` says how far from the best it can be.

    >>> table = SubsetScores.from_dict({(0,): 0.0, (1,): 0.0, (2,): 0.0, (0, 1): 1.0, (0, 2): 0.5, (1, 2): 0.75})
    >>> found = select_tree(table)
    >>> found.cliques, found.separators, found.score, found.proof
    (((0, 1), (1, 2)), ((1,),), 1.75, 'proved')
    """
    check_is_scores(scores)
    restricted = (scores if max_block_size is None else scores.restrict(max_block_size)).charged_by_edge()
    problem = TreeProblem(restricted)
    name = choose(solver, problem.task)
    found = solver_named(name).best(problem)
    if found.edges is not None:
        return certify_tree(restricted, found.edges, found.gap, name, found.witness)
    # No tree is known that scores more than -inf; of those that do, a partition needs no separator.
    blocks = select_partition(restricted).partition
    edges = [edge for block in blocks for edge in combinations(block, 2)]
    return certify_tree(restricted, edges, found.gap if found.gap == 0.0 else inf, name)
