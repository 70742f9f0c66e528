"""Every partition, one after the other: the definition, and the oracle for the other solvers."""

from __future__ import annotations

from decimal import Decimal
from heapq import nsmallest
from math import inf

from isde.partitions import count_partitions, enumerate_partitions
from isde.solvers.solver import Proved, Task
from isde.solvers.weights import FORBIDDEN, Weights

MOST_PARTITIONS = 5_000_000


def refusal(task: Task) -> str | None:
    count = count_partitions(task.n_columns, task.max_block_size)
    if count <= MOST_PARTITIONS:
        return None
    return f"would visit {Decimal(count):.3g} partitions of {task.n_columns} columns"


def steps(task: Task) -> float:
    return inf  # the oracle works where it is asked for by name


def best(weights: Weights, n: int = 1) -> list[Proved]:
    """The `n` heaviest partitions in order; each one's bound is its own weight."""
    d, k = weights.subsets.n_columns, weights.subsets.max_size
    weight = dict(zip(weights.subsets, weights.values.tolist(), strict=True))
    most = d if weights.max_blocks is None else weights.max_blocks
    allowed = (
        partition
        for partition in enumerate_partitions(d, k)
        if len(partition) <= most and all(weight.get(block, FORBIDDEN) != FORBIDDEN for block in partition)
    )
    # `nsmallest` keeps the first of equals, and partitions come in Python's order.
    heaviest = nsmallest(n, allowed, key=lambda partition: -sum(weight[block] for block in partition))
    return [Proved(partition, weights.of(partition)) for partition in heaviest]
