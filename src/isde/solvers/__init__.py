"""Step 2: the best partitions by a table of scores, exact and certified."""

from __future__ import annotations

from collections.abc import Callable
from math import comb, fsum, ldexp

import numpy as np

from isde.errors import InputError
from isde.partitions import Partition
from isde.scores import SubsetScores
from isde.selection import Selection, certify
from isde.solvers.constraints import Constraints, Demands, combine, conflict, rules_of
from isde.solvers.weights import FINEST_BITS, FORBIDDEN, Weights, gains_of, integer_weights
from isde.subsets import SubsetFamily

SOLVER_NAMES = ("auto", "exhaustive", "dynamic", "milp")

DYNAMIC_UP_TO = 14
"""Columns up to which the recursion over bit masks (3^d steps) is faster than a linear program, whatever k is."""

DYNAMIC_MOST = 22
"""Columns up to which its tables fit into memory."""

WORTH_OF_A_SPLIT = 4
"""Steps of the recursion that cost as much as dominance does for one split of one subset, measured at d = 16 to 20."""

__all__ = ["SOLVER_NAMES", "Constraints", "best_partitions", "check_solver", "select_partition", "worst_partitions"]


def select_partition(
    scores: SubsetScores,
    max_block_size: int | None = None,
    solver: str = "auto",
    sense: str = "max",
    *,
    constraints: Constraints | None = None,
) -> Selection:
    """The partition with the highest (`sense="min"`: lowest) sum of scores, proved optimal.

    `max_block_size` restricts the blocks further than the table does, `constraints` says what else is demanded. Scores
    closer than 1e-12 count as equal; ties go to the partition with more blocks, then to the first in Python's order of
    tuples, whichever the solver.

    >>> table = SubsetScores.from_dict({(0,): 0.8, (1,): 0.9, (2,): 0.1, (0, 1): 1.9, (0, 2): 0.5, (1, 2): 0.4})
    >>> select_partition(table).partition
    ((0, 1), (2,))
    >>> select_partition(table, constraints=Constraints(apart=[(0, 1)])).partition
    ((0,), (1,), (2,))
    """
    check_solver(solver)
    problem = _Problem(scores, max_block_size, sense, constraints)
    name = _cheapest(problem) if solver == "auto" else solver
    gap = 0.0

    def solve(weights: Weights) -> list[Partition]:
        nonlocal gap
        found = _solver(name)(weights)
        if found is None:
            return []
        partition, bound = found
        gap = weights.nats(weights.of(partition), bound)
        return [partition]

    (partition,) = problem.solved_by(solve)
    return certify(problem.scores, partition, gap, name, sense=sense)


def best_partitions(
    scores: SubsetScores,
    n: int,
    max_block_size: int | None = None,
    *,
    sense: str = "max",
    constraints: Constraints | None = None,
) -> list[Selection]:
    """The `n` best partitions, the best first; all of them where there are fewer.

    Exact: each one's bound says that no partition, but those before it, scores more. Ties as in `select_partition`.
    (Scores add up in 53 bits: where those of the partitions asked for differ by more than 2,000 nats, which ones come
    last is decided to 1e-15 of that.)

    >>> table = SubsetScores.from_dict({(0,): 0.8, (1,): 0.9, (2,): 0.1, (0, 1): 1.9, (0, 2): 0.5, (1, 2): 0.4})
    >>> [found.partition for found in best_partitions(table, 2)]
    [((0, 1), (2,)), ((0,), (1,), (2,))]
    """
    from isde.solvers.milp import heaviest_partitions

    if n < 1:
        raise ValueError(f"n={n} must be at least 1.")
    problem = _Problem(scores, max_block_size, sense, constraints)
    found = sorted(problem.solved_by(lambda weights: heaviest_partitions(weights, n)), key=problem.rank)
    return [certify(problem.scores, partition, 0.0, "milp", sense=sense) for partition in found]


def worst_partitions(
    scores: SubsetScores, n: int, max_block_size: int | None = None, *, constraints: Constraints | None = None
) -> list[Selection]:
    """The `n` partitions of lowest score, the lowest first; with a subset that scores -inf only after all others."""
    return best_partitions(scores, n, max_block_size, sense="min", constraints=constraints)


def check_solver(solver: str) -> None:
    """Raise, naming the solvers there are, for a name that is none."""
    if solver not in SOLVER_NAMES:
        raise ValueError(f"solver={solver!r} is unknown: use {', '.join(map(repr, SOLVER_NAMES))}.")


class _Problem:
    """A table with what is demanded of its partitions."""

    def __init__(
        self, scores: SubsetScores, max_block_size: int | None, sense: str, constraints: Constraints | None
    ) -> None:
        self.scores = scores if max_block_size is None else scores.restrict(max_block_size)
        self.gains = gains_of(self.scores, sense)
        self.rules = rules_of(constraints or Constraints(), self.scores.names)
        self.demands = combine(self.rules, self.scores.subsets)

    def solved_by(self, solve: Callable[[Weights], list[Partition]]) -> list[Partition]:
        """Partitions by a solver, with weights that are exact for all of them.

        Weights are exact down to a gain. Where the partitions found reach below, they show how deep to go: the true
        ones are no worse.
        """
        d = self.scores.n_columns
        alone_allowed = self.demands.max_blocks is None and self.demands.allowed[:d].all()
        floor = 0.0 if alone_allowed and np.isfinite(self.gains[:d]).all() else None
        while True:
            found = solve(self._weights(floor))
            if not found:
                raise InputError(conflict(self.rules, self.scores.subsets, self._is_possible))
            lowest = min(self._gain(partition) for partition in found)
            if lowest == -np.inf and floor is None:
                return found
            if floor is not None and lowest >= floor:
                return found
            floor = None if lowest == -np.inf else lowest

    def rank(self, partition: Partition) -> tuple[int, int, int, Partition]:
        """A key that sorts as the solvers do, in the finest unit however far the scores of the partitions lie apart."""
        gains = [float(self.gains[self.scores.subsets.index(block)]) for block in partition]
        finite = [gain for gain in gains if gain > -np.inf]
        units = sum(round(ldexp(gain, FINEST_BITS)) for gain in finite)
        return len(gains) - len(finite), -units, -len(partition), partition

    def _weights(self, floor: float | None) -> Weights:
        return integer_weights(
            self.scores.subsets,
            self.gains,
            floor=floor,
            allowed=self.demands.allowed,
            max_blocks=self.demands.max_blocks,
        )

    def _gain(self, partition: Partition) -> float:
        return fsum(self.gains[self.scores.subsets.index(block)] for block in partition)

    def _is_possible(self, demands: Demands) -> bool:
        from isde.solvers.milp import heaviest_partition

        family: SubsetFamily = self.scores.subsets
        values = np.where(demands.allowed, 1, FORBIDDEN)
        return heaviest_partition(Weights(family, values, 1.0, demands.max_blocks)) is not None


def _cheapest(problem: _Problem) -> str:
    d, k = problem.scores.n_columns, problem.scores.max_block_size
    if problem.demands.max_blocks is not None or d > DYNAMIC_MOST:
        return "milp"
    splits = sum(comb(d, size) * 2**size for size in range(1, k + 1))  # what dominance looks at; all 3^d where k = d
    return "dynamic" if d <= DYNAMIC_UP_TO or 3**d <= WORTH_OF_A_SPLIT * splits else "milp"


def _solver(name: str) -> Callable[[Weights], tuple[Partition, int] | None]:
    # Imported when asked for: each brings compiled code or HiGHS with it.
    if name == "exhaustive":
        from isde.solvers.exhaustive import heaviest_partition
    elif name == "dynamic":
        from isde.solvers.dynamic import heaviest_partition
    else:
        from isde.solvers.milp import heaviest_partition
    return heaviest_partition
