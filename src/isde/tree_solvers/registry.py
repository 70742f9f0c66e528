"""The solvers of trees there are: a line for each, its name and its file.

Nothing is imported before it is asked for, as in `isde.solvers.registry`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from isde.solvers.registry import Registry

if TYPE_CHECKING:
    from isde.tree_solvers import annealing, dynamic, forest, milp
    from isde.tree_solvers.problem import TreeTask
    from isde.tree_solvers.solver import TreeSolver

    _KEEP_THE_CONTRACT: tuple[TreeSolver, ...] = (forest, dynamic, milp, annealing)

SOLVERS = {
    "forest": "isde.tree_solvers.forest",
    "dynamic": "isde.tree_solvers.dynamic",
    "milp": "isde.tree_solvers.milp",
    "annealing": "isde.tree_solvers.annealing",
}

_registry: Registry[TreeSolver, TreeTask] = Registry(SOLVERS)
TREE_SOLVER_NAMES, check_tree_solver = _registry.names, _registry.check
solver_named, choose = _registry.named, _registry.choose
