"""Selection: from a table of scores to the best partitions, exact and certified.

`select` is what users call; `solver` is the contract and `registry` the list of those who keep it; `proofs` checks an
answer again.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from isde.solvers.registry import SOLVER_NAMES, check_solver

if TYPE_CHECKING:
    from isde.solvers.constraints import Constraints
    from isde.solvers.proofs import verify
    from isde.solvers.select import best_partitions, select_partition, worst_partitions

_HOMES = {
    "Constraints": "constraints",
    "best_partitions": "select",
    "select_partition": "select",
    "verify": "proofs",
    "worst_partitions": "select",
}

__all__ = [
    "SOLVER_NAMES",
    "Constraints",
    "best_partitions",
    "check_solver",
    "select_partition",
    "verify",
    "worst_partitions",
]


def __getattr__(name: str) -> Any:
    # Imported when first used: the command line asks for the names of the solvers before anything else is needed.
    if name in _HOMES:
        return getattr(import_module(f"isde.solvers.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'isde.solvers' has no attribute {name!r}")
