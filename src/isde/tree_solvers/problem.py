"""A table of scores as a problem for solvers of trees.

Scores are turned into gains (score minus charge minus the scores of the columns alone): a tree counts each column
once, so that all trees shift by the same constant. A subset that scores -inf is neither a clique nor a separator of a
tree, though its columns may stand together in a larger clique.

Exact solvers add integers: gains in units of 2^-40 nats (1e-12), coarser where their range demands it, times the
number of pairs of columns plus one, minus the pairs in the subset. The heaviest tree is then the best one and, among
equals, one with the fewest edges.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import fsum, inf

import numpy as np
from numpy.typing import NDArray

from isde.scores import SubsetScores
from isde.solvers.weights import FINEST_BITS, gains_of
from isde.subsets import SubsetFamily
from isde.trees import Edge, tree_of_edges

FORBIDDEN = -(1 << 60)
"""The weight of a subset that is no clique and no separator; no sum of other weights passes a quarter of it."""


@dataclass(frozen=True)
class TreeTask:
    """How much is asked for: what solvers are chosen by."""

    n_columns: int
    max_block_size: int
    all_alone: bool = True  # whether every column may stand alone: its score is finite


@dataclass(frozen=True)
class TreeProblem:
    """Which tree has the largest objective."""

    scores: SubsetScores

    def __post_init__(self) -> None:
        self.scores.check_exhaustive("A tree of blocks")

    @property
    def subsets(self) -> SubsetFamily:
        return self.scores.subsets

    @property
    def task(self) -> TreeTask:
        alone = bool(np.isfinite(self.gains[: self.subsets.n_columns]).all())
        return TreeTask(self.subsets.n_columns, self.subsets.max_size, alone)

    @cached_property
    def gains(self) -> NDArray[np.float64]:
        """What each subset adds to its columns alone, charges taken off; -inf stays -inf."""
        return gains_of(self.scores, "max")

    def gain(self, edges: Iterable[Edge]) -> float:
        """What a tree adds to the columns alone; -inf where it needs a subset that scores -inf."""
        terms = [(self.gains[self.subsets.index(t)], sign) for t, sign in tree_of_edges(self._d, edges).terms]
        return -inf if any(gain == -inf for gain, _ in terms) else fsum(gain * sign for gain, sign in terms)

    @cached_property
    def weights(self) -> NDArray[np.int64]:
        """Integer weight of each subset, FORBIDDEN for -inf."""
        pairs = self.subsets.sizes.astype(np.int64) * (self.subsets.sizes - 1) // 2
        units = np.rint(np.ldexp(self._weighed, self._bits)).astype(np.int64)
        return np.where(np.isfinite(self.gains), units * self._pairs - pairs, FORBIDDEN)

    @property
    def rounding(self) -> float:
        """Nats by which the heaviest tree may miss the best one: nothing in the unit in which scores count as equal."""
        return 0.0 if self._bits >= FINEST_BITS else float(np.ldexp(self._d, -self._bits))

    @property
    def _d(self) -> int:
        return self.subsets.n_columns

    @property
    def _pairs(self) -> int:
        """More than a tree has edges."""
        return self._d * (self._d - 1) // 2 + 1

    @cached_property
    def _weighed(self) -> NDArray[np.float64]:
        """Gains without those too low to matter: a hopeless score of the largest size must not coarsen the unit.

        A subset of that size is never a separator, and no tree makes up for one clique with more than all its others.
        Smaller ones are taken off where they separate: there a low score is worth much.
        """
        gains = np.where(np.isfinite(self.gains), self.gains, 0.0)
        largest = self.subsets.of_size(self.subsets.max_size)
        smaller = np.abs(gains[: largest.start])
        most = self._d * (max(gains.max(), 0.0) + smaller.max(initial=0.0)) + 1.0
        gains[largest] = np.maximum(gains[largest], -most)
        return gains

    @cached_property
    def _bits(self) -> int:
        """Of the unit 2^-bits: at most d cliques and d separators must stay below 2^58."""
        largest = float(np.abs(self._weighed).max()) or 1.0
        return min(FINEST_BITS, int(np.floor(57 - np.log2(largest * 2 * self._d * self._pairs))))
