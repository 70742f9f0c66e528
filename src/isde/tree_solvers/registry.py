"""The solvers of trees there are: a line for each, its name and its file.

Nothing is imported before it is asked for, as in `isde.solvers.registry`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from isde.solvers.registry import AUTO

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

TREE_SOLVER_NAMES = (AUTO, *SOLVERS)


def check_tree_solver(name: str) -> None:
    """Raise, naming the solvers there are, for a name that is none."""
    if name not in TREE_SOLVER_NAMES:
        raise ValueError(f"solver={name!r} is unknown: use {', '.join(map(repr, TREE_SOLVER_NAMES))}.")


def solver_named(name: str) -> TreeSolver:
    """The solver behind a line of the registry."""
    return cast("TreeSolver", import_module(SOLVERS[name]))


def choose(name: str, task: TreeTask) -> str:
    """The solver asked for by name, if it takes the task; for "auto" the cheapest one that does."""
    check_tree_solver(name)
    if name != AUTO and (reason := solver_named(name).refusal(task)) is not None:
        raise ValueError(f"solver={name!r} {reason}: use solver={_cheapest(task)!r}.")
    return _cheapest(task) if name == AUTO else name


def _cheapest(task: TreeTask) -> str:
    by_cost = sorted(SOLVERS, key=lambda name: solver_named(name).steps(task))
    return next(name for name in by_cost if solver_named(name).refusal(task) is None)
