"""Exact recursion over bit masks: the best partition of a set of columns, from those of its subsets."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isde.engine.jit import loop, part
from isde.partitions import Partition
from isde.solvers.weights import FORBIDDEN, Weights

MOST_COLUMNS = 22


def heaviest_partition(weights: Weights) -> tuple[Partition, int] | None:
    """The heaviest partition, the first in Python's order among equals, and the bound: its own weight; None if none is.

    best[mask] = max over blocks B inside mask that hold its lowest column of W(B) + best[mask - B].
    """
    d = weights.family.n_columns
    if d > MOST_COLUMNS:
        raise ValueError(f"solver='dynamic' takes at most {MOST_COLUMNS} columns, not {d}: use solver='milp'.")
    if weights.max_blocks is not None:
        raise ValueError("solver='dynamic' cannot limit the number of blocks: use solver='milp'.")
    by_mask = np.full(1 << d, FORBIDDEN, dtype=np.int64)
    by_mask[weights.family.masks] = weights.values
    best, choice = np.zeros(1 << d, dtype=np.int64), np.zeros(1 << d, dtype=np.int64)
    _fill(by_mask, best, choice)
    if best[-1] == FORBIDDEN:
        return None
    partition, mask = [], (1 << d) - 1
    while mask:
        block = int(choice[mask])
        partition.append(tuple(c for c in range(d) if block >> c & 1))
        mask ^= block
    return tuple(partition), int(best[-1])


@part
def _comes_first(a: int, b: int) -> Any:
    """tuple of a's columns < tuple of b's columns, in Python's order; a != b."""
    low = (a ^ b) & -(a ^ b)
    if a & low:
        return b >= low  # a has the smaller column here, unless b ended before: then b is a prefix of a
    return a < low  # b has the smaller column: a comes first only as a prefix of b


@loop
def _fill(
    weight: NDArray[np.int64],  # in: by mask
    best: NDArray[np.int64],  # out: weight of the best partition of each mask
    choice: NDArray[np.int64],  # out: the block of the lowest column in it
) -> None:
    for mask in range(1, len(weight)):
        low = mask & -mask
        rest = mask ^ low
        best[mask] = FORBIDDEN
        sub = rest
        while True:
            block = low | sub
            if weight[block] != FORBIDDEN and best[mask ^ block] != FORBIDDEN:
                value = weight[block] + best[mask ^ block]
                if value > best[mask] or (value == best[mask] and _comes_first(block, choice[mask])):
                    best[mask] = value
                    choice[mask] = block
            if sub == 0:
                break
            sub = (sub - 1) & rest
