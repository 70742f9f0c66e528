"""An order of the columns in which blocks stay together, and the tree that gives it.

The height at which columns part is 1 - r, where r is the correlation of two Gaussian columns with as many nats of
dependence, r = sqrt(1 - exp(-2 gain)). Inside a block: the nats that its cheapest division into two loses; what is
held together only jointly (an XOR triple has no pair) parts at the height of the whole. Between blocks: the largest
gain of a pair across; a tree never bends down, so that blocks join no lower than they hang together themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from isde.inspection.gains import pair_gains
from isde.partitions import Partition
from isde.scores import SubsetScores
from isde.subsets import Subset


@dataclass(frozen=True)
class Merge:
    """Two parts of the tree that become one."""

    left: int  # a column, or n_columns + the place of an earlier merge
    right: int
    height: float  # 0: one determines the other, 1: nothing holds them together
    size: int  # columns below it
    inside: bool  # both stand in one block


@dataclass(frozen=True)
class Hierarchy:
    """A tree of the columns in which each block is a branch."""

    order: tuple[int, ...]  # the columns from left to right
    merges: tuple[Merge, ...]  # children before parents; numbered as scipy's linkage does


@dataclass(frozen=True)
class _Branch:
    columns: Subset  # in the order in which they are drawn
    node: int
    height: float


def correlation_worth(gain: float) -> float:
    """The correlation of two Gaussian columns whose dependence is worth `gain` nats."""
    return float(np.sqrt(-np.expm1(-2 * max(gain, 0.0))))


def hierarchy(scores: SubsetScores, blocks: Partition) -> Hierarchy:
    """The tree of a partition of the table's columns.

    >>> alone = {(0,): 0.0, (1,): 0.0, (2,): 0.0}
    >>> table = SubsetScores.from_dict(alone | {(0, 2): 0.8, (0, 1): 0.1, (1, 2): 0.0})
    >>> tree = hierarchy(table, ((0, 2), (1,)))
    >>> tree.order, [round(merge.height, 2) for merge in tree.merges]
    ((0, 2, 1), [0.11, 0.57])
    """
    merges: list[Merge] = []
    branches = [_inside(scores, block, 1.0, merges) for block in blocks]
    gains = np.nan_to_num(pair_gains(scores).gains, nan=0.0)
    across = np.array([[gains[np.ix_(a, b)].max() for b in blocks] for a in blocks])
    np.fill_diagonal(across, -np.inf)
    while len(branches) > 1:
        i, j = sorted(divmod(int(across.argmax()), len(branches)))
        height = max(1 - correlation_worth(across[i, j]), branches[i].height, branches[j].height)
        branches[i] = _merged(scores, branches[i], branches[j], height, merges, inside=False)
        across[i] = across[:, i] = np.maximum(across[i], across[j])
        across[i, i] = -np.inf
        across = np.delete(np.delete(across, j, axis=0), j, axis=1)
        del branches[j]
    return Hierarchy(branches[0].columns, tuple(merges))


def _inside(scores: SubsetScores, columns: Subset, highest: float, merges: list[Merge]) -> _Branch:
    """The branch of a block, or of a part of one, no higher than `highest`."""
    if len(columns) == 1:
        return _Branch(columns, columns[0], 0.0)
    loss, parts = min(_divisions(scores, columns), key=lambda division: division[0])
    height = min(1 - correlation_worth(loss), highest)
    left, right = (_inside(scores, part, height, merges) for part in parts)
    return _merged(scores, left, right, height, merges, inside=True)


def _divisions(scores: SubsetScores, columns: Subset) -> Sequence[tuple[float, tuple[Subset, Subset]]]:
    """Every division into two, with the nats that it loses."""
    first, others = columns[0], columns[1:]
    found = []
    for size in range(len(others)):
        for joined in combinations(others, size):
            part = (first, *joined)
            rest = tuple(c for c in others if c not in joined)
            found.append((scores.gain(columns) - scores.gain(part) - scores.gain(rest), (part, rest)))
    return found


def _merged(
    scores: SubsetScores, left: _Branch, right: _Branch, height: float, merges: list[Merge], *, inside: bool
) -> _Branch:
    columns = left.columns + right.columns
    merges.append(Merge(left.node, right.node, height, len(columns), inside))
    return _Branch(columns, scores.n_columns + len(merges) - 1, height)
