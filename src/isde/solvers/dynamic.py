"""Exact recursion over bit masks: the best partition of a set of columns, from those of its subsets."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isde.engine.jit import loop, part, plain
from isde.solvers.solver import Proved, Task
from isde.solvers.weights import FORBIDDEN, Weights

MOST_COLUMNS = 22
"""Columns up to which its tables fit into memory."""

FEW_STEPS = 3**8
"""That Python takes in the time in which a recursion compiled before is loaded."""


def refusal(task: Task) -> str | None:
    if task.n_columns > MOST_COLUMNS:
        return f"takes at most {MOST_COLUMNS} columns, not {task.n_columns}"
    if task.max_blocks is not None:
        return "cannot limit the number of blocks"
    return None if task.n == 1 else f"finds one partition, not {task.n}"


def steps(task: Task) -> float:
    return 3**task.n_columns


def best(weights: Weights, n: int = 1) -> list[Proved]:
    """The heaviest partition, the first in Python's order among equals; its bound is its own weight.

    best[mask] = max over blocks B inside mask that hold its lowest column of W(B) + best[mask - B].
    """
    d = weights.subsets.n_columns
    by_mask = np.full(1 << d, FORBIDDEN, dtype=np.int64)
    by_mask[weights.subsets.masks] = weights.values
    heaviest, choice = np.zeros(1 << d, dtype=np.int64), np.zeros(1 << d, dtype=np.int64)
    # Nothing is compiled for few columns.
    fill = plain(_fill) if 3**d <= FEW_STEPS and not _fill.signatures else _fill
    fill(by_mask, heaviest, choice)
    if heaviest[-1] == FORBIDDEN:
        return []
    partition, mask = [], (1 << d) - 1
    while mask:
        block = int(choice[mask])
        partition.append(tuple(c for c in range(d) if block >> c & 1))
        mask ^= block
    return [Proved(tuple(partition), int(heaviest[-1]))]


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
