"""Step 2: the best partitions by a table of scores, exact and certified."""

from __future__ import annotations

from isde.scores import SubsetScores, check_is_scores
from isde.selection import Selection, certify
from isde.solvers.constraints import Constraints
from isde.solvers.problem import Problem
from isde.solvers.registry import AUTO, choose, solver_named


def select_partition(
    scores: SubsetScores,
    max_block_size: int | None = None,
    solver: str = AUTO,
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
    return best_partitions(scores, 1, max_block_size, solver=solver, sense=sense, constraints=constraints)[0]


def best_partitions(
    scores: SubsetScores,
    n: int,
    max_block_size: int | None = None,
    *,
    solver: str = AUTO,
    sense: str = "max",
    constraints: Constraints | None = None,
) -> list[Selection]:
    """The `n` best partitions, the best first; all of them where there are fewer.

    Exact: each one's bound says that no partition, but those before it, scores more. Ties as in `select_partition`.
    (Scores add up in 53 bits: where those of the partitions asked for differ by more than 2,000 nats, which ones come
    last is decided to 1e-15 of that.)

    >>> table = SubsetScores.from_dict({(0,): 0.8, (1,): 0.9, (2,): 0.1, (0, 1): 1.9, (0, 2): 0.5, (1, 2): 0.4})
    >>> [(found.rank, found.partition) for found in best_partitions(table, 2)]
    [(1, ((0, 1), (2,))), (2, ((0,), (1,), (2,)))]
    """
    if n < 1:
        raise ValueError(f"n={n} must be at least 1.")
    check_is_scores(scores)
    problem = Problem(scores, max_block_size, sense, constraints)
    name = choose(solver, problem.task(n))
    return [
        certify(problem.scores, one.partition, gap, name, sense=sense, rank=rank, witness=one.witness)
        for rank, (one, gap) in enumerate(problem.solved_by(solver_named(name), n), start=1)
    ]


def worst_partitions(
    scores: SubsetScores,
    n: int,
    max_block_size: int | None = None,
    *,
    solver: str = AUTO,
    constraints: Constraints | None = None,
) -> list[Selection]:
    """The `n` partitions of lowest score, the lowest first; with a subset that scores -inf only after all others."""
    return best_partitions(scores, n, max_block_size, solver=solver, sense="min", constraints=constraints)
