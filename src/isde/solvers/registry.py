"""The solvers there are: a line for each, its name and its file.

Nothing is imported before it is asked for: solvers bring compiled code or HiGHS with them, and the command line needs
no more than their names.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from isde.solvers import dynamic, exhaustive, milp
    from isde.solvers.solver import Solver, Task

    _KEEP_THE_CONTRACT: tuple[Solver, ...] = (exhaustive, dynamic, milp)

SOLVERS = {
    "exhaustive": "isde.solvers.exhaustive",
    "dynamic": "isde.solvers.dynamic",
    "milp": "isde.solvers.milp",
}

AUTO = "auto"
"""The cheapest solver that takes the task."""

SOLVER_NAMES = (AUTO, *SOLVERS)


def check_solver(name: str) -> None:
    """Raise, naming the solvers there are, for a name that is none."""
    if name not in SOLVER_NAMES:
        raise ValueError(f"solver={name!r} is unknown: use {', '.join(map(repr, SOLVER_NAMES))}.")


def solver_named(name: str) -> Solver:
    """The solver behind a line of the registry."""
    return cast("Solver", import_module(SOLVERS[name]))


def choose(name: str, task: Task) -> str:
    """The solver asked for by name, if it takes the task; for "auto" the cheapest one that does."""
    check_solver(name)
    if name != AUTO and (reason := solver_named(name).refusal(task)) is not None:
        raise ValueError(f"solver={name!r} {reason}: use solver={_cheapest(task)!r}.")
    return _cheapest(task) if name == AUTO else name


def _cheapest(task: Task) -> str:
    by_cost = sorted(SOLVERS, key=lambda name: solver_named(name).steps(task))
    return next(name for name in by_cost if solver_named(name).refusal(task) is None)
