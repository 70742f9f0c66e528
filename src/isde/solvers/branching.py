"""Branch and bound: the heaviest partitions, proved where prices of columns leave too many to try.

A node is a list of subsets that may be blocks. Its relaxation (`relaxation`) gives a bound in integers, and with it
each subset's slack: those that lie further below the bound than the partitions known already are dropped. What is then
left is searched (`cover`) where that is short. Otherwise the node is divided in one of two ways. Where the relaxation
chooses blocks by halves, two columns that share a block by half are kept together in one child and apart in the other
(Ryan and Foster, 1981). Where it chooses a partition, that one is remembered, and its children hold all the others: the
first without its first block, the next with the first and without the second, and so on (Lawler, 1972).
"""

from __future__ import annotations

import time
from bisect import insort
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush, nlargest
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from isde.arrays import FrozenArrays, Mask
from isde.partitions import Partition
from isde.solvers.cover import LARGEST_TOTAL, Search, SearchTooLong
from isde.solvers.prices import COVER_TOLERANCE, NEVER, STEP, Prices
from isde.solvers.relaxation import NO_CUTS, Cuts, NoPartition, NotSolved, Numbers, Relaxation
from isde.solvers.weights import FORBIDDEN, Weights
from isde.subsets import Subset

MOST_SECONDS = 60
"""After which no further node is looked at: those of large problems take long."""

FEW_SUBSETS = 150
"""Subsets of a node among which a search is tried."""

NODES_OF_A_SEARCH = 100_000
"""Blocks that such a search tries: less than what the two children take."""

LIKELY = 2000
"""Subsets of least slack among which the first partitions are looked for."""

NOTHING_KNOWN = -(1 << 62)


@dataclass(frozen=True)
class _Node(FrozenArrays):
    """Partitions into some of the candidates."""

    bound: int  # none of them weighs more, in 1/STEP of a weight unit
    listed: Numbers  # numbers of the candidates, those first that are likely to be needed
    cuts: Cuts  # to start its relaxation with


class Tree:
    """Nodes that may hold one of the `n` heaviest partitions into candidates, those with the highest bound first."""

    def __init__(self, weights: Weights, prices: Prices, candidates: Numbers, n: int) -> None:
        self._weights = weights
        self._best = _Best(weights, n)
        likely = candidates[np.argsort(prices.slacks[candidates], kind="stable")]
        _look_for_some(weights, likely, self._best)
        self._candidates = likely[prices.slacks[likely] <= prices.bound - self._best.known]
        self._relaxation = Relaxation(weights, self._candidates)
        self._open: list[tuple[int, int, _Node]] = []  # by bound, reversed, and by age, which cuts ties
        self._count = 0
        self._add(_Node(prices.bound, np.arange(len(self._candidates)), NO_CUTS))

    @property
    def partitions(self) -> list[Partition]:
        """The heaviest ones found, heaviest first, equals in Python's order."""
        return [partition for _, partition in self._best.found]

    @property
    def bound(self) -> int:
        """No partition weighs more that is not among those found."""
        return -self._open[0][0] // STEP if self._open else NOTHING_KNOWN

    @property
    def is_complete(self) -> bool:
        """Whether no other partition is heavier, or as heavy and in Python's order before the last of those found."""
        return not self._open or -self._open[0][0] < self._best.known

    def grow(self, branches: int) -> bool:
        """Look at this many more nodes; whether the answer is complete then."""
        end = time.monotonic() + MOST_SECONDS
        for _ in range(branches):
            if self.is_complete or time.monotonic() > end:
                break
            try:
                children = self._children(self._open[0][2])
            except NotSolved:
                break
            heappop(self._open)
            for child in children:
                self._add(child)
        return self.is_complete

    def _add(self, node: _Node) -> None:
        self._count += 1
        heappush(self._open, (-node.bound, self._count, node))

    def _children(self, node: _Node) -> list[_Node]:
        """The nodes to look at instead of this one: none where all that it holds is known, or of no interest."""
        try:
            relaxed = self._relaxation.solve(node.listed, node.cuts, self._best.known)
        except NoPartition:
            return []
        if relaxed.bound >= self._best.known:
            holds = self._relaxation.holds[node.listed]
            self._best.offer(_rounded(self._weights, self._candidates[node.listed], holds, relaxed.shares))
        near = np.argsort(relaxed.slacks, kind="stable")
        near = near[relaxed.slacks[near] <= relaxed.bound - self._best.known]
        listed = node.listed[near]
        if len(listed) <= FEW_SUBSETS and self._search(listed):
            return []
        bound = min(node.bound, relaxed.bound)
        return [_Node(bound, part, relaxed.cuts) for part in self._divided(listed, relaxed.shares[near])]

    def _search(self, listed: Numbers) -> bool:
        """Whether the best partitions into these were found, or that there are none."""
        try:
            relaxed = self._relaxation.without_cuts(listed)
            slacks = np.full(len(self._weights.subsets), NEVER)
            slacks[self._candidates[listed]] = relaxed.slacks
            limit = min(relaxed.bound - self._best.known, LARGEST_TOTAL)
            search = Search(
                self._weights.subsets, slacks, STEP, NODES_OF_A_SEARCH, self._weights.max_blocks, relaxed.fee
            )
            found = search.least(self._best.n, limit) if limit >= 0 else []
        except NoPartition:
            return True
        except SearchTooLong:
            return False
        for partition, _ in found:
            self._best.keep(partition)
        return True

    def _divided(self, listed: Numbers, shares: NDArray[np.float64]) -> Iterator[Numbers]:
        """Lists that hold, each in one of them, all partitions but those that are known."""
        holds = self._relaxation.holds[listed]
        together = (holds * shares[:, None]).T @ holds  # how much each two columns share a block
        halves = np.abs(np.triu(together, 1) - 0.5)
        a, b = np.unravel_index(halves.argmin(), halves.shape)
        if halves[a, b] < 0.5 - COVER_TOLERANCE:
            yield listed[holds[:, a] == holds[:, b]]
            yield listed[~(holds[:, a] & holds[:, b])]
            return
        fits = np.ones(len(listed), dtype=np.bool_)
        covered = np.zeros(self._relaxation.d, dtype=np.bool_)
        for number in np.flatnonzero(shares > 0.5).tolist():
            without = fits.copy()
            without[number] = False
            yield listed[without]
            fits &= ~holds[:, holds[number]].any(axis=1)
            fits[number] = True
            covered |= holds[number]
        if not covered.any():
            raise NotSolved("The relaxation chooses nothing.")
        if not covered.all():
            yield listed[fits]  # a block of the relaxation's partition was dropped: what else goes with the others


def _look_for_some(weights: Weights, likely: Numbers, best: _Best) -> None:
    """Good partitions to begin with: the nearest to what the relaxation of likely subsets chooses."""
    alone = likely < weights.subsets.n_columns  # these make a partition of any blocks that do not overlap
    likely = likely[alone | (np.arange(len(likely)) < LIKELY)]
    relaxation = Relaxation(weights, likely)
    try:
        relaxed = relaxation.solve(np.arange(len(likely)), NO_CUTS, best.known)
    except (NoPartition, NotSolved):
        return
    best.offer(_rounded(weights, likely, relaxation.holds, relaxed.shares))


def _rounded(weights: Weights, listed: Numbers, holds: Mask, shares: NDArray[np.float64]) -> list[Subset]:
    """Blocks that do not overlap, the ones with the largest shares first; columns that are left stay alone."""
    free, blocks = np.ones(holds.shape[1], dtype=np.bool_), []
    for number in np.argsort(-shares, kind="stable")[: np.count_nonzero(shares > COVER_TOLERANCE)]:
        if free[holds[number]].all():
            free &= ~holds[number]
            blocks.append(weights.subsets[int(listed[number])])
    return blocks + [(int(column),) for column in np.flatnonzero(free)]


class _Best:
    """The heaviest partitions met so far, equals in Python's order."""

    def __init__(self, weights: Weights, n: int) -> None:
        self.n = n
        self.found: list[tuple[int, Partition]] = []  # weights with the sign reversed, so that tuples sort as we need
        self._weights = weights
        self._searched: set[Partition] = set()

    @property
    def known(self) -> int:
        """What a partition must reach to be of interest, in 1/STEP of a weight unit."""
        return -STEP * self.found[-1][0] if len(self.found) == self.n else NOTHING_KNOWN

    def keep(self, partition: Partition) -> None:
        """Remember it, if it is one of the best."""
        one = (-self._weights.of(partition), partition)
        if one not in self.found:
            insort(self.found, one)
            del self.found[self.n :]

    def offer(self, blocks: list[Subset]) -> None:
        """Remember these blocks, where they are allowed, and what a few moves of columns make of them."""
        limit = self._weights.max_blocks
        if any(self._value(block) == FORBIDDEN for block in blocks) or (limit is not None and len(blocks) > limit):
            return
        partition = tuple(sorted(blocks))
        self.keep(partition)
        while partition not in self._searched:
            self._searched.add(partition)
            near = nlargest(self.n, self._changes(partition))
            for _, old, new in near:
                self.keep(_changed(partition, old, new))
            if near and near[0][0] > 0:
                partition = _changed(partition, *near[0][1:])

    def _changes(self, partition: Partition) -> Iterator[tuple[int, Partition, Partition]]:
        """What is gained where these blocks of a partition are replaced by those: two of them, or one by two."""
        limit = self._weights.max_blocks
        for old in (*((block,) for block in partition if len(block) > 1), *combinations(partition, 2)):
            before = sum(map(self._value, old))
            for new in _divided_otherwise(old):
                if limit is not None and len(partition) + len(new) - len(old) > limit:
                    continue
                values = [self._value(block) for block in new]
                if FORBIDDEN not in values:
                    yield sum(values) - before, old, new

    def _value(self, block: Subset) -> int:
        subsets = self._weights.subsets
        return int(self._weights.values[subsets.index(block)]) if block in subsets else FORBIDDEN


def _divided_otherwise(blocks: Partition) -> Iterator[Partition]:
    """The columns of a block with one of them alone; of two blocks as one, with one moved, or with two exchanged."""
    if len(blocks) == 1:
        for column in blocks[0]:
            yield _without(blocks[0], column), (column,)
        return
    a, b = blocks
    yield (tuple(sorted(a + b)),)
    for giving, taking in ((a, b), (b, a)):
        if len(giving) > 1:
            for column in giving:
                yield _without(giving, column), tuple(sorted((*taking, column)))
    if len(a) > 1 or len(b) > 1:
        for one in a:
            for other in b:
                yield tuple(sorted((*_without(a, one), other))), tuple(sorted((*_without(b, other), one)))


def _without(block: Subset, column: int) -> Subset:
    return tuple(c for c in block if c != column)


def _changed(partition: Partition, old: Partition, new: Partition) -> Partition:
    return tuple(sorted([*(block for block in partition if block not in old), *new]))
