"""Every partition, one after the other: the definition, and the oracle for the other solvers."""

from __future__ import annotations

from heapq import nsmallest

from isde.partitions import Partition, count_partitions, enumerate_partitions
from isde.solvers.weights import FORBIDDEN, Weights

MOST_PARTITIONS = 5_000_000


def heaviest_partitions(weights: Weights, n: int = 1) -> list[Partition]:
    """The `n` heaviest partitions in order, the first in Python's order among equals."""
    d, k = weights.family.n_columns, weights.family.max_size
    count = count_partitions(d, k)
    if count > MOST_PARTITIONS:
        raise ValueError(
            f"solver='exhaustive' would visit {count:.3g} partitions of {d} columns: use solver='dynamic' or 'milp'."
        )
    weight = dict(zip(weights.family, weights.values.tolist(), strict=True))
    most = d if weights.max_blocks is None else weights.max_blocks
    allowed = (
        partition
        for partition in enumerate_partitions(d, k)
        if len(partition) <= most and all(weight[block] != FORBIDDEN for block in partition)
    )
    # `nsmallest` keeps the first of equals, and partitions come in Python's order.
    return nsmallest(n, allowed, key=lambda partition: -sum(weight[block] for block in partition))


def heaviest_partition(weights: Weights) -> tuple[Partition, int] | None:
    """The heaviest partition and the bound, its own weight; None where no partition is allowed."""
    found = heaviest_partitions(weights)
    return (found[0], weights.of(found[0])) if found else None
