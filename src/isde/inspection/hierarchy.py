"""An order of the columns in which blocks stay together, and the tree that gives it.

The height at which columns part is 1 - r, where r is the correlation of two Gaussian columns with as many nats of
dependence, r = sqrt(1 - exp(-2 gain)). Inside a block: the nats that its cheapest division into two loses; what is
held together only jointly (an XOR triple has no pair) parts at the height of the whole. Between blocks, and inside what
is larger than any subset scored: the largest gain of a pair across; a tree never bends down, so that blocks join no
lower than they hang together themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isfinite

import numpy as np

from isde.arrays import Matrix
from isde.inspection.gains import pair_gains
from isde.partitions import Partition
from isde.scores import SubsetScores
from isde.subsets import Subset

MOST_DIVIDED = 12
"""Columns of a block of which every division into two is looked at."""


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


def hierarchy(scores: SubsetScores, groups: Partition) -> Hierarchy:
    """The tree of the table's columns for a partition of them: blocks, or what hangs together in a tree of blocks.

    >>> alone = {(0,): 0.0, (1,): 0.0, (2,): 0.0}
    >>> table = SubsetScores.from_dict(alone | {(0, 2): 0.8, (0, 1): 0.1, (1, 2): 0.0})
    >>> tree = hierarchy(table, ((0, 2), (1,)))
    >>> tree.order, [round(merge.height, 2) for merge in tree.merges]
    ((0, 2, 1), [0.11, 0.57])
    """
    merges: list[Merge] = []
    gains = np.nan_to_num(pair_gains(scores).gains, nan=0.0)
    branches = [_inside(scores, gains, group, 1.0, merges) for group in groups]
    return Hierarchy(_joined(branches, gains, merges, inside=False).columns, tuple(merges))


def _inside(scores: SubsetScores, gains: Matrix, columns: Subset, highest: float, merges: list[Merge]) -> _Branch:
    """The branch of a group, or of a part of one, no higher than `highest`."""
    if len(columns) == 1:
        return _Branch(columns, columns[0], 0.0)
    if len(columns) > min(scores.max_block_size, MOST_DIVIDED):
        return _joined([_Branch((column,), column, 0.0) for column in columns], gains, merges, inside=True)
    loss, parts = min(_divisions(scores, columns), key=lambda division: division[0])
    height = min(1 - correlation_worth(loss), highest)
    left, right = (_inside(scores, gains, part, height, merges) for part in parts)
    return _merged(left, right, height, len(gains), merges, inside=True)


def _joined(branches: list[_Branch], gains: Matrix, merges: list[Merge], *, inside: bool) -> _Branch:
    """Branches joined one after the other, those first whose columns have the pair that gains most."""
    across = np.array([[gains[np.ix_(a.columns, b.columns)].max() for b in branches] for a in branches])
    np.fill_diagonal(across, -np.inf)
    while len(branches) > 1:
        i, j = sorted(divmod(int(across.argmax()), len(branches)))
        height = max(1 - correlation_worth(across[i, j]), branches[i].height, branches[j].height)
        branches[i] = _merged(branches[i], branches[j], height, len(gains), merges, inside=inside)
        across[i] = across[:, i] = np.maximum(across[i], across[j])
        across[i, i] = -np.inf
        across = np.delete(np.delete(across, j, axis=0), j, axis=1)
        del branches[j]
    return branches[0]


def _divisions(scores: SubsetScores, columns: Subset) -> Sequence[tuple[float, tuple[Subset, Subset]]]:
    """Every division into two, with the nats that it loses."""
    first, others = columns[0], columns[1:]
    found = []
    for size in range(len(others)):
        for joined in combinations(others, size):
            part = (first, *joined)
            rest = tuple(c for c in others if c not in joined)
            loss = scores.gain(columns) - scores.gain(part) - scores.gain(rest)
            found.append((loss if isfinite(loss) else 0.0, (part, rest)))  # no gain can be told from none
    return found


def _merged(
    left: _Branch, right: _Branch, height: float, n_columns: int, merges: list[Merge], *, inside: bool
) -> _Branch:
    columns = left.columns + right.columns
    merges.append(Merge(left.node, right.node, height, len(columns), inside))
    return _Branch(columns, n_columns + len(merges) - 1, height)
