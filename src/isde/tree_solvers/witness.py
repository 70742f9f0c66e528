"""Cuts with prices: a proof, in integers, of what no tree can gain, checked without the solver that found it.

Any prices p >= 0 of cuts prove a bound: a tree gains at most

    sum of p * limit over cuts  +  sum over sets of max(0, w - sum of p * coefficient),

where a set that is known to be complete counts with its sign. What is left of a set's weight, if negative, is what a
tree that holds it stays below the bound: a set that brings a tree below one already known is left out from then on,
with all that hold it. And a bound is the larger one of those of the trees without an edge and with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from isde.arrays import FrozenArrays
from isde.subsets import SubsetFamily
from isde.tree_solvers.cuts import AnyCut, Cut, Sets
from isde.tree_solvers.moebius import positions_within
from isde.trees import Edge

FINEST_BITS = 44
LARGEST_SUM = 1 << 61
CUTS_AT_ONCE = 128

Mask = NDArray[np.bool_]
Integers = NDArray[np.int64]


class PricesTooLarge(Exception):
    """The prices leave 64 bits, or some are negative: nothing is proved."""


@dataclass(frozen=True)
class Step(FrozenArrays):
    """Cuts and their prices, and how the proof goes on with the sets they leave."""

    cuts: tuple[AnyCut, ...]
    prices: Integers  # of the cuts, in units of 2^-bits nats, none negative
    edge: Edge | None = None  # that the rest tells apart: first the trees without it, then those with it
    rest: tuple[Step, ...] = ()  # none: the bound is that of these prices; one: goes on; two: by the edge


@dataclass(frozen=True)
class TreeWitness:
    """A proof that no tree gains more than `verify` says."""

    first: Step
    known: float  # what a tree gains that is known: trees that gain less were not looked at
    bits: int  # prices and weights are whole numbers of 2^-bits nats


def verify(subsets: SubsetFamily, weights: NDArray[np.float64], witness: TreeWitness) -> float:
    """The bound that a witness proves for these weights (`moebius_weights`), whoever wrote it.

    No tree with cliques of at most `max_size` columns weighs more than this, or than `witness.known` where that is
    larger. Rounding: weights are rounded up to 2^-bits nats.
    """
    ledger = Ledger(subsets, weights, witness.bits)
    known = ledger.floor(witness.known)
    return ledger.nats(_bound(ledger, witness.first, known, ledger.allowed, ()))


def _bound(ledger: Ledger, step: Step, known: int, open_: Mask, complete: tuple[Edge, ...]) -> int:
    bound, left = ledger.prove(step.cuts, step.prices, open_, complete)
    if not step.rest:
        return max(bound, known)
    remaining = ledger.remaining(bound, left, known, open_, complete)
    if step.edge is None:
        return min(max(bound, known), _bound(ledger, step.rest[0], known, remaining, complete))
    without, within = step.rest
    return min(
        max(bound, known),
        max(
            _bound(ledger, without, known, ledger.without(remaining, step.edge), complete),
            _bound(ledger, within, known, remaining, (*complete, step.edge)),
        ),
    )


@dataclass(frozen=True)
class Ledger(FrozenArrays):
    """The weights of a problem in integers, and what prices prove. Its sets are all subsets of two columns or more."""

    subsets: SubsetFamily
    weights: NDArray[np.float64]
    bits: int
    sets: Sets = field(init=False)
    allowed: Mask = field(init=False)  # sets that may be complete at all
    values: Integers = field(init=False)  # weights of the sets, rounded up
    alone: int = field(init=False)  # weight of all columns alone, rounded up

    def __post_init__(self) -> None:
        d, weights = self.subsets.n_columns, self.weights
        if weights.shape != (len(self.subsets),) or np.isnan(weights).any() or (weights == inf).any():
            raise ValueError("A weight for each subset, finite or -inf.")
        if not np.abs(weights[weights > -inf]).sum() * 2.0**self.bits < LARGEST_SUM:
            raise PricesTooLarge
        finite = weights[d:] > -inf
        values = np.ceil(np.ldexp(np.where(finite, weights[d:], 0.0), self.bits)).astype(np.int64)
        object.__setattr__(self, "sets", Sets(self.subsets, np.arange(d, len(self.subsets))))
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "alone", int(np.ceil(np.ldexp(weights[:d], self.bits)).astype(np.int64).sum()))
        object.__setattr__(self, "allowed", self.closed(finite))
        super().__post_init__()

    def floor(self, nats: float) -> int:
        """In whole units; -inf becomes less than any sum."""
        return int(np.floor(np.ldexp(nats, self.bits))) if nats > -inf else -LARGEST_SUM

    def nats(self, units: int) -> float:
        return float(np.ldexp(float(units), -self.bits))

    def prove(
        self, cuts: Iterable[AnyCut], prices: Integers, open_: Mask, complete: Iterable[Edge]
    ) -> tuple[int, Integers]:
        """The bound for trees that hold the complete edges and sets that are open, and what is left of the weights."""
        cuts = list(cuts)
        if not self.fit(prices):
            raise PricesTooLarge
        left, bound = self.values.copy(), self.alone
        bound += sum(price * cut.limit for cut, price in zip(cuts, prices.tolist(), strict=True))
        larger = []
        for number, cut in enumerate(cuts):
            if self._is_small(cut):  # there are thousands of these, with two coefficients each
                left[self.place(sorted(cut.base + cut.columns))] -= prices[number]
                left[self.place(sorted(set(cut.base + cut.columns) - set(cut.held)))] += prices[number]
            else:
                larger.append(number)
        others = np.array(larger, dtype=np.intp)
        for start in range(0, len(others), CUTS_AT_ONCE):
            some = others[start : start + CUTS_AT_ONCE]
            rows, places, values = self.sets.entries([cuts[number] for number in some.tolist()])
            np.subtract.at(left, places, prices[some][rows] * values)
        return bound + self.counted(left, open_, complete), left

    def fit(self, prices: Integers) -> bool:
        """Whether prices are none below 0, and sums of them and of weights stay within 64 bits.

        No coefficient is larger than 2^k, and no sum of weights is larger than LARGEST_SUM.
        """
        return bool((prices >= 0).all() and prices.astype(np.float64).sum() * 2.0**self.subsets.max_size < LARGEST_SUM)

    def counted(self, left: Integers, open_: Mask, complete: Iterable[Edge]) -> int:
        """What is left of the weights in the best case: all that is positive, and edges known to be complete."""
        counted = np.where(open_, np.maximum(left, 0), 0)
        for edge in complete:
            counted[self.place(edge)] = left[self.place(edge)]
        if not np.abs(counted.astype(np.float64)).sum() < LARGEST_SUM:
            raise PricesTooLarge
        return int(counted.sum())

    def remaining(self, bound: int, left: Integers, known: int, open_: Mask, complete: Iterable[Edge]) -> Mask:
        """The open sets that a tree may hold which gains as much as is known."""
        kept = bound + np.minimum(left, 0) >= known
        for edge in complete:
            kept[self.place(edge)] = True  # the bound counts it already
        return self.closed(open_ & kept)

    def without(self, open_: Mask, edge: Edge) -> Mask:
        """The open sets of trees without an edge."""
        kept = open_.copy()
        kept[self.place(edge)] = False
        return self.closed(kept)

    def place(self, columns: Iterable[int]) -> int:
        """Where a set stands among all of them."""
        return self.subsets.index(columns) - self.subsets.n_columns

    def _is_small(self, cut: AnyCut) -> TypeGuard[Cut]:
        """Whether it says: a set is complete only if it is without one of its columns."""
        if not isinstance(cut, Cut):
            return False
        return len(cut.held) == 1 < len(cut.columns) == 2 and 0 < len(cut.base) <= self.subsets.max_size - 2

    def closed(self, open_: Mask) -> Mask:
        """A set is open only if all its subsets are."""
        kept, d = open_.copy(), self.subsets.n_columns
        for size in range(3, self.subsets.max_size + 1):
            here = self.subsets.of_size(size)
            for left_out in range(size):
                places = tuple(place for place in range(size) if place != left_out)
                kept[here.start - d : here.stop - d] &= kept[positions_within(self.subsets, size, places) - d]
        return kept


def bits_for(subsets: SubsetFamily, weights: NDArray[np.float64]) -> int:
    """The finest unit in which weights, and prices that add up to 30 times as much, stay within 64 bits."""
    total = float(np.abs(weights[weights > -inf]).sum()) or 1.0
    return min(FINEST_BITS, int(np.floor(56 - subsets.max_size - np.log2(total))))
