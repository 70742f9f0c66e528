"""Step 2: the best partition by a table of scores, exact and certified."""

from __future__ import annotations

from collections.abc import Callable

from isde.partitions import Partition
from isde.scores import SubsetScores
from isde.selection import Selection, certify
from isde.solvers.weights import Weights, integer_weights

SOLVER_NAMES = ("auto", "exhaustive", "dynamic", "milp")

DYNAMIC_UP_TO = 14
"""Columns up to which the recursion over bit masks (3^d steps) is faster than a linear program."""

__all__ = ["SOLVER_NAMES", "check_solver", "select_partition"]


def select_partition(
    scores: SubsetScores, max_block_size: int | None = None, solver: str = "auto", sense: str = "max"
) -> Selection:
    """The partition with the highest (`sense="min"`: lowest) sum of scores, proved optimal.

    `max_block_size` restricts the blocks further than the table does. Scores closer than 1e-12 count as equal; ties
    go to the partition with more blocks, then to the first in Python's order of tuples, whichever the solver.

    >>> table = SubsetScores.from_dict({(0,): 0.8, (1,): 0.9, (2,): 0.1, (0, 1): 1.9, (0, 2): 0.5, (1, 2): 0.4})
    >>> select_partition(table).partition
    ((0, 1), (2,))
    """
    check_solver(solver)
    table = scores if max_block_size is None else scores.restrict(max_block_size)
    weights = integer_weights(table, sense)
    name = _cheapest(table) if solver == "auto" else solver
    partition, bound = _solver(name)(weights)
    weight = sum(int(weights.values[table.subsets.index(block)]) for block in partition)
    return certify(table, partition, weights.nats(bound - weight), name, sense=sense)


def check_solver(solver: str) -> None:
    """Raise, naming the solvers there are, for a name that is none."""
    if solver not in SOLVER_NAMES:
        raise ValueError(f"solver={solver!r} is unknown: use {', '.join(map(repr, SOLVER_NAMES))}.")


def _cheapest(scores: SubsetScores) -> str:
    return "dynamic" if scores.n_columns <= DYNAMIC_UP_TO else "milp"


def _solver(name: str) -> Callable[[Weights], tuple[Partition, int]]:
    # Imported when asked for: each brings compiled code or HiGHS with it.
    if name == "exhaustive":
        from isde.solvers.exhaustive import heaviest_partition
    elif name == "dynamic":
        from isde.solvers.dynamic import heaviest_partition
    else:
        from isde.solvers.milp import heaviest_partition
    return heaviest_partition
