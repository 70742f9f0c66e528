"""Every partition, one after the other: the definition, and the oracle for the other solvers."""

from __future__ import annotations

from isde.partitions import Partition, count_partitions, enumerate_partitions
from isde.solvers.weights import Weights

MOST_PARTITIONS = 5_000_000


def heaviest_partition(weights: Weights) -> tuple[Partition, int]:
    """The heaviest partition, the first in Python's order among equals, and the bound: its own weight."""
    d, k = weights.family.n_columns, weights.family.max_size
    count = count_partitions(d, k)
    if count > MOST_PARTITIONS:
        raise ValueError(
            f"solver='exhaustive' would visit {count:.3g} partitions of {d} columns: use solver='dynamic' or 'milp'."
        )
    weight = dict(zip(weights.family, weights.values.tolist(), strict=True))
    # `max` keeps the first of equals, and partitions come in Python's order.
    best = max(enumerate_partitions(d, k), key=lambda partition: sum(weight[block] for block in partition))
    return best, sum(weight[block] for block in best)
