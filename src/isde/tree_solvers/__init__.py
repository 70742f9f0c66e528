"""Trees of blocks: from a table of scores to the best tree, with a bound that says how far it can be from that.

`select` is what users call; `solver` is the contract and `registry` the list of those who keep it; `proofs` checks an
answer again.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from isde.tree_solvers.registry import TREE_SOLVER_NAMES, check_tree_solver

if TYPE_CHECKING:
    from isde.tree_solvers.proofs import certify_tree_again
    from isde.tree_solvers.select import select_tree

_HOMES = {"certify_tree_again": "proofs", "select_tree": "select"}

__all__ = ["TREE_SOLVER_NAMES", "certify_tree_again", "check_tree_solver", "select_tree"]


def __getattr__(name: str) -> Any:
    # Imported when first used: the command line asks for the names of the solvers before anything else is needed.
    if name in _HOMES:
        return getattr(import_module(f"isde.tree_solvers.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'isde.tree_solvers' has no attribute {name!r}")
